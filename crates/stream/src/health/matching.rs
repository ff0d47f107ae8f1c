//! `match`: what a health check sends, and what it expects to receive.

use std::collections::HashMap;
use std::sync::Arc;

use conf::{Directive, Load, Result, Word};

use crate::session::StreamSession;

type Pattern = ::session::regex::Pattern<StreamSession>;

/// All `match` blocks, by name.
#[derive(Default)]
pub(crate) struct StreamMatches(HashMap<Box<[u8]>, Arc<StreamMatch>>);

/// A `match` block. Without one, a connection is enough.
#[derive(Default)]
pub(crate) struct StreamMatch {
    pub(crate) name: Box<[u8]>,
    pub(crate) send: Option<Box<[u8]>>,
    pub(crate) expect: Option<Expected>,
}

/// `expect`
pub(crate) enum Expected {
    /// What is received begins with this.
    Text(Box<[u8]>),
    /// What is received matches this.
    Pattern(Pattern),
}

/// How received data compares with what is expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DataComparison {
    /// It is as expected.
    Equal,
    /// More data may make it so.
    Open,
    /// No further data will.
    Different,
}

impl StreamMatches {
    pub(crate) fn find(&self, name: &[u8]) -> Option<&Arc<StreamMatch>> {
        self.0.get(name)
    }
}

/// Reads a block.
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

    /// Compares what was received so far. A match that was given up is no match.
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

/// The byte that the first two digits are.
fn hexadecimal(text: &[u8]) -> Option<u8> {
    let digit = |at: usize| char::from(*text.get(at)?).to_digit(16);
    u8::try_from(digit(0)? * 16 + digit(1)?).ok()
}

fn bad_count(line: &Directive) -> conf::Error {
    line.error(format!("invalid number of arguments in \"{}\" directive", line.name))
}
