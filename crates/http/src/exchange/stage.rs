//! Where an exchange stands in its phases.

/// The phases.
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

/// The phase, and the handler within it.
#[derive(Clone, Copy, Default)]
pub(crate) struct Stage {
    pub(crate) phase: Phase,
    pub(crate) next: usize,
    /// The refusal kept while `satisfy any` asks on.
    pub(crate) refusal: u16,
}

impl Stage {
    /// The beginning of a phase.
    pub(crate) fn of(phase: Phase) -> Self {
        Self { phase, next: 0, refusal: 0 }
    }
}
