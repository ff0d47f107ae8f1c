//! The name of the program.

/// How the program was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CalledAs {
    /// `weir load`.
    Load,
    /// `wrk`.
    Wrk,
}
