//! An error in a configuration, with its position.

use std::fmt;

use crate::lacking::Class;
use crate::{Span, suggest};

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The severity, in nginx's scale; the levels at which a configuration can be reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ErrorLevel {
    /// The configuration cannot be used.
    #[default]
    Emerg,
    /// It cannot be used: nginx's level for a file that opens but cannot be read.
    Crit,
    /// It works, but probably not as meant.
    Warn,
    /// It works; something about it is worth knowing.
    Notice,
}

impl fmt::Display for ErrorLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Emerg => "emerg",
            Self::Crit => "crit",
            Self::Warn => "warn",
            Self::Notice => "notice",
        })
    }
}

/// A configuration error (or, by its level, a warning) in nginx's words, with its place if it has
/// one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// nginx's message, without level and without ` in FILE:LINE`.
    pub message: String,
    /// The place: nginx's ` in FILE:LINE` comes from it.
    pub span: Option<Span>,
    /// The part of the source text to mark, if it is not `span` itself.
    pub mark: Option<Span>,
    /// A hint, shown below the marked source.
    pub help: Option<String>,
    /// A second line that the error is about: a message and the position of the line.
    pub elsewhere: Option<Box<(String, Span)>>,
    pub level: ErrorLevel,
    /// The reason of the warning. Warnings with the same reason are shown as one, whatever their
    /// messages.
    pub cause: Option<Box<str>>,
    /// The class of an unsupported feature, if that is the only error.
    pub lacks: Option<Class>,
}

impl Error {
    pub fn at(span: Span, message: impl Into<String>) -> Self {
        Self { span: Some(span), ..Self::bare(message) }
    }

    /// An error without a line of the configuration that causes it.
    pub fn bare(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            span: None,
            mark: None,
            help: None,
            elsewhere: None,
            level: ErrorLevel::default(),
            cause: None,
            lacks: None,
        }
    }

    /// Marks another place than the one nginx names (a word, not the `;`).
    pub fn marked(self, mark: Span) -> Self {
        Self { mark: Some(mark), ..self }
    }

    pub fn help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }

    /// Adds a second line that the error is about: the message `what` is shown with the position of
    /// that line.
    pub fn elsewhere(self, what: impl Into<String>, at: Span) -> Self {
        Self { elsewhere: Some(Box::new((what.into(), at))), ..self }
    }

    /// Records that this version lacks a feature of this class.
    pub fn lacks(self, class: Class) -> Self {
        Self { lacks: Some(class), ..self }
    }

    /// Adds the probable intention, if there is a guess.
    pub fn guess(self, meant: Option<impl AsRef<str>>) -> Self {
        match meant {
            Some(meant) => self.help(suggest::did_you_mean(meant.as_ref())),
            None => self,
        }
    }

    /// Adds the name that `word` was probably meant to be, if one is near enough.
    pub fn meant<'a>(self, word: &[u8], names: impl IntoIterator<Item = &'a str>) -> Self {
        self.guess(suggest::nearest(word, names))
    }

    /// Sets the cause that it shares with other warnings.
    pub fn cause(self, cause: impl Into<Box<str>>) -> Self {
        Self { cause: Some(cause.into()), ..self }
    }

    pub fn level(self, level: ErrorLevel) -> Self {
        Self { level, ..self }
    }
}
