//! The common part of the gateway protocols (FastCGI, SCGI, uwsgi): a request is a list of CGI
//! variables (RFC 3875), which include its header fields.
//!
//! Each protocol has its own encoding of variables ([`Pairs`]), with the length of a value before
//! the value. A value is written in place and its length filled in afterwards, so nothing is
//! copied. A reply begins with header lines, of which `Status` has the status.

use alloc::vec::Vec;

use crate::Slice;
use crate::http1::response::{check_opening, parse_status_line};
use crate::reply::{FieldParser, ReplyFieldError, ReplyHead, ReplyName};

/// Reads the head of a reply.
#[derive(Clone, Copy, Debug, Default)]
pub struct CgiHeadParser {
    lines: FieldParser,
    first_line: FirstLine,
}

/// The meaning of a first line in the form of an HTTP status line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum FirstLine {
    /// None: it is skipped, as in nginx, and `Status` has the status.
    #[default]
    Skipped,
    /// It has the status.
    Status,
    /// The first line was already read.
    Past,
}

/// Why a head is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CgiHeadError {
    /// A line is invalid.
    Field(ReplyFieldError),
    /// `Status` is not a number.
    Status(Slice),
}

impl CgiHeadParser {
    /// For a reply that may begin with an HTTP status line, as those of SCGI and uwsgi applications
    /// may.
    pub fn with_status_line() -> Self {
        Self { first_line: FirstLine::Status, ..Self::default() }
    }

    /// Continues from where the last call stopped: `input` is the same bytes as before, and those
    /// that arrived since. Returns the length of the head once it is complete.
    pub fn parse(
        &mut self,
        head: &mut ReplyHead,
        input: &[u8],
    ) -> Result<Option<usize>, CgiHeadError> {
        if self.first_line != FirstLine::Past {
            if check_opening(input).is_ok() {
                let mut lines = self.lines;
                let Some((line, odd)) = lines.next_line(input) else { return Ok(None) };
                let is_skipped = self.first_line == FirstLine::Skipped;
                if is_skipped
                    || !odd.has_cr(line, input) && parse_status_line(head, input, line).is_ok()
                {
                    self.lines = lines;
                }
            }
            self.first_line = FirstLine::Past;
        }
        let parsed = self.lines.parse(&mut head.fields, input).map_err(CgiHeadError::Field)?;
        if parsed.is_some() && head.status == 0 {
            settle_status(head, input)?;
        }
        Ok(parsed)
    }
}

/// `Status: 404 Not Found`. Without one, a `Location` is a redirect (RFC 3875, section 6.3.3).
fn settle_status(head: &mut ReplyHead, input: &[u8]) -> Result<(), CgiHeadError> {
    let Some(field) = head.field(ReplyName::Status) else {
        let redirects = head.field(ReplyName::Location).is_some();
        head.status = if redirects { 302 } else { 200 };
        return Ok(());
    };
    let (slice, value) = (field.value, field.value.of(input));
    // Statuses below 100 do not exist (RFC 9110, section 15).
    let digits = value
        .first_chunk::<3>()
        .filter(|digits| digits[0] != b'0' && digits.iter().all(u8::is_ascii_digit));
    // Four digits are invalid; `403.1` is a status of IIS.
    let digits = digits.filter(|_| !value.get(3).is_some_and(u8::is_ascii_digit));
    let digits = digits.ok_or(CgiHeadError::Status(slice))?;
    head.status = digits.iter().fold(0, |number, digit| number * 10 + u16::from(digit - b'0'));
    if value.len() > digits.len() {
        head.status_line = slice;
    }
    Ok(())
}

/// A variable that a protocol cannot carry: too long, or with a byte that would end it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidVariable;

/// A protocol's encoding of variables.
pub trait Pairs {
    /// Begins the variable `name`. Returns the end of `out`, where the caller appends the value.
    fn open(name: &[u8], out: &mut Vec<u8>) -> usize;

    /// Completes the variable, whose value begins at `value`. `name` is the length of its name.
    fn close(name: usize, value: usize, out: &mut Vec<u8>) -> Result<(), InvalidVariable>;
}

/// Writes a variable with this value.
pub fn write<P: Pairs>(
    name: &[u8],
    value: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), InvalidVariable> {
    let start = P::open(name, out);
    out.extend_from_slice(value);
    P::close(name.len(), start, out)
}

/// Appends the name of the variable for a request's field: `HTTP_ACCEPT_LANGUAGE`.
pub fn field_variable(field: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"HTTP_");
    out.extend(field.iter().map(|&byte| variable_byte(byte)));
}

