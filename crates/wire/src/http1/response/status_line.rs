//! `HTTP/1.1 200 OK`

use super::ReplyError;
use crate::reply::ReplyHead;
use crate::words::find_control;
use crate::{Slice, Version};

/// Whether the input may become a status line. The first bytes reveal a server of another protocol.
pub(crate) fn check_opening(input: &[u8]) -> Result<(), ReplyError> {
    let length = input.len().min(OPENING.len());
    if input[..length] == OPENING[..length] { Ok(()) } else { Err(ReplyError::NotHttp) }
}

const OPENING: &[u8] = b"HTTP/";

/// Reads a line in the usual form, `HTTP/1.1 200 OK` and CR LF, at the beginning of `input`.
/// Returns the offset of the next line; `None` if the line is incomplete or has another form.
#[inline(always)]
pub(super) fn parse_usual(head: &mut ReplyHead, input: &[u8]) -> Option<usize> {
    let (code, rest) = input.strip_prefix(b"HTTP/1.1 ")?.split_first_chunk::<3>()?;
    let is_status = code[0] != b'0' && code.iter().all(u8::is_ascii_digit);
    if !is_status || rest.first() != Some(&b' ') {
        return None;
    }
    let cr = find_control(input, input.len() - rest.len())?;
    if !input[cr..].starts_with(b"\r\n") || cr > Slice::BUFFER_MAX - 2 {
        return None;
    }
    head.status = status(code);
    head.status_line = Slice::new("HTTP/1.1 ".len(), cr);
    Some(cr + 2)
}

fn status(code: &[u8; 3]) -> u16 {
    code.iter().fold(0, |number, digit| number * 10 + u16::from(digit - b'0'))
}

/// Reads the line into `head` and returns the version.
pub(crate) fn parse(
    head: &mut ReplyHead,
    input: &[u8],
    line: Slice,
) -> Result<Version, ReplyError> {
    let text = line.of(input);
    let (version, at) = version(text).ok_or(ReplyError::NotHttp)?;
    let spaces = text[at..].iter().take_while(|&&byte| byte == b' ').count();
    let code = text.get(at + spaces..).and_then(|rest| rest.first_chunk::<3>());
    // Statuses below 100 do not exist (RFC 9110 15), and our own heads could not contain them.
    let is_status = |code: &&[u8; 3]| code[0] != b'0' && code.iter().all(u8::is_ascii_digit);
    let code = code.filter(|code| spaces > 0 && is_status(code));
    let code = code.ok_or(ReplyError::NotHttp)?;
    let start = at + spaces;
    // IIS may send 403.1, 403.2, etc.
    if !matches!(text.get(start + 3), None | Some(b' ' | b'.')) {
        return Err(ReplyError::NotHttp);
    }
    head.status = status(code);
    head.status_line = Slice { start: line.start + start as u32, end: line.end };
    Ok(version)
}

/// The version, and the offset after it.
fn version(text: &[u8]) -> Option<(Version, usize)> {
    let rest = text.strip_prefix(OPENING)?;
    let (major, major_end) = number(rest)?;
    let minor_text = rest[major_end..].strip_prefix(b".")?;
    let (minor, minor_end) = number(minor_text)?;
    if major == 0 {
        return None;
    }
    let version = if (major, minor) >= (1, 1) { Version::HTTP_11 } else { Version::HTTP_10 };
    Some((version, OPENING.len() + major_end + 1 + minor_end))
}

/// A number up to 99 with at most three digits, and the number of digits.
fn number(text: &[u8]) -> Option<(u16, usize)> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if !(1..=3).contains(&digits) {
        return None;
    }
    let fold = |number, digit: &u8| number * 10 + u16::from(digit - b'0');
    let number = text[..digits].iter().fold(0, fold);
    (number <= 99).then_some((number, digits))
}
