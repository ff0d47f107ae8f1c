//! What a zone counts.

use metrics::{ByStatus, Metric, Newest, Tallies, Tally, Times, UpDown};
use net::tls::HandshakeFault;

metrics::counts! {
    /// What a zone counts. A session is a request, or in `stream` a connection.
    pub struct ZoneCounters of ZoneCounts = 12 {
        /// Sessions, and how many of them are under way.
        sessions: UpDown,
        /// Those that ended without a reply.
        discarded: Tally,
        /// Those that were passed on to another server of this program.
        passed: Tally,
        statuses: ByStatus,
        received: Tally,
        sent: Tally,
        /// How long they took.
        time: Times,
        /// When the last one ended, in milliseconds since 1970.
        last_ms: Newest,
        /// Sessions whose key had no room.
        overflows: Tally,
        handshakes: Tally,
        /// Handshakes that resumed a TLS session.
        reuses: Tally,
        /// Handshakes that failed, by `HandshakeFault`.
        handshakes_failed: Tallies<{ HandshakeFault::ALL.len() }>,
    }
}

impl ZoneCounts {
    /// Begins the counts of handshakes anew, as [`Metric::reset`] does with all counts.
    pub(super) fn reset_handshakes(zone: &Metric<Self>) {
        let totals = zone.totals();
        let (own, sum) = (zone.own(), totals.get());
        own.handshakes().add(sum.handshakes().get().wrapping_neg());
        own.reuses().add(sum.reuses().get().wrapping_neg());
        for (fault, failed) in sum.handshakes_failed().iter().enumerate() {
            own.handshakes_failed().at(fault).add(failed.wrapping_neg());
        }
    }
}

/// A session that has ended.
#[derive(Clone, Copy, Debug)]
pub struct SessionEnd {
    /// 0: it ended without a reply.
    pub status: u16,
    pub received: u64,
    pub sent: u64,
    pub time_ns: u64,
    pub unix_ms: u64,
}

impl ZoneCounters<'_> {
    /// Counts a session's end, but not that it is no longer under way.
    pub fn end(self, end: SessionEnd) {
        match end.status {
            0 => self.discarded().add(1),
            status => self.statuses().add(status),
        }
        self.received().add(end.received);
        self.sent().add(end.sent);
        self.time().record(end.time_ns);
        self.last_ms().set(end.unix_ms);
    }
    /// Counts a handshake that has failed.
    pub fn handshake_failed(self, fault: HandshakeFault) {
        self.handshakes_failed().at(fault as usize).add(1);
    }

    /// How many handshakes failed so.
    pub fn handshakes_failed_by(self, fault: HandshakeFault) -> u64 {
        self.handshakes_failed().at(fault as usize).get()
    }

    /// How many handshakes failed, those aside that took too long.
    pub fn handshakes_failed_in_time(self) -> u64 {
        let timed_out = self.handshakes_failed_by(HandshakeFault::TimedOut);
        self.handshakes_failed().iter().sum::<u64>() - timed_out
    }
}
