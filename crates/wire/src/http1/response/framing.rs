//! How the end of a reply's body is found (RFC 9112, section 6.3).

use super::ReplyError;
use crate::http1::framing::content_length;
use crate::reply::{ReplyHead, ReplyName};

/// The data after a reply's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyBody {
    /// Nothing, whatever the head says.
    None,
    /// So many bytes.
    Length(u64),
    /// Chunks.
    Chunked,
    /// Bytes until the connection ends.
    Close,
}

impl ReplyBody {
    /// Reads the framing of a complete `head`, whose bytes are `input`. `to_head`: it answers a
    /// HEAD request.
    pub fn of(head: &ReplyHead, input: &[u8], to_head: bool) -> Result<Self, ReplyError> {
        let (mut length, mut coding) = (None, None);
        for field in &head.fields {
            let seen = match field.id {
                ReplyName::ContentLength => &mut length,
                ReplyName::TransferEncoding => &mut coding,
                _ => continue,
            };
            if let Some(previous) = seen.replace(*field) {
                return Err(ReplyError::DuplicateField { field: *field, previous });
            }
        }
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