/// Whether a field's variable has this name after `HTTP_`.
pub fn is_field_variable(field: &[u8], variable: &[u8]) -> bool {
    field.len() == variable.len()
        && field
            .iter()
            .zip(variable)
            .all(|(&own, &other)| variable_byte(own) == other.to_ascii_uppercase())
}

fn variable_byte(byte: u8) -> u8 {
    match byte {
        b'-' => b'_',
        _ => byte.to_ascii_uppercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(
        mut parser: CgiHeadParser,
        text: &str,
    ) -> Result<(u16, Vec<u8>, usize), CgiHeadError> {
        let (mut bytewise, text) = (parser, text.as_bytes());
        let (mut head, mut again) = (ReplyHead::default(), ReplyHead::default());
        let whole = parser.parse(&mut head, text);
        let end = whole.ok().flatten().unwrap_or(text.len());
        let mut pieces = (0..=end).map(|end| bytewise.parse(&mut again, &text[..end]));
        assert_eq!(pieces.find(|parsed| *parsed != Ok(None)), Some(whole), "{text:?}");
        assert_eq!(again.fields, head.fields);
        let end = whole?.expect("complete");
        Ok((head.status, head.status_line.of(text).to_vec(), text.len() - end))
    }

    #[test]
    fn heads() {
        let line = |text: &str| text.as_bytes().to_vec();
        let with_line = CgiHeadParser::with_status_line();
        let table = [
            (CgiHeadParser::default(), "\n", (200, line(""), 0)),
            (CgiHeadParser::default(), "A: b\r\n\r\nbody", (200, line(""), 4)),
            (CgiHeadParser::default(), "Status: 404\n\n", (404, line(""), 0)),
            (CgiHeadParser::default(), "status: 404 Gone\nA: b\n\n", (404, line("404 Gone"), 0)),
            (CgiHeadParser::default(), "Location: /a\r\n\r\n", (302, line(""), 0)),
            (CgiHeadParser::default(), "Location: /a\nStatus: 201 Y\n\n", (201, line("201 Y"), 0)),
            (with_line, "HTTP/1.1 404 Gone\r\nA: b\r\n\r\n", (404, line("404 Gone"), 0)),
            (with_line, "HTTP/1.1 404 Gone\nStatus: 500\n\nx", (404, line("404 Gone"), 1)),
            (with_line, "HTTP-X: b\nStatus: 500\n\n", (500, line(""), 0)),
            (with_line, "HTTP: b\nStatus: 500 Oh\n\n", (500, line("500 Oh"), 0)),
            (with_line, "Status: 500 Oh\n\n", (500, line("500 Oh"), 0)),
        ];
        for (parser, text, expected) in table {
            assert_eq!(parsed(parser, text), Ok(expected), "{text:?}");
        }
    }

    #[test]
    fn a_status_line_is_skipped_where_it_has_no_meaning() {
        let line = |text: &str| text.as_bytes().to_vec();
        let table = [
            ("HTTP/1.1 404 Gone\r\nA: b\r\n\r\n", (200, line(""), 0)),
            ("HTTP/1.1 404 Gone\nStatus: 500 Oh\n\nx", (500, line("500 Oh"), 1)),
            ("HTTP: b\nStatus: 500\n\n", (500, line(""), 0)),
        ];
        for (text, expected) in table {
            assert_eq!(parsed(CgiHeadParser::default(), text), Ok(expected), "{text:?}");
        }
    }

    #[test]
    fn invalid_statuses_are_refused() {
        for value in ["", "20", "abc", "099", "20x OK", "1000", "2000 OK"] {
            let text = alloc::format!("Status: {value}\n\n");
            let slice = Slice::new(8, 8 + value.len());
            assert_eq!(parsed(CgiHeadParser::default(), &text), Err(CgiHeadError::Status(slice)));
        }
    }

    #[test]
    fn fields_are_variables() {
        for (field, variable) in [("Accept-Language", "ACCEPT_LANGUAGE"), ("x_Y-1", "X_Y_1")] {
            let mut name = Vec::new();
            field_variable(field.as_bytes(), &mut name);
            assert_eq!(name, [b"HTTP_", variable.as_bytes()].concat());
            assert!(is_field_variable(field.as_bytes(), variable.as_bytes()));
            assert!(is_field_variable(field.as_bytes(), variable.to_lowercase().as_bytes()));
            assert!(!is_field_variable(&field.as_bytes()[1..], variable.as_bytes()));
        }
        // As in nginx, a hyphen in a variable's name does not match an underscore.
        assert!(!is_field_variable(b"X-Y", b"X-Y"));
    }
}
