//! The last slow requests of the process, for its status.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::exchange::{Exchange, PhaseTimes};

/// How many are kept.
const SLOW_REQUESTS_MAX: usize = 100;

/// The most bytes of each text.
const TEXT_MAX: usize = 1024;

/// Locked for slow requests alone.
static RECENT: Mutex<VecDeque<SlowRequest>> = Mutex::new(VecDeque::new());

/// A request that took longer than a `slow_log` allows.
#[derive(Clone)]
pub struct SlowRequest {
    /// When it was over, in milliseconds since 1970.
    pub at_ms: u64,
    pub request: Box<[u8]>,
    pub host: Box<[u8]>,
    pub status: u16,
    pub time_ms: u64,
    /// The last server that was tried.
    pub upstream: Option<Box<[u8]>>,
    times: PhaseTimes,
}

impl SlowRequest {
    pub(super) fn of(x: &Exchange, times: PhaseTimes) -> Self {
        let host = if x.request.host.is_empty() { &x.server().name } else { &x.request.host[..] };
        Self {
            at_ms: net::clock::unix_ms(),
            request: bounded(x.request.line()),
            host: bounded(host),
            status: x.status(),
            time_ms: x.age_ms(),
            upstream: x.backends.last().map(|last| bounded(last.name())),
            times,
        }
    }

    /// The phases that took at least a millisecond: names and milliseconds.
    pub fn phases(&self) -> impl Iterator<Item = (&'static str, u32)> {
        self.times.iter()
    }
}

/// The last slow requests, the newest first.
pub fn recent_slow_requests() -> Vec<SlowRequest> {
    recent().iter().cloned().collect()
}

/// Keeps a request instead of the oldest.
pub(super) fn keep(request: SlowRequest) {
    let mut recent = recent();
    recent.truncate(SLOW_REQUESTS_MAX - 1);
    recent.push_front(request);
}

fn recent() -> MutexGuard<'static, VecDeque<SlowRequest>> {
    RECENT.lock().unwrap_or_else(PoisonError::into_inner)
}

fn bounded(text: &[u8]) -> Box<[u8]> {
    text[..text.len().min(TEXT_MAX)].into()
}
