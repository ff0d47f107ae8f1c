//! The position of an exchange in its phases.

use std::fmt;

use conf::FeatureName;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Phase {
    #[default]
    Postread,
    ServerRewrite,
    FindLocation,
    Rewrite,
    Preaccess,
    Access,
    Precontent,
    Content,
    Filters,
}

impl Phase {
    pub(crate) fn following(self) -> Self {
        match self {
            Self::Postread => Self::ServerRewrite,
            Self::ServerRewrite => Self::FindLocation,
            Self::FindLocation => Self::Rewrite,
            Self::Rewrite => Self::Preaccess,
            Self::Preaccess => Self::Access,
            Self::Access => Self::Precontent,
            Self::Precontent => Self::Content,
            Self::Content | Self::Filters => Self::Filters,
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Postread => "postread",
            Self::ServerRewrite => "server rewrite",
            Self::FindLocation => "find location",
            Self::Rewrite => "rewrite",
            Self::Preaccess => "preaccess",
            Self::Access => "access",
            Self::Precontent => "precontent",
            Self::Content => "content",
            Self::Filters => "filters",
        })
    }
}

/// The next phase with handlers, for each phase of a location.
#[derive(Clone, Copy)]
pub(crate) struct PhaseOrder([Phase; Phase::Filters as usize + 1]);

impl PhaseOrder {
    /// The table of a location whose phases partly have no handlers.
    pub(crate) fn new(is_empty: impl Fn(Phase) -> bool) -> Self {
        let mut order = [Phase::Filters; Phase::Filters as usize + 1];
        let mut phase = Phase::Postread;
        while phase != Phase::Filters {
            let mut next = phase.following();
            while is_empty(next) {
                next = next.following();
            }
            order[phase as usize] = next;
            phase = phase.following();
        }
        Self(order)
    }

    pub(crate) fn after(&self, phase: Phase) -> Phase {
        self.0[phase as usize]
    }
}

/// The phase, and the handler within it.
#[derive(Clone, Copy, Default)]
pub(crate) struct Stage {
    pub(crate) phase: Phase,
    pub(crate) next: u32,
    /// The refusal kept while `satisfy any` calls further handlers.
    pub(crate) refusal: u16,
    /// The feature whose handler made the exchange wait.
    pub(crate) waiting: Option<FeatureName>,
}

impl Stage {
    /// The beginning of a phase.
    pub(crate) fn of(phase: Phase) -> Self {
        Self { phase, next: 0, refusal: 0, waiting: None }
    }
}
