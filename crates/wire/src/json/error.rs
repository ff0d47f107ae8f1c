//! What is wrong with a document, and where.

use core::fmt;

/// An error in a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JsonError {
    pub problem: JsonProblem,
    /// The offset in the input.
    pub at: usize,
}

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonProblem {
    TooLong,
    TooDeep,
    TooMany,
    InvalidUtf8,
    NoValue,
    NoName,
    NoColon,
    NoCommaInList,
    NoCommaInObject,
    InvalidNumber,
    OpenText,
    ControlCharacter,
    InvalidEscape,
    LoneSurrogate,
    DuplicateName,
    TextBehindEnd,
}

/// A place in a text, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JsonPosition {
    pub line: usize,
    /// In bytes.
    pub column: usize,
}

impl JsonError {
    pub fn position(&self, input: &[u8]) -> JsonPosition {
        position(input, self.at)
    }
}

/// The place of an offset.
pub fn position(input: &[u8], at: usize) -> JsonPosition {
    let before = &input[..at.min(input.len())];
    let line_start = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
    let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
    JsonPosition { line, column: before.len() - line_start + 1 }
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.problem, self.at)
    }
}

impl fmt::Display for JsonProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooLong => "the text is too long",
            Self::TooDeep => "too many lists and objects are inside each other",
            Self::TooMany => "there are too many values",
            Self::InvalidUtf8 => "the text is not UTF-8",
            Self::NoValue => "a value is expected",
            Self::NoName => "a name in quotes is expected",
            Self::NoColon => "a colon is expected",
            Self::NoCommaInList => "a comma or \"]\" is expected",
            Self::NoCommaInObject => "a comma or \"}\" is expected",
            Self::InvalidNumber => "the number is invalid",
            Self::OpenText => "the text in quotes has no end",
            Self::ControlCharacter => "a control character must be escaped",
            Self::InvalidEscape => "the escape is invalid",
            Self::LoneSurrogate => "the escape is half of a character",
            Self::DuplicateName => "the name occurs twice in the object",
            Self::TextBehindEnd => "there is text behind the end",
        })
    }
}
