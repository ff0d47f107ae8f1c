//! Why a head is refused, with nginx's status and message. nginx logs all of these at info.

use alloc::vec::Vec;

use crate::request::{Field, FieldError};
use crate::{Known, Slice};

/// Why a request head is refused. The connection cannot be used for another request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadError {
    InvalidMethod,
    InvalidRequest,
    InvalidVersion,
    InvalidMethod09,
    TooLongUri,
    InvalidHostInLine,
    /// The line up to the invalid byte, which follows the slice.
    InvalidFieldLine(Slice),
    TooLongFieldLine(Slice),
    TooLargeRequest,
    TooManyFields,
    DuplicateField {
        field: Field,
        previous: Field,
    },
    DuplicateHost {
        field: Field,
        previous: Field,
    },
    InvalidHost,
    // Found by `framing` once the head is complete.
    NoHost,
    InvalidContentLength,
    TransferEncodingInHttp10,
    ContentLengthAndTransferEncoding,
    UnknownTransferEncoding(Slice),
    ConnectMethod,
    ConnectWithBody,
    TraceMethod,
}

impl From<FieldError> for HeadError {
    #[inline]
    fn from(error: FieldError) -> Self {
        match error {
            FieldError::TooMany => Self::TooManyFields,
            FieldError::Duplicate { field, previous } if field.id == Known::Host => {
                Self::DuplicateHost { field, previous }
            }
            FieldError::Duplicate { field, previous } => Self::DuplicateField { field, previous },
            FieldError::InvalidHost => Self::InvalidHost,
            FieldError::Invalid => Self::InvalidRequest,
            FieldError::TooLarge => Self::TooLargeRequest,
        }
    }
}

/// The most bytes shown of a line that is too long: nginx's NGX_MAX_ERROR_STR - 300.
const SHOWN_MAX: usize = 1748;

impl HeadError {
    pub(super) fn too_large(start: usize, end: usize) -> HeadError {
        match end.saturating_sub(start) {
            0 => HeadError::TooLargeRequest,
            length => HeadError::TooLongFieldLine(Slice::new(start, start + length.min(SHOWN_MAX))),
        }
    }

    /// nginx's status; 494 is sent as 400 with its own page.
    pub fn status(&self) -> u16 {
        use HeadError::*;
        match self {
            TooLongUri => 414,
            TooLongFieldLine(_) | TooLargeRequest | TooManyFields => 494,
            ConnectMethod | TraceMethod => 405,
            UnknownTransferEncoding(_) => 501,
            InvalidVersion => 505,
            _ => 400,
        }
    }

    /// Appends nginx's message. `input` is the parsed input.
    pub fn write_message(&self, input: &[u8], out: &mut Vec<u8>) {
        use HeadError::*;
        out.extend_from_slice(self.text());
        match *self {
            InvalidFieldLine(line) => {
                out.extend_from_slice(line.of(input));
                let wrong = input.get(line.end as usize).copied().unwrap_or_default();
                write_hex(wrong, out);
                out.extend_from_slice(b"...\"");
            }
            TooLongFieldLine(line) => {
                out.extend_from_slice(line.of(input));
                out.extend_from_slice(b"...\"");
            }
            UnknownTransferEncoding(value) => {
                out.extend_from_slice(value.of(input));
                out.push(b'"');
            }
            DuplicateField { field, previous } | DuplicateHost { field, previous } => {
                write_field(field, input, out);
                out.extend_from_slice(b"\", previous value: \"");
                write_field(previous, input, out);
                out.push(b'"');
            }
            _ => {}
        }
    }

    fn text(&self) -> &'static [u8] {
        use HeadError::*;
        match self {
            InvalidMethod => b"client sent invalid method",
            InvalidRequest => b"client sent invalid request",
            InvalidVersion => b"client sent invalid version",
            InvalidMethod09 => b"client sent invalid method in HTTP/0.9 request",
            TooLongUri => b"client sent too long URI",
            InvalidHostInLine => b"client sent invalid host in request line",
            InvalidFieldLine(_) => b"client sent invalid header line: \"",
            TooLongFieldLine(_) => b"client sent too long header line: \"",
            TooLargeRequest => b"client sent too large request",
            TooManyFields => b"client sent too many header lines",
            DuplicateField { .. } => b"client sent duplicate header line: \"",
            DuplicateHost { .. } => b"client sent duplicate host header: \"",
            InvalidHost => b"client sent invalid host header",
            NoHost => b"client sent HTTP/1.1 request without \"Host\" header",
            InvalidContentLength => b"client sent invalid \"Content-Length\" header",
            TransferEncodingInHttp10 => {
                b"client sent HTTP/1.0 request with \"Transfer-Encoding\" header"
            }
            ContentLengthAndTransferEncoding => {
                b"client sent \"Content-Length\" and \"Transfer-Encoding\" headers at the same time"
            }
            UnknownTransferEncoding(_) => b"client sent unknown \"Transfer-Encoding\": \"",
            ConnectMethod => b"client sent CONNECT method",
            ConnectWithBody => b"client sent CONNECT request with body",
            TraceMethod => b"client sent TRACE method",
        }
    }
}

fn write_field(field: Field, input: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(field.name.of(input));
    out.extend_from_slice(b": ");
    out.extend_from_slice(field.value.of(input));
}

fn write_hex(byte: u8, out: &mut Vec<u8>) {
    let digits = b"0123456789abcdef";
    out.extend_from_slice(&[
        b'\\',
        b'x',
        digits[usize::from(byte >> 4)],
        digits[usize::from(byte & 15)],
    ]);
}
