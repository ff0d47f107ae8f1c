//! The end of a proof.

/// How a proof ended that found nothing wrong.
pub(crate) enum ProofVerdict {
    Right,
    /// What it needs is not installed.
    Skipped(String),
    /// The machine did not let it be found out.
    Disturbed(String),
}
