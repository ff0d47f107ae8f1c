//! One server of a group: an address, and what the configuration says of it.

use std::sync::{Arc, OnceLock};

use md5::{Digest, Md5};
use net::Address;

use crate::standing::{FailureRest, ServerState};
use crate::waiting::LimitedServer;

/// Fixed-point scale of weights, so that a small one can grow in steps.
pub(crate) const WEIGHT_SCALE: i64 = 1024;

/// A server.
#[derive(Debug)]
pub struct Server {
    pub(crate) address: Address,
    pub(crate) name: Box<[u8]>,
    pub(crate) terms: ServerTerms,
    pub(crate) standing: Arc<ServerState>,
    sid: OnceLock<Box<[u8]>>,
    /// How many requests it may have in progress, where that is limited.
    pub(crate) limited: Option<LimitedServer>,
}

/// What the configuration says of a server, all its addresses alike.
#[derive(Clone, Debug)]
pub(crate) struct ServerTerms {
    /// As it stands in the configuration, port included.
    pub text: Arc<[u8]>,
    pub weight: u32,
    pub max_conns: u32,
    pub patience: FailureRest,
    pub slow_start_ms: u64,
    pub state: ServerStatus,
    /// `route=`
    pub route: Option<Arc<[u8]>>,
}

/// Whether a server is to be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerStatus {
    /// As any.
    Up,
    /// `down`: not at all.
    Down,
    /// `drain`: only for requests that are bound to it.
    Drain,
}

impl ServerTerms {
    /// What a server has of which nothing is said.
    pub fn plain(text: &[u8]) -> Self {
        Self {
            text: text.into(),
            weight: 1,
            max_conns: 0,
            patience: FailureRest { max_fails: 1, fail_timeout_ms: 10_000 },
            slow_start_ms: 0,
            state: ServerStatus::Up,
            route: None,
        }
    }
}

impl Server {
    pub(crate) fn new(address: Address, terms: ServerTerms, standing: Arc<ServerState>) -> Self {
        let name = address.to_string().into_bytes().into();
        Self { address, name, terms, standing, sid: OnceLock::new(), limited: None }
    }

    /// Where to connect to.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The address as `$upstream_addr` and the log have it.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// What the configuration calls it.
    pub fn text(&self) -> &[u8] {
        &self.terms.text
    }

    /// What requests that are bound to it call it.
    pub(crate) fn sid(&self) -> &[u8] {
        match &self.terms.route {
            Some(route) => route,
            None => self.sid.get_or_init(|| sid(&self.name)),
        }
    }

    /// Whether it is to be used.
    pub fn state(&self) -> ServerStatus {
        self.terms.state
    }

    /// Requests that it has in progress, of all workers and generations of this process.
    pub fn in_progress(&self) -> u32 {
        self.standing.in_progress()
    }

    /// Its failures that count.
    pub fn fails(&self) -> u32 {
        self.standing.fails()
    }

    /// What an active check found. True: that is a change.
    pub fn set_healthy(&self, healthy: bool, now_ms: u64) -> bool {
        let changed = self.standing.set_healthy(healthy, now_ms);
        match (changed, healthy) {
            (true, true) => self.admit(),
            (true, false) => self.withdraw(),
            _ => {}
        }
        changed
    }

    /// Whether it may be used at all; `bound`: by a request that is bound to it.
    pub(crate) fn is_usable(&self, bound: bool) -> bool {
        let used = match self.terms.state {
            ServerStatus::Up => true,
            ServerStatus::Drain => bound,
            ServerStatus::Down => false,
        };
        used && self.standing.is_healthy()
    }

    /// Whether it may be given a request for all but its number of requests.
    pub(crate) fn is_live(&self, now_ms: u64, bound: bool) -> bool {
        self.is_usable(bound) && !self.standing.is_failed(self.terms.patience, now_ms)
    }

    /// Whether its number of requests is limited.
    pub(crate) fn is_limited(&self) -> bool {
        self.limited.is_some()
    }

    /// Whether it has as many requests as it may have.
    pub(crate) fn is_full(&self) -> bool {
        self.limited.as_ref().is_some_and(|limited| limited.slots.is_full())
    }

    /// From now on it may have as many requests as this configuration says.
    pub(crate) fn apply_limit(&self) {
        self.limited.iter().for_each(LimitedServer::apply);
    }

    /// It cannot be used: nobody is to wait for it.
    pub(crate) fn withdraw(&self) {
        self.limited.iter().for_each(LimitedServer::withdraw);
    }

    /// It can be used again: requests that wait may get it, too.
    pub(crate) fn admit(&self) {
        self.limited.iter().for_each(LimitedServer::admit);
    }

    /// Its weight now, scaled: less after failures, and while it starts slowly.
    pub(crate) fn effective_weight(&self, now_ms: u64) -> i64 {
        let effective = i64::from(self.standing.effective(self.terms.weight)) * WEIGHT_SCALE;
        effective.min(self.ramp(now_ms))
    }

    /// The most that slow start lets its weight be, scaled.
    pub(crate) fn ramp(&self, now_ms: u64) -> i64 {
        let whole = i64::from(self.terms.weight) * WEIGHT_SCALE;
        let slow_start_ms = self.terms.slow_start_ms;
        match self.standing.back_since_ms(now_ms) {
            Some(since_ms) if since_ms < slow_start_ms => {
                let part = i128::from(whole) * i128::from(since_ms) / i128::from(slow_start_ms);
                (part as i64).max(1)
            }
            _ => whole,
        }
    }
}

/// The name that requests have for a server without a route.
pub(crate) fn sid(name: &[u8]) -> Box<[u8]> {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digest = Md5::digest(name);
    let digits = |byte: &u8| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]];
    digest.iter().flat_map(digits).collect()
}
