//! How a part of the proof ended.

/// What came of a part that did not fail.
pub(super) enum PartOutcome {
    Done(String),
    Skipped(String),
}
