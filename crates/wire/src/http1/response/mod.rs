//! An incremental parser of reply heads, as backends send them.
//!
//! As the one for requests it hands out offsets into a buffer that the caller owns, and looks at no
//! byte twice. It is as lenient as nginx where that is harmless, since backends are what they are:
//! a lone LF ends a line, a line may lack its colon. Where the length of the body could be read in
//! two ways it is strict.
//!
//! ```text
//! Line --status line--> Field --empty line--> Done
//! ```

mod error;
mod field;
mod framing;
mod name;
mod status_line;
#[cfg(test)]
mod tests;

use alloc::vec::Vec;

use memchr::{memchr, memchr2};

use crate::{Slice, Version};
pub use error::ReplyError;
pub use framing::ReplyBody;
pub use name::ReplyName;

/// Fields of one head, of trailers too.
pub const FIELDS_MAX: usize = 1000;

/// A header line of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyField {
    /// The name as sent.
    pub name: Slice,
    /// The value without spaces around it.
    pub value: Slice,
    /// The name as a number.
    pub id: ReplyName,
}

/// A reply's head, as far as it was parsed.
#[derive(Debug, Default)]
pub struct ReplyHead {
    /// The version.
    pub version: Version,
    /// The status.
    pub status: u16,
    /// Status and reason as sent: `200 OK`.
    pub status_line: Slice,
    /// The header lines, in order.
    pub fields: Vec<ReplyField>,
    expect: Expect,
    /// Where the next line begins.
    start: usize,
    /// Up to where its end was looked for.
    searched: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Expect {
    #[default]
    Line,
    Field,
    Done,
}

impl ReplyHead {
    /// For fields alone: those after a chunked body.
    pub fn of_trailers(start: usize) -> Self {
        Self { expect: Expect::Field, start, searched: start, ..Self::default() }
    }

    /// Forgets the reply and keeps the memory of `fields`.
    pub fn reset(&mut self) {
        let mut fields = core::mem::take(&mut self.fields);
        fields.clear();
        *self = Self { fields, ..Self::default() };
    }

    /// Forgets the reply parsed so far, an interim one: the next begins where it ended.
    pub fn reset_to_next(&mut self) {
        let start = self.start;
        self.reset();
        self.start = start;
        self.searched = start;
    }

    /// Parses on from where the last call stopped: `input` is the same bytes as before, and those
    /// that arrived since. `Some`: how many of them are the head, and what was before it.
    pub fn parse(&mut self, input: &[u8]) -> Result<Option<usize>, ReplyError> {
        if self.expect == Expect::Line {
            status_line::check_opening(&input[self.start..])?;
        }
        while self.expect != Expect::Done {
            let Some((line, odd)) = self.next_line(input) else { return Ok(None) };
            match self.expect {
                Expect::Line if odd.0 => return Err(ReplyError::NotHttp),
                Expect::Line => {
                    status_line::parse(self, input, line)?;
                    self.expect = Expect::Field;
                }
                Expect::Field if line.is_empty() => self.expect = Expect::Done,
                Expect::Field => field::parse(self, input, line, odd)?,
                Expect::Done => unreachable!("the loop has ended"),
            }
        }
        Ok(Some(self.start))
    }

    /// Where the next line begins, or the body.
    pub fn parsed_to(&self) -> usize {
        self.start
    }

    /// The first line of that name. For [`ReplyName::Other`] compare names in `fields`.
    pub fn field(&self, id: ReplyName) -> Option<&ReplyField> {
        self.fields.iter().find(|field| field.id == id)
    }

    /// Whether the server closes the connection after this reply, as far as its head says.
    pub fn closes(&self, input: &[u8]) -> bool {
        self.version < Version::HTTP_11
            || self
                .fields
                .iter()
                .filter(|field| field.id == ReplyName::Connection)
                .any(|field| contains_close(field.value.of(input)))
    }

    /// The next line without its end, and whether a byte stands in it that may not.
    fn next_line(&mut self, input: &[u8]) -> Option<(Slice, Odd)> {
        let input = &input[..input.len().min(Slice::BUFFER_MAX)];
        let Some(offset) = memchr2(b'\n', b'\r', &input[self.searched..]) else {
            self.searched = input.len();
            return None;
        };
        let at = self.searched + offset;
        if input[at] == b'\n' {
            return Some(self.line(at, at, Odd(false)));
        }
        match input.get(at + 1) {
            Some(b'\n') => Some(self.line(at, at + 1, Odd(false))),
            _ => self.next_odd_line(input, at),
        }
    }

    /// The same where CR is not followed by LF, so far.
    fn next_odd_line(&mut self, input: &[u8], cr: usize) -> Option<(Slice, Odd)> {
        self.searched = cr;
        let lf = cr + memchr(b'\n', &input[cr..])?;
        let mut end = lf;
        // nginx takes any number of CR before LF.
        while end > cr && input[end - 1] == b'\r' {
            end -= 1;
        }
        Some(self.line(end, lf, Odd(end > cr)))
    }

    fn line(&mut self, end: usize, lf: usize, odd: Odd) -> (Slice, Odd) {
        let line = Slice::new(self.start, end);
        self.start = lf + 1;
        self.searched = self.start;
        (line, odd)
    }
}

/// Whether CR stands within a line.
#[derive(Clone, Copy)]
struct Odd(bool);

/// nginx looks for the word anywhere in the value.
fn contains_close(value: &[u8]) -> bool {
    value.windows(5).any(|word| word.eq_ignore_ascii_case(b"close"))
}
