//! One header line of a reply.

use memchr::memchr;

use super::{ReplyField, ReplyFieldError, ReplyName};
use crate::Slice;
use crate::field_line::FieldLine;
use crate::words::find_name_end;

/// Whether CR or NUL occurs within a line.
#[derive(Clone, Copy)]
pub(crate) struct Odd(pub(super) bool);

impl Odd {
    /// Whether CR occurs within that line.
    pub(crate) fn has_cr(self, line: Slice, input: &[u8]) -> bool {
        self.0 && memchr(b'\r', line.of(input)).is_some()
    }
}

/// The field of a line in its usual form, if the bytes before its colon are a name.
#[inline(always)]
pub(super) fn usual(text: &[u8], line: &FieldLine) -> Option<ReplyField> {
    let sent = &text[line.name.clone()];
    let id = ReplyName::of(sent);
    if id == ReplyName::Other && (sent.is_empty() || find_name_end(sent).is_some()) {
        return None;
    }
    let (name, value) = line.slices();
    Some(ReplyField { name, value, id })
}

/// Parses `line`, which has no LF. As in nginx, a line without a colon is a name without a value.
#[inline]
pub(super) fn parse(input: &[u8], line: Slice, odd: Odd) -> Result<ReplyField, ReplyFieldError> {
    let text = line.of(input);
    let end = match find_name_end(text) {
        None => text.len(),
        Some(at) if text[at] == b':' && at > 0 => at,
        Some(at) => return Err(invalid(line, at, text[at])),
    };
    let (mut start, mut last) = ((end + 1).min(text.len()), text.len());
    if odd.0 {
        for byte in [0, b'\r'] {
            if let Some(at) = memchr(byte, &text[start..]) {
                return Err(invalid(line, start + at, byte));
            }
        }
    }
    while start < last && text[start] == b' ' {
        start += 1;
    }
    while start < last && text[last - 1] == b' ' {
        last -= 1;
    }
    let part = |from: usize, to: usize| Slice {
        start: line.start + from as u32,
        end: line.start + to as u32,
    };
    Ok(ReplyField { name: part(0, end), value: part(start, last), id: ReplyName::of(&text[..end]) })
}

fn invalid(line: Slice, at: usize, byte: u8) -> ReplyFieldError {
    ReplyFieldError::Invalid(Slice { start: line.start, end: line.start + at as u32 }, byte)
}
