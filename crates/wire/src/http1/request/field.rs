//! One header line: `name: value`.

use super::HeadError;
use crate::field_line::FieldLine;
use crate::request::{Field, HeadLimits, RequestHead};
use crate::words::find_name_end;
use crate::{Known, Slice};

/// The field of a line in its usual form, if its name has no odd characters.
#[inline(always)]
pub(super) fn usual(text: &[u8], line: &FieldLine) -> Option<Field> {
    let sent = &text[line.name.clone()];
    let id = Known::of(sent);
    // No well-known name has odd characters.
    if id == Known::Other && (sent.is_empty() || class_of(sent) != 0) {
        return None;
    }
    let (name, value) = line.slices();
    Some(Field { name, value, id })
}

/// Parses `line`, which has no CR, LF or NUL, and adds it to the head.
#[inline]
pub(super) fn parse(
    head: &mut RequestHead,
    input: &[u8],
    line: Slice,
    limits: &HeadLimits,
) -> Result<Known, HeadError> {
    let text = line.of(input);
    let colon = find_colon(line, text)?;
    let (name, id) = (&text[..colon], Known::of(&text[..colon]));
    let field = Field { id, ..cut(text, line.start, colon) };
    // No well-known name has odd characters.
    if id == Known::Other && limits.ignore_invalid_headers && is_odd(name, limits) {
        head.ignored.push(Slice { start: line.start, end: field.value.end });
        return Ok(Known::Other);
    }
    head.add(input, field, limits)?;
    Ok(id)
}

/// The offset of the colon in `text`, the text of the line. A name may have neither controls nor
/// spaces: a space before the colon enables request smuggling.
#[inline]
pub(super) fn find_colon(line: Slice, text: &[u8]) -> Result<usize, HeadError> {
    match find_name_end(text) {
        Some(at) if at > 0 && text[at] == b':' => Ok(at),
        Some(at) => Err(invalid(line, at)),
        None => Err(invalid(line, text.len())),
    }
}

/// Whether the configuration refuses such a name.
fn is_odd(name: &[u8], limits: &HeadLimits) -> bool {
    let odd = class_of(name);
    odd & ODD != 0 || odd & UNDERSCORE != 0 && !limits.underscores_in_headers
}

/// The kinds of odd characters in a name.
fn class_of(name: &[u8]) -> u8 {
    name.iter().fold(0, |class, &byte| class | CLASS[usize::from(byte)])
}

fn invalid(line: Slice, at: usize) -> HeadError {
    HeadError::InvalidFieldLine(Slice { start: line.start, end: line.start + at as u32 })
}

/// nginx trims spaces but not tabs.
#[inline]
fn cut(text: &[u8], base: u32, colon: usize) -> Field {
    let (mut start, mut end) = (colon + 1, text.len());
    while start < end && text[start] == b' ' {
        start += 1;
    }
    while start < end && text[end - 1] == b' ' {
        end -= 1;
    }
    let part = |from: usize, to: usize| Slice { start: base + from as u32, end: base + to as u32 };
    Field { name: part(0, colon), value: part(start, end), id: Known::Other }
}

const UNDERSCORE: u8 = 1;
const ODD: u8 = 2;

/// A usual name has letters, digits and "-".
const CLASS: [u8; 256] = {
    let mut class = [ODD; 256];
    let mut byte = 0;
    while byte < 256 {
        if (byte as u8).is_ascii_alphanumeric() {
            class[byte] = 0;
        }
        byte += 1;
    }
    class[b'-' as usize] = 0;
    class[b'_' as usize] = UNDERSCORE;
    class
};
