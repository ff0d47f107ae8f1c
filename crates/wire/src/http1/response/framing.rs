//! How the end of a reply's body is found (RFC 9112, section 6.3).

use super::ReplyError;
use crate::http1::framing::content_length;
use crate::reply::{ReplyHead, ReplyName};

/// The data after a reply's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyBody {
    /// No body, even if the head announces one.
    None,
    /// This number of bytes.
    Length(u64),
    Chunked,
    /// Bytes until the connection ends.
    Close,
}

impl ReplyBody {
    /// Reads the framing of a complete `head`, whose bytes are `input`. `to_head`: the reply
    /// answers a HEAD request.
    pub fn of(head: &ReplyHead, input: &[u8], to_head: bool) -> Result<Self, ReplyError> {
        if head.fields.repeats_any(FRAMING) {
            return Err(duplicate(head));
        }
        let length = head.field(ReplyName::ContentLength).copied();
        let coding = head.field(ReplyName::TransferEncoding).copied();
        let framed = match (length, coding) {
            (Some(_), Some(_)) => return Err(ReplyError::LengthAndCoding),
            (Some(field), None) => Self::Length(
                content_length(field.value.of(input))
                    .ok_or(ReplyError::InvalidContentLength(field))?,
            ),
            (None, Some(field)) if field.value.of(input).eq_ignore_ascii_case(b"chunked") => {
                Self::Chunked
            }
            (None, Some(field)) => return Err(ReplyError::UnknownCoding(field.value)),
            (None, None) => Self::Close,
        };
        let bodiless = to_head || matches!(head.status, 100..=199 | 204 | 304);
        Ok(if bodiless { Self::None } else { framed })
    }
}

/// The fields that may occur once.
const FRAMING: u32 = ReplyName::ContentLength.bit() | ReplyName::TransferEncoding.bit();

/// The first of these fields that occurs again.
#[cold]
fn duplicate(head: &ReplyHead) -> ReplyError {
    let mut again = head.fields.iter().enumerate().filter_map(|(at, field)| {
        let is_framing = FRAMING & field.id.bit() != 0;
        let previous = head.fields[..at].iter().find(|earlier| earlier.id == field.id);
        previous.filter(|_| is_framing).map(|previous| (*field, *previous))
    });
    let (field, previous) = again.next().expect("a field is there more than once");
    ReplyError::DuplicateField { field, previous }
}
