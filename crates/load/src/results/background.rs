//! Connections beside the measured load.

use serde::Serialize;

/// The counts of one thread, or of all threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BackgroundStats {
    pub idle: IdleStats,
    pub slow: SlowStats,
}

/// Idle connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct IdleStats {
    /// Their intended number.
    pub connections: u64,
    /// Those that were open at the end.
    pub open: u64,
    /// Those that the server closed; each was opened again.
    pub closed: u64,
    /// Attempts to open one that failed.
    pub failed: u64,
}

/// Clients that read slowly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SlowStats {
    /// Their number.
    pub connections: u64,
    /// Complete replies.
    pub replies: u64,
    /// Bytes received.
    pub bytes: u64,
    /// Failed requests and connections.
    pub failed: u64,
}

impl BackgroundStats {
    /// Adds the counts of another thread.
    pub fn add(&mut self, other: &Self) {
        let (idle, slow) = (&mut self.idle, &mut self.slow);
        for (sum, more) in [
            (&mut idle.connections, other.idle.connections),
            (&mut idle.open, other.idle.open),
            (&mut idle.closed, other.idle.closed),
            (&mut idle.failed, other.idle.failed),
            (&mut slow.connections, other.slow.connections),
            (&mut slow.replies, other.slow.replies),
            (&mut slow.bytes, other.slow.bytes),
            (&mut slow.failed, other.slow.failed),
        ] {
            *sum += more;
        }
    }
}
