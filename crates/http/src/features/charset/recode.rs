//! Converts a body, whole or in pieces. If a piece ends within a character, at most three bytes
//! wait for the next piece.

use std::io::Write;

use super::map::{Pages, Recoding};
use super::utf8::{self, Decoded};
use crate::exchange::{BodyError, BodyFilter, Bytes, Chunk, Exchange, PieceQueue};

/// The longest sequence of UTF-8.
const SEQUENCE_MAX: usize = 4;

pub(super) struct Recoder {
    recoding: Recoding,
    /// The beginning of an incomplete character.
    begun: Vec<u8>,
}

impl BodyFilter for Recoder {
    fn push(
        &mut self,
        _: &mut Exchange,
        piece: Option<Chunk>,
        out: &mut PieceQueue,
    ) -> Result<(), BodyError> {
        match piece {
            Some(Chunk::Bytes(bytes)) => {
                net::spend(bytes.len());
                out.put(Chunk::Bytes(self.recode(bytes)));
            }
            other => out.pass(other),
        }
        Ok(())
    }
}

impl Recoder {
    pub(super) fn new(recoding: Recoding) -> Self {
        Self { recoding, begun: Vec::new() }
    }

    fn recode(&mut self, bytes: Bytes) -> Bytes {
        let text = bytes.as_ref();
        if self.begun.is_empty() && self.recoding.is_unchanged(text) {
            return bytes;
        }
        let mut out = Vec::with_capacity(text.len());
        match &self.recoding {
            Recoding::Bytes(table) => {
                out.extend(text.iter().map(|byte| table[usize::from(*byte)]));
            }
            Recoding::ToUtf8(table) => {
                text.iter().for_each(|byte| {
                    out.extend_from_slice(table[usize::from(*byte)].as_bytes());
                });
            }
            Recoding::FromUtf8(pages) => {
                let rest = complete(&mut self.begun, text, pages, &mut out);
                self.begun.extend_from_slice(from_utf8(rest, pages, &mut out));
            }
        }
        Bytes::Owned(out)
    }
}

impl Recoding {
    /// Whether the text is the same in both charsets.
    fn is_unchanged(&self, text: &[u8]) -> bool {
        match self {
            Self::Bytes(table) => text.iter().all(|byte| table[usize::from(*byte)] == *byte),
            Self::ToUtf8(table) => {
                text.iter().all(|byte| table[usize::from(*byte)].as_bytes() == [*byte])
            }
            Self::FromUtf8(_) => text.is_ascii(),
        }
    }
}

/// Completes the character that an earlier piece began, if this piece is long enough. Returns the
/// rest of the piece.
fn complete<'t>(begun: &mut Vec<u8>, text: &'t [u8], pages: &Pages, out: &mut Vec<u8>) -> &'t [u8] {
    if begun.is_empty() {
        return text;
    }
    let before = begun.len();
    begun.extend_from_slice(&text[..text.len().min(SEQUENCE_MAX - before)]);
    let length = match utf8::decode(begun) {
        Decoded::Incomplete => return &[],
        Decoded::Character(character, length) => {
            write(character, pages, out);
            length
        }
        Decoded::Invalid(length) => {
            out.push(b'?');
            length.max(before)
        }
    };
    begun.clear();
    &text[length - before..]
}

/// Converts complete characters. Returns the beginning of an incomplete one.
fn from_utf8<'t>(mut text: &'t [u8], pages: &Pages, out: &mut Vec<u8>) -> &'t [u8] {
    loop {
        let ascii = text.iter().position(|byte| !byte.is_ascii()).unwrap_or(text.len());
        out.extend_from_slice(&text[..ascii]);
        text = &text[ascii..];
        if text.is_empty() {
            return text;
        }
        match utf8::decode(text) {
            Decoded::Incomplete => return text,
            Decoded::Character(character, length) => {
                write(character, pages, out);
                text = &text[length..];
            }
            Decoded::Invalid(length) => {
                out.push(b'?');
                text = &text[length..];
            }
        }
    }
}

/// Writes a character; one that the charset lacks as an HTML entity.
fn write(character: u32, pages: &Pages, out: &mut Vec<u8>) {
    let page = pages.get((character >> 8) as usize).and_then(Option::as_ref);
    match page.map_or(0, |page| page[(character & 0xff) as usize]) {
        0 => write!(out, "&#{character};").expect("writing to memory succeeds"),
        byte => out.push(byte),
    }
}
