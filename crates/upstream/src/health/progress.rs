//! How far one server has come with one check.

/// When a server is asked, and how many answers make a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckTerms {
    /// Time from one answer to the next question.
    pub interval_ms: u64,
    /// How much longer it is at most, by chance.
    pub jitter_ms: u64,
    /// Failures in a row that make a server unhealthy.
    pub fails: u32,
    /// Passes in a row that make it healthy again.
    pub passes: u32,
    /// What a server is before it was asked.
    pub begin: Begin,
}

/// What a server is before it was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// Healthy.
    Healthy,
    /// Not used until it passes once.
    Checking {
        /// Whether a reload changes nothing. Else every server is checked anew after it.
        persistent: bool,
    },
    /// Unhealthy.
    Unhealthy,
}

/// What a check has made of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It may be used again.
    Healthy,
    /// It is not used any more.
    Unhealthy,
}

/// What is known of a server by one check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CheckProgress {
    state: CheckState,
    /// Answers in a row that speak against the state.
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

    /// Takes an answer into account.
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
