//! An incremental request-head parser over one contiguous buffer that the caller owns.
//!
//! It hands out offsets, never copies, and allocates only until its lists are warm. A line is
//! parsed once, when all of it is there; bytes searched for its end are not searched again, so a
//! head that arrives byte by byte costs as much as one that arrives whole. It does not decide what
//! the head means for the body (see `framing`), nor decode the path (see `uri`).
//!
//! ```text
//! Line --request line--> Field --empty line--> Done
//!   \--HTTP/0.9-----------------------------/
//! ```
//!
//! Stricter than nginx in two places where another parser could read the lines differently: a
//! header line without a colon, and more than one CR before LF, are errors.

mod error;
mod field;
mod line;
mod lines;
mod window;

#[cfg(test)]
mod tests;

use alloc::vec::Vec;

use crate::host::Host;
use crate::{Known, Method, Slice, Version};
pub use error::HeadError;
use lines::{Found, Lines};
use window::Window;

/// The limits and switches that apply to a head: nginx's directives of the same names.
#[derive(Clone, Copy, Debug)]
pub struct HeadLimits {
    /// Bytes of the first buffer.
    pub client_header_buffer_size: usize,
    /// How many larger buffers may follow, and their size: the longest request line or header line.
    pub large_client_header_buffers: (usize, usize),
    /// Header lines kept.
    pub max_headers: usize,
    /// Drop lines whose name has odd characters, rather than keep them.
    pub ignore_invalid_headers: bool,
    /// "_" is not an odd character.
    pub underscores_in_headers: bool,
    /// Stop after the `Host` line, so that the lines after it obey the limits of the server it
    /// names.
    pub pause_at_host: bool,
}

impl Default for HeadLimits {
    fn default() -> HeadLimits {
        HeadLimits {
            client_header_buffer_size: 1024,
            large_client_header_buffers: (4, 8192),
            max_headers: 1000,
            ignore_invalid_headers: true,
            underscores_in_headers: false,
            pause_at_host: false,
        }
    }
}

impl HeadLimits {
    /// The input for which a head is complete or refused, never partial: what a caller's buffer
    /// must be able to hold.
    pub fn input_max(&self) -> usize {
        let (number, size) = self.large_client_header_buffers;
        self.client_header_buffer_size.max(1).saturating_add(number.saturating_mul(size))
    }
}

/// A header line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// The name as sent.
    pub name: Slice,
    /// The value without spaces around it.
    pub value: Slice,
    /// The name as a number.
    pub id: Known,
}

