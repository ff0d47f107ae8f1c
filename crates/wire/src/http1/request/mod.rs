//! An incremental request-head parser over one contiguous buffer that the caller owns.
//!
//! It returns offsets, never copies, and allocates only while its lists grow. A line is parsed
//! once, when it is complete; bytes searched for its end are not searched again, so a head that
//! arrives byte by byte costs as much as one that arrives whole. Deliberately absent: the meaning
//! of the head for the body (see `framing`), and decoding of the path (see `uri`).
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

pub use error::HeadError;

use crate::field_line::{self, FieldLine};
use crate::request::{HeadLimits, RequestHead};
use crate::{Known, Slice, Version};
use lines::{LineScanner, LineSearch};
use window::LineWindow;

/// The progress of [`RequestHeadParser::parse`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadProgress {
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

/// The state of a parser: what it expects next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum RequestState {
    #[default]
    Line,
    Field,
    Done,
}

/// The state of parsing one request's head. Each request needs a new parser.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestHeadParser {
    expect: RequestState,
    method_seen: bool,
    lines: LineScanner,
    window: LineWindow,
}

impl RequestHeadParser {
    /// Continues from where the last call stopped. `input` is the same bytes as before, and those
    /// that arrived since. Not to be called again after an error or `Complete`.
    pub fn parse(
        &mut self,
        head: &mut RequestHead,
        input: &[u8],
        limits: &HeadLimits,
    ) -> Result<HeadProgress, HeadError> {
        match self.parse_line(head, input, limits)? {
            HeadProgress::Complete { .. } => self.parse_fields(head, input, limits),
            progress => Ok(progress),
        }
    }

    /// Parses only the request line, for callers whose limits depend on it. `Complete` means that
    /// the line is complete; [`RequestHeadParser::parse`] continues after it.
    pub fn parse_line(
        &mut self,
        head: &mut RequestHead,
        input: &[u8],
        limits: &HeadLimits,
    ) -> Result<HeadProgress, HeadError> {
        if self.expect == RequestState::Line {
            self.skip_empty_lines(input, limits)?;
            if self.parse_usual_line(head, input, limits) {
                return Ok(HeadProgress::Complete { len: self.lines.start });
            }
            let Some(line) = self.next_request_line(head, input, limits)? else {
                return Ok(HeadProgress::Partial);
            };
            line::parse(head, input, line)?;
            self.method_seen = true;
            self.expect = match head.version {
                Version::HTTP_09 => RequestState::Done,
                _ => RequestState::Field,
            };
        }
        Ok(HeadProgress::Complete { len: self.lines.start })
    }

    /// Parses a request line of the usual form, which cannot be invalid. As with fields, a line
    /// whose end was searched for before is not tried again.
    fn parse_usual_line(
        &mut self,
        head: &mut RequestHead,
        input: &[u8],
        limits: &HeadLimits,
    ) -> bool {
        let start = self.lines.start;
        if !self.lines.at_start() || self.method_seen {
            return false;
        }
        let input = &input[..input.len().min(Slice::BUFFER_MAX)];
        let Some(line) = line::usual(input, start) else { return false };
        let end = line.end + 2;
        if !self.window.admits(start, end - 1, limits) {
            return false;
        }
        line.fill(head, start);
        self.lines.skip_to(end);
        self.method_seen = true;
        self.expect = RequestState::Field;
        true
    }

    /// Whether the request line is incomplete or invalid.
    pub fn expects_line(&self) -> bool {
        self.expect == RequestState::Line
    }

    /// The offset of the first line that is not parsed yet, or is invalid.
    pub fn parsed_to(&self) -> usize {
        self.lines.start
    }

    fn parse_fields(
        &mut self,
        head: &mut RequestHead,
        input: &[u8],
        limits: &HeadLimits,
    ) -> Result<HeadProgress, HeadError> {
        while self.expect == RequestState::Field {
            if self.parse_usual_fields(head, input, limits)? {
                return Ok(HeadProgress::Host);
            }
            if self.expect == RequestState::Done {
                break;
            }
            let Some(line) = self.next_field_line(input, limits)? else {
                return Ok(HeadProgress::Partial);
            };
            if line.is_empty() {
                self.expect = RequestState::Done;
            } else if field::parse(head, input, line, limits)? == Known::Host
                && limits.pause_at_host
            {
                return Ok(HeadProgress::Host);
            }
        }
        Ok(HeadProgress::Complete { len: self.lines.start })
    }

    /// Parses lines in their usual form, which cannot be invalid, up to the first in another form,
    /// and the empty line after them. A line whose end was searched for before is not tried again.
    /// Returns whether to pause after `Host`.
    fn parse_usual_fields(
        &mut self,
        head: &mut RequestHead,
        input: &[u8],
        limits: &HeadLimits,
    ) -> Result<bool, HeadError> {
        let text = &input[..input.len().min(self.window.end)];
        while self.lines.at_start()
            && let Some(line) = FieldLine::usual(text, self.lines.start)
            && let Some(field) = field::usual(text, &line)
        {
            self.lines.skip_to(line.end);
            if !head.add_usual(field, limits) {
                head.add(input, field, limits)?;
                if field.id == Known::Host && limits.pause_at_host {
                    return Ok(true);
                }
            }
        }
        if self.lines.at_start() && field_line::is_end(text, self.lines.start) {
            self.lines.skip_to(self.lines.start + 2);
            self.expect = RequestState::Done;
        }
        Ok(false)
    }

    /// RFC 9112, section 2.2: empty lines before the request line are ignored. nginx ignores any
    /// number of them; here they may not fill the first buffer.
    fn skip_empty_lines(&mut self, input: &[u8], limits: &HeadLimits) -> Result<(), HeadError> {
        if !self.lines.at_start() {
            return Ok(());
        }
        let rest = &input[self.lines.start..];
        let empty = rest.iter().take_while(|&&byte| matches!(byte, b'\r' | b'\n')).count();
        self.lines.skip_to(self.lines.start + empty);
        let start_max = limits.client_header_buffer_size.min(Slice::BUFFER_MAX);
        if self.lines.start > 0 && self.lines.start >= start_max {
            return Err(HeadError::InvalidRequest);
        }
        Ok(())
    }

    fn next_request_line(
        &mut self,
        head: &mut RequestHead,
        input: &[u8],
        limits: &HeadLimits,
    ) -> Result<Option<Slice>, HeadError> {
        let (start, searched) = self.lines.position();
        let (found, upto) = self.lines.next(input);
        if !self.window.admits(start, upto, limits) {
            let full = upto.min(self.window.end);
            self.check_method(&input[searched..full])?;
            head.line = Slice::new(start, full);
            return Err(HeadError::TooLongUri);
        }
        match found {
            LineSearch::Line(line) => Ok(Some(line)),
            LineSearch::Nothing => self.check_method(&input[searched..upto]).map(|()| None),
            // The line's parser finds the same byte and knows the kind of error.
            LineSearch::Invalid(at) => line::parse(head, input, Slice::new(start, at + 1))
                .and(Err(HeadError::InvalidRequest)),
        }
    }

    /// A client of another protocol is rejected at once, because its line may never end.
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

    #[inline]
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
            LineSearch::Line(line) => Ok(Some(line)),
            LineSearch::Nothing => Ok(None),
            // An error in the name comes before that byte.
            LineSearch::Invalid(at) => {
                let line = Slice::new(start, at + 1);
                field::find_colon(line, line.of(input))
                    .and(Err(HeadError::InvalidFieldLine(Slice::new(start, at))))
            }
        }
    }
}
