//! An exchange's side of its timing: what it waits for, and what its time went to.

use std::rc::Rc;

use super::{Exchange, PhaseTimes, RequestTiming, Role, TimedPhase};

impl Exchange {
    /// Begins the timing, if the server has a use for it. Called before a wait.
    #[inline]
    pub(crate) fn begin_timing(&mut self) {
        if self.timing.is_none() && self.server().timed {
            self.time_waits();
        }
    }

    #[cold]
    pub(crate) fn time_waits(&mut self) {
        self.timing = Some(Rc::new(RequestTiming::begin(self.times_without_waits())));
    }

    /// The times before the first wait.
    fn times_without_waits(&self) -> PhaseTimes {
        net::clock::refresh();
        let client = self.client.nearest();
        let is_first = client.requests.get() == 1;
        let tls_ms = if is_first { client.handshake_ms.get() } else { 0 };
        let head_ms = match self.downstream {
            Some(_) => self.head_ms.into(),
            None => self.age_ms(),
        };
        PhaseTimes::without_waits(tls_ms, head_ms, self.age_ms().saturating_sub(head_ms))
    }

    /// Names what the next wait is for.
    #[inline]
    pub(crate) fn waits_for(&self, phase: TimedPhase) {
        if let Some(timing) = &self.timing {
            timing.waits_for(phase);
        }
    }

    /// What the next wait is for, as far as was named.
    pub(crate) fn next_wait(&self) -> TimedPhase {
        self.timing.as_ref().map_or(TimedPhase::Other, |timing| timing.next_wait())
    }

    /// Counts all waits of a future for one phase, including those of subrequests.
    pub(crate) async fn in_phase<T>(
        &mut self,
        phase: TimedPhase,
        wait: impl AsyncFnOnce(&mut Self) -> T,
    ) -> T {
        let held = self.timing.clone().filter(|timing| timing.hold(phase));
        let done = wait(self).await;
        if let Some(timing) = held {
            timing.release();
        }
        done
    }

    /// What the time went to up to now; `None` if its server has no use for that.
    pub(crate) fn phase_times(&self) -> Option<PhaseTimes> {
        if let Some(timing) = &self.timing {
            return Some(timing.until_now());
        }
        let is_timed = self.server().timed && self.role == Role::Main;
        is_timed.then(|| self.times_without_waits())
    }

    /// Writes the times up to now as a JSON object.
    pub(crate) fn write_timing(&self, out: &mut Vec<u8>) {
        match self.phase_times() {
            Some(times) => times.write_json(self.age_ms(), out),
            None => out.extend_from_slice(b"{}"),
        }
    }
}
