//! One server of a group: an address, and its parameters.

use std::sync::{Arc, OnceLock};

use md5::{Digest, Md5};
use metrics::Metric;
use net::Address;

use crate::counters::ServerCounts;
use crate::limit::ServerSlots;
use crate::pool::Handoff;
use crate::server_state::{FailurePolicy, ServerState};
use crate::waiting::LimitedServer;

/// Fixed-point scale of weights, so that a small one can grow in steps.
pub(crate) const WEIGHT_SCALE: i64 = 1024;

#[derive(Debug)]
pub struct Server {
    pub(crate) address: Address,
    pub(crate) name: Box<[u8]>,
    pub(crate) terms: ServerTerms,
    pub(crate) state: Arc<ServerState>,
    /// Its number in the group, which no other server of the group ever has.
    pub(crate) id: u64,
    /// How many servers of the group before it had its address.
    pub(crate) twin: u32,
    sid: OnceLock<Box<[u8]>>,
    /// The limit on its requests in progress, if it has one.
    pub(crate) limited: Option<LimitedServer>,
}

/// The parameters of a `server` line, the same for all its addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerTerms {
    /// The address as written in the configuration, with its port.
    pub text: Arc<[u8]>,
    pub weight: u32,
    pub max_conns: u32,
    pub failure_policy: FailurePolicy,
    pub slow_start_ms: u64,
    pub status: ServerStatus,
    pub route: Option<Arc<[u8]>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerStatus {
    Up,
    Down,
    /// `drain`: only for requests that are bound to it.
    Drain,
}

impl ServerTerms {
    /// The parameters' defaults.
    pub fn plain(text: &[u8]) -> Self {
        Self {
            text: text.into(),
            weight: 1,
            max_conns: 0,
            failure_policy: FailurePolicy { max_fails: 1, fail_timeout_ms: 10_000 },
            slow_start_ms: 0,
            status: ServerStatus::Up,
            route: None,
        }
    }
}

impl Server {
    pub(crate) fn new(address: Address, terms: ServerTerms, state: Arc<ServerState>) -> Self {
        let name = address.to_string().into_bytes().into();
        let (sid, limited) = (OnceLock::new(), None);
        Self { address, name, terms, state, id: 0, twin: 0, sid, limited }
    }

    /// Its number in the group, as the API shows it.
    pub fn id(&self) -> u64 {
        self.id
    }

    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The address, as in `$upstream_addr` and in the log.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// The address as written in the configuration.
    pub fn text(&self) -> &[u8] {
        &self.terms.text
    }

    /// The id that binds requests to it.
    pub fn sid(&self) -> &[u8] {
        match &self.terms.route {
            Some(route) => route,
            None => self.sid.get_or_init(|| sid(&self.name)),
        }
    }

    pub fn status(&self) -> ServerStatus {
        self.terms.status
    }

    /// Requests in progress, of all workers and generations of this process.
    pub fn in_progress(&self) -> u32 {
        self.state.in_progress()
    }

    /// What it has done.
    pub fn counters(&self) -> &Metric<ServerCounts> {
        self.state.counters()
    }

    /// Its failures since the last success.
    pub fn fails(&self) -> u32 {
        self.state.fails()
    }

    /// Whether it passes active checks, or has none.
    pub fn is_healthy(&self) -> bool {
        self.state.is_healthy()
    }

    /// Sets the result of active checks. True: it changed.
    pub fn set_healthy(&self, healthy: bool, now_ms: u64) -> bool {
        let changed = self.state.set_healthy(healthy, now_ms);
        match (changed, healthy) {
            (true, true) => self.admit(),
            (true, false) => self.withdraw(),
            _ => {}
        }
        changed
    }

    /// Whether it may be used; `bound`: by a request that is bound to it.
    pub(crate) fn is_usable(&self, bound: bool) -> bool {
        let used = match self.terms.status {
            ServerStatus::Up => true,
            ServerStatus::Drain => bound,
            ServerStatus::Down => false,
        };
        used && self.state.is_healthy()
    }

    /// Whether it may be used and is not out of use after failures, whatever its limit.
    pub(crate) fn is_live(&self, now_ms: u64, bound: bool) -> bool {
        self.is_usable(bound) && !self.state.is_failed(self.terms.failure_policy, now_ms)
    }

    /// Whether its number of requests is limited.
    pub(crate) fn is_limited(&self) -> bool {
        self.limited.is_some()
    }

    /// Whether it has as many requests as it may have.
    pub(crate) fn is_full(&self) -> bool {
        self.limited.as_ref().is_some_and(|limited| limited.slots.is_full())
    }

    /// What requests of the group wait for; `None`: they cannot wait for it.
    pub(crate) fn queue_key(&self) -> Option<*const ServerSlots<Handoff>> {
        let limited = self.limited.as_ref().filter(|_| self.is_usable(false))?;
        Some(Arc::as_ptr(&limited.slots))
    }

    /// Its part in a limit, if it has one.
    pub(crate) fn limit_key(&self) -> Option<(*const ServerSlots<Handoff>, u32)> {
        Some((Arc::as_ptr(&self.limited.as_ref()?.slots), self.twin))
    }

    /// Ends its part in the limit, because the group no longer has it.
    pub(crate) fn leave_limit(&self) {
        self.limited.iter().for_each(LimitedServer::leave);
    }

    /// Applies this configuration's limit.
    pub(crate) fn apply_limit(&self) {
        self.limited.iter().for_each(LimitedServer::apply);
    }

    /// Makes requests stop waiting for the server, which cannot be used.
    pub(crate) fn withdraw(&self) {
        self.limited.iter().for_each(LimitedServer::withdraw);
    }

    /// Lets requests wait for the server again; they may get it at once.
    pub(crate) fn admit(&self) {
        self.limited.iter().for_each(LimitedServer::admit);
    }

    /// Its weight now, scaled: reduced by failures and by slow start.
    pub(crate) fn effective_weight(&self, now_ms: u64) -> i64 {
        let effective = i64::from(self.state.effective(self.terms.weight)) * WEIGHT_SCALE;
        effective.min(self.ramp(now_ms))
    }

    /// The weight that slow start allows, scaled.
    pub(crate) fn ramp(&self, now_ms: u64) -> i64 {
        let whole = i64::from(self.terms.weight) * WEIGHT_SCALE;
        let slow_start_ms = self.terms.slow_start_ms;
        match self.state.back_since_ms(now_ms) {
            Some(since_ms) if since_ms < slow_start_ms => {
                let part = i128::from(whole) * i128::from(since_ms) / i128::from(slow_start_ms);
                (part as i64).max(1)
            }
            _ => whole,
        }
    }
}

/// The id of a server without a route.
pub(crate) fn sid(name: &[u8]) -> Box<[u8]> {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digest = Md5::digest(name);
    let digits = |byte: &u8| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]];
    digest.iter().flat_map(digits).collect()
}
