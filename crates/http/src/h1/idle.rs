//! The wait of a connection for its next request.

use metrics::WaitingConnection;
use net::clock;

use crate::site::policy::Keepalive;

/// The request that a connection waits for, and how long it waits.
#[derive(Clone, Copy)]
pub(super) enum Idle {
    /// Its first request.
    First { timeout_ms: u64 },
    /// The next one.
    Kept { timeout_ms: u64, min_timeout_ms: u64, since_ms: u64 },
}

pub(super) enum WaitOutcome {
    /// A request begins; `pipelined` if it arrived before the reply to the last one was sent.
    Request { pipelined: bool },
    /// No further request will come.
    Over,
    /// The connection is to be parked for the rest of its time.
    Park { waiting: WaitingConnection, left_ms: u64 },
}

impl Idle {
    pub(super) fn kept(rules: &Keepalive) -> Self {
        Self::Kept {
            timeout_ms: rules.timeout_ms,
            min_timeout_ms: rules.min_timeout_ms,
            since_ms: clock::now_ms(),
        }
    }

    pub(super) fn left_ms(self) -> u64 {
        match self {
            Self::First { timeout_ms } => timeout_ms,
            Self::Kept { timeout_ms, since_ms, .. } => {
                (since_ms + timeout_ms).saturating_sub(clock::now_ms())
            }
        }
    }
}
