//! FastCGI as a web server speaks it: a body and a reply in records.

use std::sync::Arc;

use observe::{Level, Text};
use wire::cgi::HeadParser;
use wire::fastcgi::request::{STDIN_BYTES_MAX, STDIN_END, padding, stdin_head};
use wire::fastcgi::{
    Decoded, END_REQUEST_TYPE, RECORD_HEAD_BYTES, RecordDecoder, RecordError, trim_stderr,
};
use wire::reply::ReplyHead;

use super::cgi::{Rest, describe, more_than_length};
use super::{Frame, HeadEvent, Malformed, Protocol, Start, Taken};
use crate::exchange::Remark;

const CLOSED_STDOUT: &str = "upstream prematurely closed FastCGI stdout";
const CLOSED_REQUEST: &str = "upstream prematurely closed FastCGI request";

/// A request of FastCGI and its reply.
///
/// Records are unwrapped in place. While the head is read, the input holds what was unwrapped of
/// it, and behind that perhaps a gap and records not looked at yet.
pub(crate) struct FastCgi {
    request: Request,
    records: RecordDecoder,
    parser: HeadParser,
    /// Bytes of output at the front of what is looked at next.
    unwrapped: usize,
    /// Bytes behind them that mean nothing any more.
    gap: usize,
    rest: Rest,
    progress: Progress,
}

/// What a request is sent with.
#[derive(Clone)]
pub(crate) struct Request {
    /// Whether it is a HEAD request: the reply has no body.
    pub(crate) to_head: bool,
    /// `fastcgi_keep_conn`
    pub(crate) keep_conn: bool,
    /// `fastcgi_catch_stderr`
    pub(crate) catch_stderr: Arc<[Box<[u8]>]>,
}

/// How far the reply has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    Reading,
    /// The reply is complete, but the application was not heard to the end.
    Ended,
    /// The application waits for another request.
    Idle,
}

impl Start for Request {
    type Protocol = FastCgi;
    const SCHEMA: &'static str = "fastcgi://";

    fn start(&self) -> FastCgi {
        FastCgi {
            request: self.clone(),
            records: RecordDecoder::default(),
            parser: HeadParser::default(),
            unwrapped: 0,
            gap: 0,
            rest: Rest::Unknown,
            progress: Progress::Reading,
        }
    }
}

impl FastCgi {
    /// Something for the error log; `Err`: it makes the reply worthless.
    fn said(&self, text: &[u8]) -> Result<Remark, Malformed> {
        let remark = stderr_remark(text);
        let mut patterns = self.request.catch_stderr.iter();
        match patterns.any(|pattern| memchr::memmem::find(text, pattern).is_some()) {
            true => Err(remark.text),
            false => Ok(remark),
        }
    }

    /// The head, if what was unwrapped has all of it.
    fn parse(
        &mut self,
        input: &[u8],
        head: &mut ReplyHead,
    ) -> Result<Option<HeadEvent>, Malformed> {
        let text = &input[..self.unwrapped];
        let parsed = self.parser.parse(head, text).map_err(|error| describe(error, text))?;
        let Some(bytes) = parsed else { return Ok(None) };
        let body;
        (self.rest, body) = Rest::of(head, text, self.request.to_head)?;
        self.unwrapped -= bytes;
        Ok(Some(HeadEvent::Complete { bytes, body }))
    }

    /// Part of the body was unwrapped: so many bytes. How many belong to it.
    fn take(&mut self, received: usize, taken: &mut Taken) -> usize {
        let count = self.rest.take(received);
        if count < received {
            taken.remarks.push(more_than_length());
            self.progress = Progress::Ended;
        }
        count
    }

    /// The application says that this was all; if it was not, `words` say so. It is heard to the
    /// end of its request all the same: one that cannot write that may fail at it.
    fn finish(&self, words: &'static str) -> Result<(), Malformed> {
        match self.rest.left() {
            0 => Ok(()),
            _ => Err(words.into()),
        }
    }
}

