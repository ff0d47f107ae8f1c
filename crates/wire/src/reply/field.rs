//! One header line of a reply.

use memchr::memchr;

use super::{ReplyField, ReplyFieldError, ReplyName};
use crate::Slice;

/// Whether CR or NUL stands within a line.
#[derive(Clone, Copy)]
pub(crate) struct Odd(pub(super) bool);

impl Odd {
    /// Whether CR stands within that line.
    pub(crate) fn has_cr(self, line: Slice, input: &[u8]) -> bool {
        self.0 && memchr(b'\r', line.of(input)).is_some()
    }
}

/// Parses `line`, which has no LF. Without a colon it is a name without a value, as nginx has it.
pub(super) fn parse(input: &[u8], line: Slice, odd: Odd) -> Result<ReplyField, ReplyFieldError> {
    let text = line.of(input);
    let stop = text.iter().position(|&byte| STOPS[usize::from(byte)]);
    let end = match stop {
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

/// What ends a name, or may not stand in it: the colon, controls and spaces.
const STOPS: [bool; 256] = {
    let mut stops = [false; 256];
    let mut byte = 0;
    while byte <= 0x20 {
        stops[byte] = true;
        byte += 1;
    }
    stops[b':' as usize] = true;
    stops[0x7f] = true;
    stops
};

fn invalid(line: Slice, at: usize, byte: u8) -> ReplyFieldError {
    ReplyFieldError::Invalid(Slice { start: line.start, end: line.start + at as u32 }, byte)
}
