//! `match`: the data that a health check sends, and the data that it expects.

use std::collections::HashMap;
use std::sync::Arc;

use conf::{Directive, Load, Result, Word};

use crate::session::StreamSession;

type Pattern = ::session::regex::Pattern<StreamSession>;

/// All `match` blocks, by name.
#[derive(Default)]
pub(crate) struct StreamMatches(HashMap<Box<[u8]>, Arc<StreamMatch>>);

/// A `match` block. Without one, connecting is enough.
#[derive(Default)]
pub(crate) struct StreamMatch {
    pub(crate) name: Box<[u8]>,
    pub(crate) send: Option<Box<[u8]>>,
    pub(crate) expect: Option<Expected>,
}

/// `expect`
pub(crate) enum Expected {
    /// The received data begins with this.
    Text(Box<[u8]>),
    Pattern(Pattern),
}

/// The result of comparing received data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DataComparison {
    Equal,
    /// Further data may make it so.
    Open,
    /// The data can no longer be as expected.
    Different,
}

impl StreamMatches {
    pub(crate) fn find(&self, name: &[u8]) -> Option<&Arc<StreamMatch>> {
        self.0.get(name)
    }
}

/// Reads a `match` block.
pub(crate) fn declare(from: &Directive, load: &mut Load<'_>) -> Result<()> {
    let name = from.arg(0);
    let mut block = StreamMatch { name: name.text.clone(), ..StreamMatch::default() };
    for line in from.block.iter().flatten() {
        block.line(line)?;
    }
    let matches = load.registry.of::<StreamMatches>();
    match matches.0.insert(name.text.clone(), Arc::new(block)) {
        None => Ok(()),
        Some(_) => Err(from.error_at(name, format!("duplicate match \"{name}\""))),
    }
}

impl StreamMatch {
    fn line(&mut self, line: &Directive) -> Result<()> {
        if line.block.is_some() {
            return Err(line.error("unexpected \"{\""));
        }
        let is_first = match &*line.name.text {
            b"send" => match &line.args[..] {
                [text] => self.send.replace(unescaped(text, line)?).is_none(),
                _ => return Err(bad_count(line)),
            },
            b"expect" => self.expect.replace(Expected::read(line)?).is_none(),
            _ => return Err(line.error(format!("unknown directive \"{}\"", line.name))),
        };
        match is_first {
            true => Ok(()),
            false => Err(line.error(format!("\"{}\" directive is duplicate", line.name))),
        }
    }
}

impl Expected {
    fn read(line: &Directive) -> Result<Self> {
        let pattern = |word: &Word, caseless| {
            Pattern::compile_alone(&word.text, caseless, word, line).map(Self::Pattern)
        };
        match &line.args[..] {
            [text] => unescaped(text, line).map(Self::Text),
            [operator, word] if *operator.text == *b"~" => pattern(word, false),
            [operator, word] if *operator.text == *b"~*" => pattern(word, true),
            [operator, _] => {
                Err(line.error_at(operator, format!("invalid parameter \"{operator}\"")))
            }
            _ => Err(bad_count(line)),
        }
    }

    /// Compares the data received so far. A match that exceeds its limits counts as none.
    pub(crate) fn compare(&self, received: &[u8], x: &StreamSession) -> DataComparison {
        match self {
            Self::Text(text) if received.starts_with(text) => DataComparison::Equal,
            Self::Text(text) if text.starts_with(received) => DataComparison::Open,
            Self::Text(_) => DataComparison::Different,
            Self::Pattern(pattern) => match pattern.is_match(received, x) {
                Ok(true) => DataComparison::Equal,
                Ok(false) => DataComparison::Open,
                Err(_) => DataComparison::Different,
            },
        }
    }
}

/// A text whose bytes may be written as `\x` and two hexadecimal digits.
fn unescaped(word: &Word, line: &Directive) -> Result<Box<[u8]>> {
    let mut bytes = Vec::with_capacity(word.text.len());
    let mut left = &word.text[..];
    while let [first, after @ ..] = left {
        let Some(digits) = left.strip_prefix(br"\x") else {
            bytes.push(*first);
            left = after;
            continue;
        };
        let Some(byte) = hexadecimal(digits) else {
            let message = format!("\"\\x\" needs two hexadecimal digits in \"{word}\"");
            return Err(line.error_at(word, message));
        };
        bytes.push(byte);
        left = &digits[2..];
    }
    Ok(bytes.into())
}

/// The byte of the first two hexadecimal digits.
fn hexadecimal(text: &[u8]) -> Option<u8> {
    let digit = |at: usize| char::from(*text.get(at)?).to_digit(16);
    u8::try_from(digit(0)? * 16 + digit(1)?).ok()
}

fn bad_count(line: &Directive) -> conf::Error {
    line.error(format!("invalid number of arguments in \"{}\" directive", line.name))
}