impl Protocol for FastCgi {
    fn frame(&mut self, available: u64, is_last: bool) -> Frame {
        let length = available.min(STDIN_BYTES_MAX as u64);
        let ends = is_last && length == available;
        if length == 0 {
            return if ends { Frame::new(&STDIN_END, 0, b"") } else { Frame::bare(0) };
        }
        let padding = padding(length as usize);
        let mut after = [0; 7 + RECORD_HEAD_BYTES];
        after[padding.len()..padding.len() + RECORD_HEAD_BYTES].copy_from_slice(&STDIN_END);
        let end = padding.len() + if ends { RECORD_HEAD_BYTES } else { 0 };
        Frame::new(&stdin_head(length as usize), length, &after[..end])
    }

    fn head(&mut self, input: &mut Vec<u8>, head: &mut ReplyHead) -> Result<HeadEvent, Malformed> {
        loop {
            let at = self.unwrapped + self.gap;
            match self.records.decode(&input[at..]).map_err(refused)? {
                Decoded::Stdout(range) => {
                    let (start, count) = (at + range.start, range.len());
                    input.copy_within(start..start + count, self.unwrapped);
                    self.unwrapped += count;
                    self.gap = at + range.end - self.unwrapped;
                    if let Some(event) = self.parse(input, head)? {
                        return Ok(event);
                    }
                }
                Decoded::Stderr(range) => {
                    self.gap += range.end;
                    return self.said(&input[at..][range]).map(HeadEvent::Log);
                }
                Decoded::StdoutEnd(_) => return Err(CLOSED_STDOUT.into()),
                Decoded::EndRequest(_) | Decoded::Done(_) => {
                    let kind = END_REQUEST_TYPE;
                    return Err(format!("upstream sent unexpected FastCGI record: {kind}").into());
                }
                Decoded::More => {
                    input.truncate(self.unwrapped);
                    self.gap = 0;
                    return Ok(HeadEvent::Partial);
                }
            }
        }
    }

    fn body(&mut self, buffer: &mut [u8], start: usize) -> Result<Taken, Malformed> {
        let mut taken = Taken::default();
        let unwrapped = std::mem::take(&mut self.unwrapped);
        let mut at = start + unwrapped + std::mem::take(&mut self.gap);
        let mut end = start + self.take(unwrapped, &mut taken);
        while self.progress == Progress::Reading {
            at += match self.records.decode(&buffer[at..]).map_err(refused)? {
                Decoded::Stdout(range) => {
                    let count = self.take(range.len(), &mut taken);
                    let from = at + range.start;
                    buffer.copy_within(from..from + count, end);
                    end += count;
                    range.end
                }
                Decoded::Stderr(range) => {
                    taken.remarks.push(stderr_remark(&buffer[at..][range.clone()]));
                    range.end
                }
                Decoded::StdoutEnd(used) => {
                    self.finish(CLOSED_STDOUT)?;
                    used
                }
                Decoded::EndRequest(used) => {
                    self.finish(CLOSED_REQUEST)?;
                    used
                }
                Decoded::Done(used) => {
                    let is_quiet = at + used == buffer.len();
                    self.progress = if is_quiet { Progress::Idle } else { Progress::Ended };
                    break;
                }
                Decoded::More => break,
            };
        }
        Ok(Taken { end, ..taken })
    }

    fn is_ended(&self) -> bool {
        self.progress != Progress::Reading
    }

    /// An application that closes its connections may do so instead of saying that it has ended.
    fn ends_at_close(&self) -> bool {
        self.is_ended() || !self.request.keep_conn && self.rest.left() == 0
    }

    fn body_left(&self) -> u64 {
        self.rest.left()
    }

    fn may_reuse(&self) -> bool {
        self.progress == Progress::Idle && self.request.keep_conn
    }
}

/// What the application said to the error log, as nginx logs it.
fn stderr_remark(text: &[u8]) -> Remark {
    let text = Text(trim_stderr(text));
    Remark { level: Level::Error, text: format!("FastCGI sent in stderr: \"{text}\"").into() }
}

fn refused(error: RecordError) -> Malformed {
    format!("upstream sent {error}").into()
}
