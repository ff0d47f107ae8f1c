//! An incremental parser of the heads of HTTP/1 replies, as backends send them.
//!
//! Like the request parser, it returns offsets into a buffer that the caller owns, and reads no
//! byte twice. Header lines are read leniently ([`crate::reply`]), but a body length that could be
//! read in two ways is refused.
//!
//! ```text
//! Line --status line--> Fields --empty line--> Done
//! ```

mod error;
mod framing;
mod status_line;
#[cfg(test)]
mod tests;

use crate::Version;
use crate::reply::{FieldParser, ReplyHead, ReplyName};
pub use error::ReplyError;
pub use framing::ReplyBody;
pub(crate) use status_line::{check_opening, parse as parse_status_line};

#[derive(Clone, Copy, Debug, Default)]
pub struct ResponseHeadParser {
    /// The version, once the status line was read.
    pub version: Version,
    expect: ResponseState,
    lines: FieldParser,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ResponseState {
    #[default]
    Line,
    Fields,
    Done,
}

impl ResponseHeadParser {
    /// Continues from where the last call stopped: `input` is the same bytes as before, and those
    /// that arrived since. Returns the length of the head once it is complete.
    pub fn parse(
        &mut self,
        head: &mut ReplyHead,
        input: &[u8],
    ) -> Result<Option<usize>, ReplyError> {
        if self.expect == ResponseState::Line
            && self.lines.is_new()
            && let Some(end) = status_line::parse_usual(head, input)
        {
            self.lines = FieldParser::new(end as u32);
            self.version = Version::HTTP_11;
            self.expect = ResponseState::Fields;
        }
        if self.expect == ResponseState::Line {
            status_line::check_opening(input)?;
            let Some((line, odd)) = self.lines.next_line(input) else { return Ok(None) };
            if odd.has_cr(line, input) {
                return Err(ReplyError::NotHttp);
            }
            self.version = status_line::parse(head, input, line)?;
            self.expect = ResponseState::Fields;
        }
        if self.expect == ResponseState::Fields
            && self.lines.parse(&mut head.fields, input)?.is_none()
        {
            return Ok(None);
        }
        self.expect = ResponseState::Done;
        Ok(Some(self.lines.parsed_to()))
    }

    /// Whether the head says that the server closes the connection after this reply.
    pub fn closes(&self, head: &ReplyHead, input: &[u8]) -> bool {
        self.version < Version::HTTP_11
            || head.fields.has_any(ReplyName::Connection.bit())
                && head
                    .fields
                    .iter()
                    .filter(|field| field.id == ReplyName::Connection)
                    .any(|field| contains_close(field.value.of(input)))
    }
}

/// nginx looks for the word anywhere in the value.
fn contains_close(value: &[u8]) -> bool {
    !value.eq_ignore_ascii_case(b"keep-alive")
        && value
            .windows(5)
            .any(|word| word[0] | 0x20 == b'c' && word.eq_ignore_ascii_case(b"close"))
}
