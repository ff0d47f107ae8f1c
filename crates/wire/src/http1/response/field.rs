//! One header line of a reply.

use super::{FIELDS_MAX, ReplyError, ReplyField, ReplyHead, ReplyName};
use crate::Slice;

/// Parses `line`, which has no LF, and adds it to the head.
pub(super) fn parse(head: &mut ReplyHead, input: &[u8], line: Slice) -> Result<(), ReplyError> {
    let field = cut(input, line)?;
    if head.fields.len() >= FIELDS_MAX {
        return Err(ReplyError::TooManyFields);
    }
    head.fields.push(field);
    Ok(())
}

/// A line without a colon is a name without a value, as nginx has it.
fn cut(input: &[u8], line: Slice) -> Result<ReplyField, ReplyError> {
    let text = line.of(input);
    let stop = text.iter().position(|&byte| byte == b':' || byte <= 0x20 || byte == 0x7f);
    let end = match stop {
        None => text.len(),
        Some(at) if text[at] == b':' && at > 0 => at,
        Some(at) => return Err(invalid(line, at, text[at])),
    };
    let (mut start, mut last) = ((end + 1).min(text.len()), text.len());
    let value = &text[start..];
    if let Some(at) = memchr::memchr2(0, b'\r', value) {
        return Err(invalid(line, start + at, value[at]));
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

fn invalid(line: Slice, at: usize, byte: u8) -> ReplyError {
    ReplyError::InvalidField(Slice { start: line.start, end: line.start + at as u32 }, byte)
}
