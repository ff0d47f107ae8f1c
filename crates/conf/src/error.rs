//! What is wrong with a configuration, and where.

use crate::Span;

/// The result of reading configuration.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A configuration error in nginx's words, with its place where it has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// nginx's message, without level and without ` in FILE:LINE`.
    pub message: String,
    /// The place: nginx's ` in FILE:LINE` comes from it, and the marked source line.
    pub span: Option<Span>,
}

impl Error {
    /// An error at a place.
    pub fn at(span: Span, message: impl Into<String>) -> Self {
        Self { message: message.into(), span: Some(span) }
    }

    /// An error that no line of the configuration is to blame for.
    pub fn bare(message: impl Into<String>) -> Self {
        Self { message: message.into(), span: None }
    }
}
