//! One line of the error log, built on the stack.

use std::fmt;

use crate::text::{STAND_IN_LEN, find_raw};

/// The maximum length of a line including its end; a longer line is truncated, as in nginx.
pub const LINE_MAX: usize = 2048;

const DELETE: u8 = 0x7f;
/// The first byte of two-byte control characters in UTF-8.
const C1_LEAD: u8 = 0xc2;

fn may_control(byte: u8) -> bool {
    byte < b' ' || byte == DELETE || byte == C1_LEAD
}

/// A line being built. Bytes beyond the maximum are dropped.
pub struct LineBuffer {
    text: [u8; LINE_MAX],
    len: usize,
}

impl LineBuffer {
    /// An empty line.
    pub fn new() -> Self {
        Self { text: [0; LINE_MAX], len: 0 }
    }

    /// Appends bytes unchanged.
    pub fn push(&mut self, bytes: &[u8]) {
        let room = LINE_MAX - 1 - self.len;
        let bytes = &bytes[..bytes.len().min(room)];
        self.text[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }

    /// Appends formatted text.
    pub fn format(&mut self, text: fmt::Arguments<'_>) {
        // Writing to a line does not fail; an argument's own `Display` may, which ends the text.
        let _ = fmt::write(self, text);
    }

    /// Writes the control characters from `start` on as `\xHH`, so that no terminal executes those
    /// of a request. There are almost never any. Other text, including UTF-8, is unchanged.
    pub(crate) fn escape_controls(&mut self, start: usize) {
        let Some(first) = self.text[start..self.len].iter().position(|byte| may_control(*byte))
        else {
            return;
        };
        let text = self.text;
        let mut rest = &text[start + first..self.len];
        self.len = start + first;
        loop {
            let (length, escape) = match rest {
                [] => return,
                // U+0080 to U+009F.
                [C1_LEAD, 0x80..0xa0, ..] => (2, true),
                [..b' ' | DELETE, ..] => (1, true),
                _ => (1, false),
            };
            let (bytes, after) = rest.split_at(length);
            match escape {
                true => bytes.iter().for_each(|byte| self.push_escaped(*byte)),
                false => self.push(bytes),
            }
            rest = after;
        }
    }

    fn push_escaped(&mut self, byte: u8) {
        const HEX: &[u8; 16] = b"0123456789ABCDEF";
        let text = [b'\\', b'x', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]];
        self.push(&text);
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Ends the line.
    pub(crate) fn end(&mut self) {
        self.text[self.len] = b'\n';
        self.len += 1;
    }

    /// The line so far.
    pub fn as_bytes(&self) -> &[u8] {
        &self.text[..self.len]
    }
}

impl Default for LineBuffer {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Write for LineBuffer {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut rest = text.as_bytes();
        while let Some((at, byte)) = find_raw(rest) {
            self.push(&rest[..at]);
            self.push(&[byte]);
            rest = &rest[at + STAND_IN_LEN..];
        }
        self.push(rest);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_cut_and_still_ends() {
        let mut line = LineBuffer::new();
        line.format(format_args!("{}", "x".repeat(5000)));
        line.push(b"y");
        line.end();
        assert_eq!(line.as_bytes().len(), LINE_MAX);
        assert!(line.as_bytes().ends_with(b"x\n"));
    }

    fn escaped(text: &[u8]) -> Vec<u8> {
        let mut line = LineBuffer::new();
        line.push(b"\t: ");
        let start = line.len();
        line.push(text);
        line.escape_controls(start);
        line.as_bytes()[start..].to_vec()
    }

    #[test]
    fn control_characters_are_escaped() {
        let table: [(&[u8], &str); 4] = [
            (b"\x1b[2Jx\0\x08\r\n\x7f", "\\x1B[2Jx\\x00\\x08\\x0D\\x0A\\x7F"),
            (b"a\tb", "a\\x09b"),
            (b"\"GET /a%20b?c=\\x HTTP/1.1\"", "\"GET /a%20b?c=\\x HTTP/1.1\""),
            ("/caf\u{e9}".as_bytes(), "/caf\u{e9}"),
        ];
        for (text, expected) in table {
            assert_eq!(escaped(text), expected.as_bytes());
        }
        assert_eq!(escaped("\u{9b}31m\u{a0}".as_bytes()), b"\\xC2\\x9B31m\xc2\xa0");
    }

    #[test]
    fn escapes_do_not_overflow_the_line() {
        for length in 500..520 {
            let mut line = LineBuffer::new();
            line.push(&vec![0x1b; length]);
            line.escape_controls(0);
            line.end();
            assert!(line.as_bytes().len() <= LINE_MAX);
            assert!(!line.as_bytes().contains(&0x1b));
        }
    }
}
