//! The progress of one check of one server.

/// When a server is checked, and how many results make a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckTerms {
    /// Time from one result to the next check.
    pub interval_ms: u64,
    /// The largest random delay in addition to it.
    pub jitter_ms: u64,
    /// Failures in a row that make a server unhealthy.
    pub fails: u32,
    /// Passes in a row that make it healthy again.
    pub passes: u32,
    /// The state of a server before its first check.
    pub begin: Begin,
}

/// The state of a server before its first check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    Healthy,
    /// Not used until it passes once.
    Checking {
        /// Whether a reload keeps the state. Otherwise every server is checked anew.
        persistent: bool,
    },
    Unhealthy,
}

/// A change that a check makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It may be used again.
    Healthy,
    /// It is no longer used.
    Unhealthy,
}

/// The results of one check of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CheckProgress {
    state: CheckState,
    /// Results in a row that contradict the state.
    contrary: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CheckState {
    Healthy,
    Checking,
    Unhealthy,
}

impl CheckProgress {
    pub fn new(begin: Begin) -> Self {
        let state = match begin {
            Begin::Healthy => CheckState::Healthy,
            Begin::Checking { .. } => CheckState::Checking,
            Begin::Unhealthy => CheckState::Unhealthy,
        };
        Self { state, contrary: 0 }
    }

    pub fn is_healthy(self) -> bool {
        self.state == CheckState::Healthy
    }

    pub fn note(&mut self, passed: bool, terms: &CheckTerms) -> Option<Change> {
        let enough = match (self.state, passed) {
            (CheckState::Healthy, true) | (CheckState::Unhealthy, false) => {
                self.contrary = 0;
                return None;
            }
            (CheckState::Checking, true) => 1,
            (CheckState::Healthy | CheckState::Checking, false) => terms.fails,
            (CheckState::Unhealthy, true) => terms.passes,
        };
        self.contrary += 1;
        if self.contrary < enough {
            return None;
        }
        let (state, change) = match passed {
            true => (CheckState::Healthy, Change::Healthy),
            false => (CheckState::Unhealthy, Change::Unhealthy),
        };
        *self = Self { state, contrary: 0 };
        Some(change)
    }
}
