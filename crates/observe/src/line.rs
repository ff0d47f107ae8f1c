//! One line of the error log, made on the stack.

use std::fmt;

/// Bytes of a line at most, its end included; what is longer is cut, as in nginx.
pub const LINE_MAX: usize = 2048;

/// A line being made. Whatever does not fit is dropped.
pub struct Line {
    text: [u8; LINE_MAX],
    len: usize,
}

impl Line {
    /// An empty line.
    pub fn new() -> Self {
        Self { text: [0; LINE_MAX], len: 0 }
    }

    /// Appends bytes as they are.
    pub fn push(&mut self, bytes: &[u8]) {
        let room = LINE_MAX - 1 - self.len;
        let bytes = &bytes[..bytes.len().min(room)];
        self.text[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }

    /// Appends formatted text.
    pub fn format(&mut self, text: fmt::Arguments<'_>) {
        // Writing to a line does not fail; an argument's own `Display` may, and ends there.
        let _ = fmt::write(self, text);
    }

    /// How long it is so far.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Ends the line.
    pub(crate) fn end(&mut self) {
        self.text[self.len] = b'\n';
        self.len += 1;
    }

    /// What there is of it.
    pub fn as_bytes(&self) -> &[u8] {
        &self.text[..self.len]
    }
}

impl Default for Line {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push(text.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_is_cut_and_still_ends() {
        let mut line = Line::new();
        line.format(format_args!("{}", "x".repeat(5000)));
        line.push(b"y");
        line.end();
        assert_eq!(line.as_bytes().len(), LINE_MAX);
        assert!(line.as_bytes().ends_with(b"x\n"));
    }
}
