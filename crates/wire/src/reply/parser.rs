//! Header lines of a reply, one after the other.

use memchr::memchr;

use super::field::{self, Odd};
use super::{FIELDS_MAX, ReplyFieldError, ReplyFieldList};
use crate::Slice;
use crate::field_line::{self, FieldLine};
use crate::words::find_control;

/// Reads header lines up to the empty line that ends them.
#[derive(Clone, Copy, Debug, Default)]
pub struct FieldParser {
    /// The offset of the next line.
    start: u32,
    /// The end of the bytes searched for the line's end.
    searched: u32,
}

impl FieldParser {
    /// A parser for lines from this offset on.
    pub fn new(start: u32) -> Self {
        Self { start, searched: start }
    }

    /// Continues from where the last call stopped: `input` is the same bytes as before, and those
    /// that arrived since. Returns the end of the lines once they are complete; it is not to be
    /// called again after that.
    pub fn parse(
        &mut self,
        fields: &mut ReplyFieldList,
        input: &[u8],
    ) -> Result<Option<usize>, ReplyFieldError> {
        loop {
            if self.parse_usual(fields, input) {
                return Ok(Some(self.parsed_to()));
            }
            let Some((line, odd)) = self.next_line(input) else { return Ok(None) };
            if line.is_empty() {
                return Ok(Some(self.parsed_to()));
            }
            let field = field::parse(input, line, odd)?;
            if fields.len() >= FIELDS_MAX {
                return Err(ReplyFieldError::TooMany);
            }
            fields.push(field);
        }
    }

    /// Parses lines in their usual form, which cannot be invalid, up to the first in another form.
    /// A line whose end was searched for before is not tried again. Returns whether the empty line
    /// that ends them was found.
    #[inline(always)]
    fn parse_usual(&mut self, fields: &mut ReplyFieldList, input: &[u8]) -> bool {
        let input = &input[..input.len().min(Slice::BUFFER_MAX)];
        while self.searched == self.start
            && fields.len() < FIELDS_MAX
            && let Some(line) = FieldLine::usual(input, self.start as usize)
            && let Some(field) = field::usual(input, &line)
        {
            self.start = line.end as u32;
            self.searched = self.start;
            fields.push(field);
        }
        let is_end = self.searched == self.start && field_line::is_end(input, self.start as usize);
        if is_end {
            self.start += 2;
            self.searched = self.start;
        }
        is_end
    }

    /// Whether nothing was searched yet.
    pub(crate) fn is_new(&self) -> bool {
        self.searched == 0
    }

    /// The offset of the next line, or the end of the last.
    pub fn parsed_to(&self) -> usize {
        self.start as usize
    }

    /// The next line without its end, and whether it contains CR or NUL. One search stops at the
    /// line's end and at these bytes (and at other control characters, which it passes).
    #[inline(always)]
    pub(crate) fn next_line(&mut self, input: &[u8]) -> Option<(Slice, Odd)> {
        let input = &input[..input.len().min(Slice::BUFFER_MAX)];
        let mut from = self.searched as usize;
        while let Some(at) = find_control(input, from) {
            match (input[at], input.get(at + 1)) {
                (b'\n', _) => return Some(self.line(at, at, Odd(false))),
                (b'\r', Some(b'\n')) => return Some(self.line(at, at + 1, Odd(false))),
                (b'\r' | 0, _) => return self.next_odd_line(input, at),
                _ => from = at + 1,
            }
        }
        self.searched = input.len() as u32;
        None
    }

    /// Finds the end of a line with NUL, or with CR that is not followed by LF, so far, at `at`.
    #[cold]
    fn next_odd_line(&mut self, input: &[u8], at: usize) -> Option<(Slice, Odd)> {
        self.searched = at as u32;
        let lf = at + memchr(b'\n', &input[at..])?;
        let mut end = lf;
        // nginx accepts any number of CR before LF.
        while end > at && input[end - 1] == b'\r' {
            end -= 1;
        }
        Some(self.line(end, lf, Odd(end > at)))
    }

    #[inline]
    fn line(&mut self, end: usize, lf: usize, odd: Odd) -> (Slice, Odd) {
        let line = Slice { start: self.start, end: end as u32 };
        self.start = lf as u32 + 1;
        self.searched = self.start;
        (line, odd)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::super::ReplyName;
    use super::*;

    #[test]
    fn lines_are_the_same_whole_and_byte_by_byte() {
        let text = b"##Status: 200 OK\nX-Y:\r\nfoo\r\nSet-Cookie:  a \n\nrest";
        let (mut parser, mut fields) = (FieldParser::new(2), ReplyFieldList::default());
        assert_eq!(parser.parse(&mut fields, text), Ok(Some(text.len() - 4)));
        let named: Vec<_> = fields.iter().map(|field| (field.id, field.value.of(text))).collect();
        let expected: [(_, &[u8]); 4] = [
            (ReplyName::Status, b"200 OK"),
            (ReplyName::Other, b""),
            (ReplyName::Other, b""),
            (ReplyName::SetCookie, b"a"),
        ];
        assert_eq!(named, expected);
        let (mut bytewise, mut again) = (FieldParser::new(2), ReplyFieldList::default());
        for end in 2..text.len() - 4 {
            assert_eq!(bytewise.parse(&mut again, &text[..end]), Ok(None), "{end}");
        }
        assert_eq!(bytewise.parse(&mut again, text), Ok(Some(parser.parsed_to())));
        assert_eq!(again, fields);
    }

    #[test]
    fn too_many_lines() {
        let text = b"a\n".repeat(FIELDS_MAX + 1);
        let parsed = FieldParser::default().parse(&mut ReplyFieldList::default(), &text);
        assert_eq!(parsed, Err(ReplyFieldError::TooMany));
    }
}
