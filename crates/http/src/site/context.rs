//! What a directive may know of the block it stands in, while the block is being read.

use conf::Registry;

/// The block whose lines are being read, kept in the registry for directives whose meaning depends
/// on it, such as `alias`.
#[derive(Default)]
pub enum BlockContext {
    /// No location.
    #[default]
    Outside,
    /// A location for paths that begin with its name.
    Prefix(Box<[u8]>),
    /// A location with a regular expression.
    Pattern,
    /// A named location, which no path leads to.
    Named,
}

/// What the lines of the block have declared so far, kept in the registry for directives that are
/// allowed only after another one.
#[derive(Default)]
pub struct ParsedSoFar(pub Registry);
