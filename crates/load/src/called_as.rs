//! The name of the program.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CalledAs {
    /// `weir load`.
    Load,
    Wrk,
}
