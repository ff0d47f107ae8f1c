//! How fast a server replies: means over its replies, and over requests in progress.
//!
//! Measured only for balancers that use times.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Debug, Default)]
pub(crate) struct ServerTimes {
    connect_ms: AtomicU64,
    first_byte_ms: AtomicU64,
    last_byte_ms: AtomicU64,
    inflight: Mutex<Inflight>,
}

/// The end of the time that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// The connection is established.
    Connect,
    /// The first byte from the server; for a reply with a head, the end of the head.
    FirstByte,
    /// The last byte from the server.
    LastByte,
}

/// Requests whose time is not known yet.
#[derive(Debug, Default)]
struct Inflight {
    requests: u64,
    /// The sum of their durations, as of `changed_ms`.
    taken_ms: u64,
    changed_ms: u64,
    mean_ms: u64,
}

impl ServerTimes {
    /// The mean; 0 if there was no reply.
    pub fn mean_ms(&self, until: Until) -> u64 {
        self.slot(until).load(Relaxed)
    }

    /// Adds the time of a reply.
    pub fn add(&self, until: Until, time_ms: u64) {
        let moved = |mean| Some(moved(mean, time_ms));
        let _ = self.slot(until).fetch_update(Relaxed, Relaxed, moved);
    }

    fn slot(&self, until: Until) -> &AtomicU64 {
        match until {
            Until::Connect => &self.connect_ms,
            Until::FirstByte => &self.first_byte_ms,
            Until::LastByte => &self.last_byte_ms,
        }
    }

    pub fn begin(&self, now_ms: u64) {
        let mut inflight = self.inflight();
        inflight.bring_up(now_ms);
        inflight.requests += 1;
    }

    /// Removes the share of a request that began at this time.
    pub fn end(&self, began_ms: u64) {
        let mut inflight = self.inflight();
        let share_ms = inflight.changed_ms.saturating_sub(began_ms);
        inflight.taken_ms = inflight.taken_ms.saturating_sub(share_ms);
        inflight.requests = inflight.requests.saturating_sub(1);
    }

    /// Updates the mean of requests in progress.
    pub fn look_at_inflight(&self, now_ms: u64) {
        let mut inflight = self.inflight();
        if let Some(taken_ms) = inflight.taken_ms.checked_div(inflight.requests) {
            let since_ms = now_ms.saturating_sub(inflight.changed_ms);
            inflight.mean_ms = moved(inflight.mean_ms, taken_ms + since_ms);
        }
    }

    /// The mean of requests in progress; 0 if there are none.
    pub fn inflight_ms(&self) -> u64 {
        let inflight = self.inflight();
        if inflight.requests > 0 { inflight.mean_ms } else { 0 }
    }

    fn inflight(&self) -> MutexGuard<'_, Inflight> {
        self.inflight.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inflight {
    fn bring_up(&mut self, now_ms: u64) {
        self.taken_ms += now_ms.saturating_sub(self.changed_ms) * self.requests;
        self.changed_ms = now_ms.max(self.changed_ms);
    }
}

/// A moving mean: the new value counts for a twentieth.
fn moved(mean_ms: u64, value_ms: u64) -> u64 {
    match mean_ms {
        0 => value_ms,
        _ => value_ms.saturating_add(mean_ms.saturating_mul(19)).saturating_add(10) / 20,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_moves_by_a_twentieth() {
        let times = ServerTimes::default();
        times.add(Until::FirstByte, 100);
        assert_eq!(times.mean_ms(Until::FirstByte), 100);
        times.add(Until::FirstByte, 200);
        assert_eq!(times.mean_ms(Until::FirstByte), 105);
        assert_eq!(times.mean_ms(Until::LastByte), 0);
    }

    #[test]
    fn a_request_that_ends_leaves_the_time_of_the_others() {
        let times = ServerTimes::default();
        times.begin(1000);
        times.begin(1300);
        times.end(1000);
        // The remaining request began at 1300.
        times.look_at_inflight(1400);
        assert_eq!(times.inflight_ms(), 100);
        times.end(1300);
        assert_eq!(times.inflight_ms(), 0);
    }
}
