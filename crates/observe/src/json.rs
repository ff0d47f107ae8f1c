//! Text and fields in JSON, such that every reader accepts them whatever the bytes are.
//!
//! Characters are escaped as RFC 8259 requires, and so are those that a terminal may execute: DEL
//! and U+0080 to U+009F. A byte that is not UTF-8 becomes the text `\xHH`, the form that control
//! characters have in the text of the error log.

use crate::LineBuffer;

const DELETE: u8 = 0x7f;
/// The first byte of two-byte control characters in UTF-8.
const C1_LEAD: u8 = 0xc2;
const HEX: &[u8; 16] = b"0123456789ABCDEF";

/// The most bytes that one value takes, so that a long one leaves room for others.
const VALUE_MAX: usize = 768;
/// The longest number.
const DIGITS_MAX: usize = 20;

/// A part of a JSON string.
#[derive(Clone, Copy)]
enum JsonPiece<'t> {
    Plain(&'t str),
    /// An escape sequence, and its length.
    Escape([u8; 6], usize),
}

/// Appends the text as it is inside a JSON string.
pub fn json_text(text: &[u8], out: &mut Vec<u8>) {
    pieces(text, |piece| {
        match piece {
            JsonPiece::Plain(text) => out.extend_from_slice(text.as_bytes()),
            JsonPiece::Escape(bytes, length) => out.extend_from_slice(&bytes[..length]),
        }
        true
    });
}

/// Whether [`json_text`] certainly changes nothing: the text is ASCII without special characters.
pub fn is_plain_json(text: &[u8]) -> bool {
    text.iter().all(|byte| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\'))
}

/// Calls `put` for each piece; false if `put` returned false, which ends it.
fn pieces(text: &[u8], mut put: impl FnMut(JsonPiece<'_>) -> bool) -> bool {
    for chunk in text.utf8_chunks() {
        let mut rest = chunk.valid();
        while let Some((at, escaped)) = first_escaped(rest) {
            let (before, after) = rest.split_at(at);
            if !put(JsonPiece::Plain(before)) || !put(escape(escaped)) {
                return false;
            }
            rest = &after[escaped.len_utf8()..];
        }
        if !put(JsonPiece::Plain(rest)) || !chunk.invalid().iter().all(|byte| put(raw(*byte))) {
            return false;
        }
    }
    true
}

/// The first character that must be escaped, and its offset.
fn first_escaped(text: &str) -> Option<(usize, char)> {
    let bytes = text.as_bytes();
    let must = |(at, byte): (usize, &u8)| match *byte {
        b'"' | b'\\' | ..b' ' | DELETE => true,
        C1_LEAD => bytes.get(at + 1).is_some_and(|next| *next < 0xa0),
        _ => false,
    };
    let at = bytes.iter().enumerate().position(must)?;
    Some((at, text[at..].chars().next()?))
}

fn escape(character: char) -> JsonPiece<'static> {
    let short = match character {
        '"' | '\\' => character as u8,
        '\n' => b'n',
        '\r' => b'r',
        '\t' => b't',
        _ => {
            let byte = u32::from(character) as u8;
            return JsonPiece::Escape([b'\\', b'u', b'0', b'0', high(byte), low(byte)], 6);
        }
    };
    JsonPiece::Escape([b'\\', short, 0, 0, 0, 0], 2)
}

fn raw(byte: u8) -> JsonPiece<'static> {
    JsonPiece::Escape([b'\\', b'\\', b'x', high(byte), low(byte), 0], 5)
}

fn high(byte: u8) -> u8 {
    HEX[usize::from(byte >> 4)]
}

fn low(byte: u8) -> u8 {
    HEX[usize::from(byte & 15)]
}

/// The fields of an object, in a limited number of bytes. Values are cut, and fields without room
/// are left out, so that the fields are always whole.
pub(crate) struct JsonFields {
    line: LineBuffer,
    /// The greatest length.
    max: usize,
    /// The byte before the next field.
    before: u8,
    is_cut: bool,
}

impl JsonFields {
    /// The first fields of an object.
    pub(crate) fn first(max: usize) -> Self {
        Self { line: LineBuffer::new(), max, before: b'{', is_cut: false }
    }

    /// Further fields of an object.
    pub(crate) fn further(max: usize) -> Self {
        Self { before: b',', ..Self::first(max) }
    }

    pub(crate) fn number(&mut self, name: &str, value: u64) {
        if self.begin(name, DIGITS_MAX) {
            self.line.format(format_args!("{value}"));
        }
    }

    /// A string made of these parts.
    pub(crate) fn text(&mut self, name: &str, parts: &[&[u8]]) {
        if !self.begin(name, 2) {
            return;
        }
        self.line.push(b"\"");
        let end = (self.max - 1).min(self.line.len() + VALUE_MAX);
        let is_whole = parts.iter().all(|part| pieces(part, |piece| self.piece(piece, end)));
        self.is_cut |= !is_whole;
        self.line.push(b"\"");
    }

    /// Fields that were written by another value of this type.
    pub(crate) fn written(&mut self, fields: &[u8]) {
        match self.line.len() + fields.len() <= self.max {
            true => self.line.push(fields),
            false => self.is_cut = true,
        }
    }

    /// Writes the name if there is room for it and a value of `least` bytes.
    fn begin(&mut self, name: &str, least: usize) -> bool {
        let fits = self.line.len() + name.len() + r#","":"#.len() + least <= self.max;
        if fits {
            self.line.format(format_args!("{}\"{name}\":", char::from(self.before)));
            self.before = b',';
        }
        self.is_cut |= !fits;
        fits
    }

    /// Appends as much as fits before `end`; false if that is not all.
    fn piece(&mut self, piece: JsonPiece<'_>, end: usize) -> bool {
        let room = end.saturating_sub(self.line.len());
        match piece {
            JsonPiece::Plain(text) => {
                let length = text.floor_char_boundary(room);
                self.line.push(&text.as_bytes()[..length]);
                length == text.len()
            }
            JsonPiece::Escape(bytes, length) => {
                let fits = length <= room;
                self.line.push(if fits { &bytes[..length] } else { b"" });
                fits
            }
        }
    }

    /// Whether anything did not fit.
    pub(crate) fn is_cut(&self) -> bool {
        self.is_cut
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.line.as_bytes()
    }

    pub(crate) fn into_line(self) -> LineBuffer {
        self.line
    }
}

#[cfg(test)]
mod tests;
