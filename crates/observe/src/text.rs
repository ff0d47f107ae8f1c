//! Arbitrary bytes in a log message.
//!
//! Messages are formatted, and formatted text is UTF-8, but paths and header fields need not be. A
//! byte that is not UTF-8 is therefore formatted as a stand-in, a private-use character, and
//! [`LineBuffer`](crate::LineBuffer) writes the byte itself: a log line has exactly the original
//! bytes, as nginx's has. Stand-ins sent by a client are split into their bytes, so that they are
//! not mistaken for ours.

use std::fmt::{self, Write};

/// Displays bytes as text without allocating, for a log message.
pub struct Text<'b>(pub &'b [u8]);

/// U+10FF80 to U+10FFFF represent the bytes 0x80 to 0xFF.
const STAND_IN: u32 = 0x10_ff00;

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            let mut valid = chunk.valid();
            while let Some(at) = valid.find(is_stand_in) {
                let (before, found) = valid.split_at(at);
                let (found, after) = found.split_at(STAND_IN_LEN);
                f.write_str(before)?;
                found.bytes().try_for_each(|byte| write_raw(byte, f))?;
                valid = after;
            }
            f.write_str(valid)?;
            chunk.invalid().iter().try_for_each(|byte| write_raw(*byte, f))?;
        }
        Ok(())
    }
}

/// Length of a stand-in's encoding.
pub(crate) const STAND_IN_LEN: usize = 4;

fn write_raw(byte: u8, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    // Never an ASCII byte, since ASCII is always valid.
    char::from_u32(STAND_IN | u32::from(byte)).map_or(Ok(()), |stand_in| f.write_char(stand_in))
}

fn is_stand_in(character: char) -> bool {
    u32::from(character) >= STAND_IN | 0x80
}

/// The first stand-in in a text: its offset, and its byte.
pub(crate) fn find_raw(text: &[u8]) -> Option<(usize, u8)> {
    let mut from = 0;
    while let Some(at) = text[from..].iter().position(|byte| *byte == 0xf4) {
        let at = from + at;
        if let [_, 0x8f, high @ (0xbe | 0xbf), low, ..] = text[at..] {
            return Some((at, 0x80 | (high & 1) << 6 | low & 0x3f));
        }
        from = at + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LineBuffer;

    #[test]
    fn every_byte_reaches_the_line() {
        let all: Vec<u8> = (0..=255).collect();
        let stand_ins = "\u{10ff7f}\u{10ff80}x\u{10ffff}".as_bytes();
        for bytes in [&all[..], b"/caf\xc3\xa9/\xe9\xff!", b"\xf4", b"\xf4\x8f\xbe", stand_ins] {
            let mut line = LineBuffer::new();
            line.format(format_args!("\"{}\" failed", Text(bytes)));
            let expected = [&b"\""[..], bytes, b"\" failed"].concat();
            assert_eq!(line.as_bytes(), expected, "{bytes:x?}");
        }
    }

    #[test]
    fn bytes_survive_a_message_formatted_twice() {
        let message = format!("open() \"{}\"", Text(b"\xe9"));
        let mut line = LineBuffer::new();
        line.format(format_args!("{message}"));
        assert_eq!(line.as_bytes(), b"open() \"\xe9\"");
    }
}
