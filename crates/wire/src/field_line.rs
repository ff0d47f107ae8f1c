//! The usual form of a header line: `Name: value` and CR LF, complete in the input.
//!
//! Nearly every line has it, in requests and replies. The parsers take such lines in one pass and
//! leave all others to slower code: lines that are incomplete or too long, with other spaces or
//! control characters, or without a colon.

use core::ops::Range;

use crate::Slice;
use crate::words::{find_colon, find_control};

/// The parts of a line, as offsets in its text.
pub(crate) struct FieldLine {
    pub(crate) name: Range<usize>,
    pub(crate) value: Range<usize>,
    /// The offset of the next line.
    pub(crate) end: usize,
}

/// Whether the empty line that ends a head begins at `start`.
#[inline(always)]
pub(crate) fn is_end(text: &[u8], start: usize) -> bool {
    text.get(start..).is_some_and(|rest| rest.starts_with(b"\r\n"))
}

impl FieldLine {
    /// The line that begins at `start`, if it has the usual form. The bytes before the colon need
    /// not be a valid name.
    #[inline(always)]
    pub(crate) fn usual(text: &[u8], start: usize) -> Option<Self> {
        if *text.get(start)? == b'\r' {
            return None;
        }
        let colon = find_colon(text, start)?;
        let value = if *text.get(colon + 1)? == b' ' { colon + 2 } else { colon + 1 };
        let cr = find_control(text, value)?;
        let is_trimmed = cr == value || text[value] != b' ' && text[cr - 1] != b' ';
        let is_ended = text[cr] == b'\r' && *text.get(cr + 1)? == b'\n';
        let line = Self { name: start..colon, value: value..cr, end: cr + 2 };
        (is_trimmed && is_ended).then_some(line)
    }

    /// Name and value; the text is short enough for slices.
    #[inline(always)]
    pub(crate) fn slices(&self) -> (Slice, Slice) {
        let slice = |part: &Range<usize>| Slice { start: part.start as u32, end: part.end as u32 };
        (slice(&self.name), slice(&self.value))
    }
}
