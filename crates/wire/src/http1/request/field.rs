//! One header line: `name: value`.

use super::HeadError;
use crate::request::{Field, HeadLimits, RequestHead};
use crate::{Known, Slice};

/// Parses `line`, which has no CR, LF or NUL, and adds it to the head.
pub(super) fn parse(
    head: &mut RequestHead,
    input: &[u8],
    line: Slice,
    limits: &HeadLimits,
) -> Result<Known, HeadError> {
    let (colon, odd) = scan_name(line, input)?;
    let field = cut(input, line, colon);
    if limits.ignore_invalid_headers
        && (odd & ODD != 0 || odd & UNDERSCORE != 0 && !limits.underscores_in_headers)
    {
        head.ignored.push(Slice { start: line.start, end: field.value.end });
        return Ok(Known::Other);
    }
    head.add(input, field, limits)?;
    Ok(field.id)
}

/// The offset of the colon, and which odd characters come before it.
#[inline]
pub(super) fn scan_name(line: Slice, input: &[u8]) -> Result<(usize, u8), HeadError> {
    let text = line.of(input);
    let mut odd = 0;
    for (at, &byte) in text.iter().enumerate() {
        match CLASS[byte as usize] {
            TOKEN => {}
            COLON if at > 0 => return Ok((at, odd)),
            COLON | NEVER => return Err(invalid(line, at)),
            class => odd |= class,
        }
    }
    Err(invalid(line, text.len()))
}

fn invalid(line: Slice, at: usize) -> HeadError {
    HeadError::InvalidFieldLine(Slice { start: line.start, end: line.start + at as u32 })
}

/// nginx trims spaces and no tabs.
#[inline]
fn cut(input: &[u8], line: Slice, colon: usize) -> Field {
    let colon = line.start as usize + colon;
    let (mut start, mut end) = (colon + 1, line.end as usize);
    while start < end && input[start] == b' ' {
        start += 1;
    }
    while start < end && input[end - 1] == b' ' {
        end -= 1;
    }
    let name = Slice { start: line.start, end: colon as u32 };
    Field { name, value: Slice::new(start, end), id: Known::of(name.of(input)) }
}

const TOKEN: u8 = 0;
const UNDERSCORE: u8 = 1;
const ODD: u8 = 2;
const COLON: u8 = 4;
const NEVER: u8 = 8;

/// A name has letters, digits and "-"; what else may be let through is up to the configuration, but
/// never controls and spaces: a space before the colon is how requests are smuggled.
const CLASS: [u8; 256] = {
    let mut class = [ODD; 256];
    let mut byte = 0;
    while byte < 256 {
        if (byte as u8).is_ascii_alphanumeric() {
            class[byte] = TOKEN;
        } else if byte <= 0x20 || byte == 0x7f {
            class[byte] = NEVER;
        }
        byte += 1;
    }
    class[b'-' as usize] = TOKEN;
    class[b'_' as usize] = UNDERSCORE;
    class[b':' as usize] = COLON;
    class
};
