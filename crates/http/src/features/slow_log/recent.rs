//! The last slow requests of the process, for its status.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use metrics::tree::{Items, StatusTree, TreeSource, Visitor, object};

use crate::exchange::{Exchange, PhaseTimes};
use crate::features::status_zone::server_zone;

/// How many are kept.
const SLOW_REQUESTS_MAX: usize = 100;

/// The most bytes of each text.
const TEXT_MAX: usize = 1024;

/// Locked for slow requests alone.
static RECENT: Mutex<VecDeque<SlowRequest>> = Mutex::new(VecDeque::new());

/// A request that took longer than a `slow_log` allows.
#[derive(Clone)]
pub(super) struct SlowRequest {
    /// When it was over, in milliseconds since 1970.
    at_ms: u64,
    request: Box<[u8]>,
    host: Box<[u8]>,
    /// The zone of its server.
    zone: Option<Box<[u8]>>,
    status: u16,
    time_ms: u64,
    /// The last server that was tried.
    upstream: Option<Box<[u8]>>,
    times: PhaseTimes,
}

impl SlowRequest {
    pub(super) fn of(x: &Exchange, times: PhaseTimes) -> Self {
        let host = if x.request.host.is_empty() { &x.server().name } else { &x.request.host[..] };
        Self {
            at_ms: net::clock::unix_ms(),
            request: bounded(x.request.line()),
            host: bounded(host),
            zone: server_zone(x.generation.location(x.server().outer)).map(bounded),
            status: x.status(),
            time_ms: x.age_ms(),
            upstream: x.backends.last().map(|last| bounded(last.name())),
            times,
        }
    }
}

/// Times are in seconds; phases of less than a millisecond are left out.
impl TreeSource for SlowRequest {
    fn visit(&self, out: &mut dyn Visitor) {
        out.number(b"at", self.at_ms);
        out.text(b"request", &self.request);
        out.text(b"host", &self.host);
        if let Some(zone) = &self.zone {
            out.text(b"zone", zone);
        }
        out.number(b"status", self.status.into());
        out.float(b"time", self.time_ms as f64 / 1000.0);
        if let Some(upstream) = &self.upstream {
            out.text(b"upstream", upstream);
        }
        object(out, b"phases", |out| {
            for (name, ms) in self.times.iter() {
                out.float(name.as_bytes(), f64::from(ms) / 1000.0);
            }
        });
    }
}

/// Adds the last slow requests, the newest first, to what the program shows of itself.
pub(super) fn show(tree: &mut StatusTree) {
    let source = |request: &SlowRequest| -> Arc<dyn TreeSource> { Arc::new(request.clone()) };
    tree.add(&[b"slow"], Items::List(recent().iter().map(source).collect()));
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
