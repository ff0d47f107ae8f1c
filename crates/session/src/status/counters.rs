//! What a zone counts.

use metrics::{ByStatus, Newest, Tally, Times, UpDown};

metrics::counts! {
    /// What a zone counts. A session is a request, or in `stream` a connection.
    pub struct ZoneCounters of ZoneCounts = 2 {
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
        handshakes_timed_out: Tally,
        handshakes_failed: Tally,
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
}
