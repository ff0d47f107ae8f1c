//! The configuration as a tree of directives, each word with its position.

use std::fmt;

/// Number of a file in [`Sources`](crate::Sources).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(pub u32);

/// The position of a word: its file, its line (from 1) and its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub file: FileId,
    /// The line of the first byte, counted from 1.
    pub line: u32,
    /// Offset of the first byte.
    pub start: u32,
    /// Offset after the last byte.
    pub end: u32,
}

/// One token: its value (quotes and escapes removed) and its position.
#[derive(Clone, Debug)]
pub struct Word {
    /// The bytes after unquoting and unescaping.
    pub text: Box<[u8]>,
    /// The position of the token, including quotes.
    pub span: Span,
}

/// Its value, as shown in messages.
impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.text))
    }
}

/// A directive: name, arguments, and its block if it opened one with `{`.
#[derive(Clone, Debug)]
pub struct Directive {
    /// The first word.
    pub name: Word,
    /// The words after it.
    pub args: Vec<Word>,
    /// The directives between the braces; `None` if the directive ended with `;`.
    pub block: Option<Vec<Directive>>,
    /// The `;` or `{` that ended the words. nginx names this line in its messages.
    pub end: Span,
    /// The `}` of the block; nginx names its line in errors about a block as a whole. `None`
    /// without a block, or if the text ended or had an error before it.
    pub close: Option<Span>,
}

impl Directive {
    /// The span of its words, from the name to the last argument.
    pub fn words(&self) -> Span {
        let end = self.args.last().map_or(self.name.span.end, |word| word.span.end);
        Span { end, ..self.name.span }
    }
}

/// A whole configuration, with `include`s already replaced.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    /// The directives of the outermost level.
    pub root: Vec<Directive>,
}
