//! Some parameters of a server: what a request to the API says.

use crate::roster::ServerSpec;
use crate::server::ServerStatus;

/// Parameters to be set; `None` leaves one as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpecPatch {
    pub server: Option<Box<[u8]>>,
    pub weight: Option<u32>,
    pub max_conns: Option<u32>,
    pub max_fails: Option<u32>,
    pub fail_timeout_ms: Option<u64>,
    pub slow_start_ms: Option<u64>,
    /// Empty: none.
    pub route: Option<Box<[u8]>>,
    pub service: Option<Box<[u8]>>,
    pub backup: Option<bool>,
    pub status: StatusPatch,
}

/// `down` and `drain`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatusPatch {
    pub down: Option<bool>,
    pub drain: Option<bool>,
}

impl StatusPatch {
    /// A server that is down does not drain.
    fn of(self, before: ServerStatus) -> ServerStatus {
        let down = self.down.unwrap_or(before == ServerStatus::Down && self.drain != Some(true));
        let drain = self.drain.unwrap_or(before == ServerStatus::Drain);
        match (down, drain) {
            (true, _) => ServerStatus::Down,
            (false, true) => ServerStatus::Drain,
            (false, false) => ServerStatus::Up,
        }
    }
}

impl SpecPatch {
    /// The parameters after the change.
    pub(super) fn applied_to(&self, before: &ServerSpec) -> ServerSpec {
        let mut spec = before.clone();
        let terms = &mut spec.terms;
        terms.weight = self.weight.unwrap_or(terms.weight);
        terms.max_conns = self.max_conns.unwrap_or(terms.max_conns);
        let policy = &mut terms.failure_policy;
        policy.max_fails = self.max_fails.unwrap_or(policy.max_fails);
        policy.fail_timeout_ms = self.fail_timeout_ms.unwrap_or(policy.fail_timeout_ms);
        terms.slow_start_ms = self.slow_start_ms.unwrap_or(terms.slow_start_ms);
        if let Some(route) = &self.route {
            terms.route = (!route.is_empty()).then(|| route[..].into());
        }
        terms.status = self.status.of(terms.status);
        spec.backup = self.backup.unwrap_or(spec.backup);
        spec
    }
}
