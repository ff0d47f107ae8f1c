//! nginx.conf: text -> tree with spans -> typed layers.
//!
//! The lower half (lexer, tree, files, diagnostics, formatting) knows nginx's grammar; the upper
//! half (the directive kernel) knows how settings are declared and inherited. Deliberately absent:
//! what any directive means, and sockets. Configuration text is bytes: not every nginx.conf is UTF-8.

mod error;
mod tree;

pub use error::{Error, Result};
pub use tree::{Directive, FileId, Span, Tree, Word};