/// How far [`RequestHead::parse`] came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// More bytes are needed.
    Partial,
    /// The `Host` line was read and [`HeadLimits::pause_at_host`] is set: parse again with the
    /// limits of that server.
    Host,
    /// The head ends after `len` bytes of the input.
    Complete {
        /// Bytes of input that belong to the head, and to empty lines before it.
        len: usize,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expect {
    Line,
    Field,
    Done,
}

/// A request head, as far as it was parsed. Reused for every request of a connection.
#[derive(Debug, PartialEq, Eq)]
pub struct RequestHead {
    /// The method.
    pub method: Method,
    /// The method as sent.
    pub method_text: Slice,
    /// nginx's `$request`: the line without its end. Empty until it was parsed as valid.
    pub line: Slice,
    /// nginx's `$request_uri`: path, arguments and fragment as sent; "/" for CONNECT.
    pub target: Slice,
    /// The scheme of an absolute-form target, or empty.
    pub schema: Slice,
    /// `host:port` of an absolute-form target or of CONNECT (valid as a host), or empty.
    pub authority: Slice,
    /// The host asked for, as sent, without port and final dot: of the authority, else of the
    /// `Host` line; empty when neither is there.
    pub host: Slice,
    /// Whether `host` has capitals: it is a key to servers in lower case.
    pub host_has_upper: bool,
    /// The port that came with `host`, or 0.
    pub port: u16,
    /// The path as sent, without arguments and fragment; begins with "/".
    pub path: Slice,
    /// What follows "?" up to a fragment; `None` without "?".
    pub args: Option<Slice>,
    /// `HTTP/1.1` as sent (nginx's `$server_protocol`), or empty: where a protocol began that was
    /// refused, or at 0 without any.
    pub protocol: Slice,
    /// The version.
    pub version: Version,
    /// The path has "%", "//" or "/." and so may not be its own normal form.
    pub needs_normalising: bool,
    /// The path has "%".
    pub quoted: bool,
    /// The path has "+".
    pub plus: bool,
    /// An absolute-form target without a path (`http://host?args`): `path` is "/", `target` is not.
    pub empty_path: bool,
    /// The header lines, in order.
    pub fields: Vec<Field>,
    /// Lines dropped because of `ignore_invalid_headers`; nginx logs each as
    /// `client sent invalid header line: "..."`, at info.
    pub ignored: Vec<Slice>,

    expect: Expect,
    method_seen: bool,
    lines: Lines,
    window: Window,
    seen: u64,
}

impl Default for RequestHead {
    fn default() -> RequestHead {
        RequestHead {
            method: Method::Other,
            method_text: Slice::default(),
            line: Slice::default(),
            target: Slice::default(),
            schema: Slice::default(),
            authority: Slice::default(),
            host: Slice::default(),
            host_has_upper: false,
            port: 0,
            path: Slice::default(),
            args: None,
            protocol: Slice::default(),
            version: Version::HTTP_09,
            needs_normalising: false,
            quoted: false,
            plus: false,
            empty_path: false,
            fields: Vec::new(),
            ignored: Vec::new(),
            expect: Expect::Line,
            method_seen: false,
            lines: Lines::default(),
            window: Window::default(),
            seen: 0,
        }
    }
}

impl RequestHead {
    /// Forgets the request and keeps the memory of `fields`.
    pub fn reset(&mut self) {
        let mut fields = core::mem::take(&mut self.fields);
        fields.clear();
        *self = RequestHead { fields, ..RequestHead::default() };
    }

    /// Becomes the same head, over a copy of the same bytes, and keeps the memory of its lists.
    pub fn copy_from(&mut self, other: &RequestHead) {
        let mut fields = core::mem::take(&mut self.fields);
        let mut ignored = core::mem::take(&mut self.ignored);
        fields.clear();
        fields.extend_from_slice(&other.fields);
        ignored.clear();
        ignored.extend_from_slice(&other.ignored);
        *self = RequestHead { fields, ignored, ..*other };
    }

    /// Parses on from where the last call stopped. `input` is the same bytes as before, and those
    /// that arrived since; after an error or `Complete` only [`RequestHead::reset`] makes sense.
    pub fn parse(&mut self, input: &[u8], limits: &HeadLimits) -> Result<Progress, HeadError> {
        match self.parse_line(input, limits)? {
            Progress::Complete { .. } => self.parse_fields(input, limits),
            progress => Ok(progress),
        }
    }

    /// Parses as far as the end of the request line: for a caller whose limits depend on what the
    /// line says. `Complete` means that the line is there; [`RequestHead::parse`] goes on from it.
    pub fn parse_line(&mut self, input: &[u8], limits: &HeadLimits) -> Result<Progress, HeadError> {
        if self.expect == Expect::Line {
            self.skip_empty_lines(input, limits)?;
            let Some(line) = self.next_request_line(input, limits)? else {
                return Ok(Progress::Partial);
            };
            line::parse(self, input, line)?;
            self.method_seen = true;
            self.expect = match self.version {
                Version::HTTP_09 => Expect::Done,
                _ => Expect::Field,
            };
        }
        Ok(Progress::Complete { len: self.lines.start })
    }

    /// Where the line begins that is not parsed yet, or with which something was wrong.
    pub fn parsed_to(&self) -> usize {
        self.lines.start
    }

    /// The first line of that name. For [`Known::Other`] compare names in `fields`.
    pub fn field(&self, id: Known) -> Option<&Field> {
        self.fields_of(id).next()
    }

    /// Every line of that name, in order.
    pub fn fields_of(&self, id: Known) -> impl DoubleEndedIterator<Item = &Field> {
        let fields = if self.seen & id.bit() == 0 { &[][..] } else { &self.fields[..] };
        fields.iter().filter(move |field| field.id == id)
    }

    fn parse_fields(&mut self, input: &[u8], limits: &HeadLimits) -> Result<Progress, HeadError> {
        while self.expect == Expect::Field {
            let Some(line) = self.next_field_line(input, limits)? else {
                return Ok(Progress::Partial);
            };
            if line.is_empty() {
                self.expect = Expect::Done;
            } else if field::parse(self, input, line, limits)? == Known::Host
                && limits.pause_at_host
            {
                return Ok(Progress::Host);
            }
        }
        Ok(Progress::Complete { len: self.lines.start })
    }

    /// Notes the host in `text`; `None` when it is not valid. The first one noted stays.
    fn note_host(&mut self, input: &[u8], text: Slice) -> Option<()> {
        let host = Host::parse(text.of(input))?;
        if self.host.is_empty() {
            self.host = Slice { start: text.start, end: text.start + host.len as u32 };
            self.host_has_upper = host.has_upper;
            self.port = host.port;
        }
        Some(())
    }

    /// RFC 9112, section 2.2: empty lines before the request line are ignored. nginx takes any
    /// number; here they may not fill the first buffer.
    fn skip_empty_lines(&mut self, input: &[u8], limits: &HeadLimits) -> Result<(), HeadError> {
        if !self.lines.at_start() {
            return Ok(());
        }
        let rest = &input[self.lines.start..];
        let empty = rest.iter().take_while(|&&byte| matches!(byte, b'\r' | b'\n')).count();
        self.lines.skip(empty);
        let start_max = limits.client_header_buffer_size.min(Slice::BUFFER_MAX);
        if self.lines.start > 0 && self.lines.start >= start_max {
            return Err(HeadError::InvalidRequest);
        }
        Ok(())
    }

    fn next_request_line(
        &mut self,
        input: &[u8],
        limits: &HeadLimits,
    ) -> Result<Option<Slice>, HeadError> {
        let (start, searched) = self.lines.position();
        let (found, upto) = self.lines.next(input);
        if !self.window.admits(start, upto, limits) {
            let full = upto.min(self.window.end);
            self.check_method(&input[searched..full])?;
            self.line = Slice::new(start, full);
            return Err(HeadError::TooLongUri);
        }
        match found {
            Found::Line(line) => Ok(Some(line)),
            Found::Nothing => self.check_method(&input[searched..upto]).map(|()| None),
            // The same byte is an error to the line's parser, which knows of which kind.
            Found::Invalid(at) => line::parse(self, input, Slice::new(start, at + 1))
                .and(Err(HeadError::InvalidRequest)),
        }
    }

    /// A client that speaks another protocol is told at once: its line may never end.
    fn check_method(&mut self, arrived: &[u8]) -> Result<(), HeadError> {
        if self.method_seen {
            return Ok(());
        }
        match arrived.iter().find(|&&byte| !line::is_method_byte(byte)) {
            None => Ok(()),
            Some(b' ') => {
                self.method_seen = true;
                Ok(())
            }
            Some(_) => Err(HeadError::InvalidMethod),
        }
    }

    fn next_field_line(
        &mut self,
        input: &[u8],
        limits: &HeadLimits,
    ) -> Result<Option<Slice>, HeadError> {
        let (start, _) = self.lines.position();
        let (found, upto) = self.lines.next(input);
        if !self.window.admits(start, upto, limits) {
            return Err(HeadError::too_large(start, upto.min(self.window.end)));
        }
        match found {
            Found::Line(line) => Ok(Some(line)),
            Found::Nothing => Ok(None),
            // The name may be wrong before that byte is.
            Found::Invalid(at) => field::scan_name(Slice::new(start, at + 1), input)
                .and(Err(HeadError::InvalidFieldLine(Slice::new(start, at)))),
        }
    }
}
