//! The block that is being read, for directives whose meaning depends on it.

use conf::Registry;

/// The block whose lines are being read. The registry has it for directives such as `alias`.
#[derive(Default)]
pub enum BlockContext {
    #[default]
    Outside,
    Server,
    /// `if` or `limit_except`.
    Nameless,
    /// A location for paths that begin with its name.
    Prefix(Box<[u8]>),
    /// A location with a regular expression.
    Pattern,
    Named,
}

/// Declarations of the block's lines so far. The registry has them for directives that are allowed
/// only after another one.
#[derive(Default)]
pub struct ParsedSoFar(pub Registry);
