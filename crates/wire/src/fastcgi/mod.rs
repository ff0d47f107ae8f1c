//! FastCGI 1.0 as a web server uses it: one request at a time per connection, role "responder".
//!
//! [`RecordDecoder`] finds the output of an application in its records; it returns ranges of its
//! input and stores only the head of a record. [`request`] writes the records of a request.
//! Deliberately absent: several requests at once on a connection, other roles, management records.
//! Like nginx, Weir refuses them.
//!
//! ```text
//! Head -+-> Data -> Padding -+-> Head
//!       |                    +-> Done (after END_REQUEST)
//!       +-> refused: another version, type or request id
//! ```

pub mod request;
#[cfg(test)]
mod tests;

use core::fmt;
use core::ops::Range;

pub const RECORD_HEAD_BYTES: usize = 8;

/// The only version of the protocol.
const VERSION: u8 = 1;

/// Types of records.
const BEGIN_REQUEST: u8 = 1;
const END_REQUEST: u8 = 3;
const PARAMS: u8 = 4;
const STDIN: u8 = 5;
const STDOUT: u8 = 6;
const STDERR: u8 = 7;

/// The id of every request: a connection has one at a time.
const REQUEST_ID: u8 = 1;

/// The result of [`RecordDecoder::decode`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordDecoded {
    /// Range of output bytes in the input. Input is consumed up to its end.
    Stdout(Range<usize>),
    /// Like [`Stdout`](Self::Stdout), for text that is meant for the error log.
    Stderr(Range<usize>),
    /// The output is complete; the input is consumed up to this offset.
    StdoutEnd(usize),
    /// A record that ends the request has begun; the input is consumed up to this offset.
    EndRequest(usize),
    /// That record is complete. Input after this offset belongs to no request.
    Done(usize),
    /// All of the input is consumed; more records follow.
    More,
}

/// Finds the output of an application in its records.
#[derive(Clone, Debug, Default)]
pub struct RecordDecoder {
    expect: RecordState,
    head: [u8; RECORD_HEAD_BYTES],
    /// Bytes of the head received so far.
    filled: usize,
    data_left: u16,
    padding_left: u8,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum RecordState {
    #[default]
    Head,
    Data,
    Padding,
    Done,
}

/// A record that is invalid in a reply. The words are nginx's, which puts "upstream sent" first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordError {
    /// The version is unknown.
    Version(u8),
    /// Applications do not send this type.
    Type(u8),
    /// The record is for another request: the high byte of its id.
    RequestIdHigh(u8),
    /// The record is for another request: the low byte of its id.
    RequestIdLow(u8),
}

impl RecordDecoder {
    /// Decodes from the start of `input`, which follows the bytes consumed before.
    pub fn decode(&mut self, input: &[u8]) -> Result<RecordDecoded, RecordError> {
        let mut at = 0;
        loop {
            match self.expect {
                RecordState::Head => {
                    let Some(&byte) = input.get(at) else { return Ok(RecordDecoded::More) };
                    at += 1;
                    if let Some(decoded) = self.take_head(byte, at)? {
                        return Ok(decoded);
                    }
                }
                RecordState::Data if at == input.len() && self.data_left > 0 => {
                    return Ok(RecordDecoded::More);
                }
                RecordState::Data => match self.take_data(at, input.len()) {
                    (_, Some(decoded)) => return Ok(decoded),
                    (end, None) => at = end,
                },
                RecordState::Padding => {
                    let taken = usize::from(self.padding_left).min(input.len() - at);
                    self.padding_left -= taken as u8;
                    at += taken;
                    if self.padding_left > 0 {
                        return Ok(RecordDecoded::More);
                    }
                    let ends = self.head[1] == END_REQUEST;
                    self.expect = if ends { RecordState::Done } else { RecordState::Head };
                }
                RecordState::Done => return Ok(RecordDecoded::Done(at)),
            }
        }
    }

    /// Whether the application has ended the request.
    pub fn is_done(&self) -> bool {
        self.expect == RecordState::Done
    }

    /// Takes a byte of a head; the input is consumed up to `at`.
    fn take_head(&mut self, byte: u8, at: usize) -> Result<Option<RecordDecoded>, RecordError> {
        match self.filled {
            0 if byte != VERSION => return Err(RecordError::Version(byte)),
            1 if !matches!(byte, STDOUT | STDERR | END_REQUEST) => {
                return Err(RecordError::Type(byte));
            }
            2 if byte != 0 => return Err(RecordError::RequestIdHigh(byte)),
            3 if byte != REQUEST_ID => return Err(RecordError::RequestIdLow(byte)),
            _ => {}
        }
        self.head[self.filled] = byte;
        self.filled += 1;
        if self.filled < RECORD_HEAD_BYTES {
            return Ok(None);
        }
        self.filled = 0;
        self.data_left = u16::from_be_bytes([self.head[4], self.head[5]]);
        self.padding_left = self.head[6];
        self.expect = RecordState::Data;
        Ok(match (self.head[1], self.data_left) {
            (END_REQUEST, _) => Some(RecordDecoded::EndRequest(at)),
            (STDOUT, 0) => Some(RecordDecoded::StdoutEnd(at)),
            _ => None,
        })
    }

    /// Takes data of a record from `at` on. Returns the offset of its end, and the result for the
    /// caller.
    fn take_data(&mut self, at: usize, input_end: usize) -> (usize, Option<RecordDecoded>) {
        let end = at + usize::from(self.data_left).min(input_end - at);
        self.data_left -= (end - at) as u16;
        if self.data_left == 0 {
            self.expect = RecordState::Padding;
        }
        let decoded = match self.head[1] {
            _ if at == end => None,
            STDOUT => Some(RecordDecoded::Stdout(at..end)),
            STDERR => Some(RecordDecoded::Stderr(at..end)),
            // The application's status is ignored, as in nginx.
            _ => None,
        };
        (end, decoded)
    }
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version(byte) => write!(f, "unsupported FastCGI protocol version: {byte}"),
            Self::Type(byte) => write!(f, "invalid FastCGI record type: {byte}"),
            Self::RequestIdHigh(byte) => {
                write!(f, "unexpected FastCGI request id high byte: {byte}")
            }
            Self::RequestIdLow(byte) => write!(f, "unexpected FastCGI request id low byte: {byte}"),
        }
    }
}

/// An application's text as nginx logs it: without trailing line ends, dots and spaces. The first
/// byte is always kept.
pub fn trim_stderr(text: &[u8]) -> &[u8] {
    let last = text.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r' | b'.' | b' '));
    &text[..text.len().min(last.unwrap_or(0) + 1)]
}

/// The type of END_REQUEST, for nginx's message about one that comes too early.
pub const END_REQUEST_TYPE: u8 = END_REQUEST;
