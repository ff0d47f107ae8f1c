//! One request on one connection: written and, as soon as there is any of it, the reply's head
//! read.
//!
//! A server may answer before it has read everything: what is not written by then is not written
//! any more, and the connection is used for nothing else. Even where writing fails, what the server
//! had to say is read first.

use std::io;
use std::task::{Context, Poll, ready};

use net::{Timer, buffers};
use observe::{Errno, Level, Text};
use wire::http1::response::{ReplyBody, ReplyError};

use super::Conf;
use super::connect::timed_out;
use super::head::{self, Passed};
use super::outgoing::{Body, Outgoing, Unsent};
use crate::exchange::Try;
use crate::exchange::{Exchange, Flow};
use ::upstream::pool::Connection;

/// What is done once there is something to read.
const READING: &str = "reading response header from upstream";

/// Interim replies (1xx) before the final one. Each is as long as `buffer_size` at most.
const INTERIM_REPLIES_MAX: u32 = 64;

/// Reads before others get their turn.
const READS_PER_TURN: u32 = 16;

/// Why a server did not answer.
#[derive(Debug)]
pub(super) enum Trouble {
    /// No connection, or none any more.
    Error,
    /// It took too long.
    Timeout,
    /// What it sent is no reply.
    InvalidHeader,
    /// Ours: no other server would do better.
    Internal,
    /// The client's: its body does not come.
    Client(ClientTrouble),
}

/// What happens to the exchange because of its client.
pub(super) struct ClientTrouble(pub(super) Flow);

impl std::fmt::Debug for ClientTrouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ClientTrouble")
    }
}

/// What is asked, and how.
pub(super) struct Request<'a> {
    pub(super) conf: &'a Conf,
    pub(super) passed: &'a Passed,
    pub(super) asked: &'a Try,
    pub(super) head: &'a [u8],
    /// Whether it is a HEAD request.
    pub(super) to_head: bool,
    /// How long its body is, as far as the head says.
    pub(super) announced: Option<u64>,
}

/// The request on its way, and the reply's beginning.
pub(super) struct Asking<'a> {
    request: Request<'a>,
    connection: &'a mut Connection,
    timer: &'a Timer,
    outgoing: Outgoing<'a>,
    /// Why no more is written.
    broken: Option<(&'static str, io::Error)>,
    /// What the timer is for.
    waits: Waits,
    /// What has been received.
    input: Vec<u8>,
    /// Where in it the present head begins: behind the interim replies.
    head_start: usize,
    /// Interim replies so far.
    interim_replies: u32,
    /// Bytes of early hints so far.
    early_bytes: usize,
    /// Whether others get their turn before the next read.
    yields: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waits {
    Nothing,
    ToWrite,
    ToRead,
}

/// The head of a reply has been read.
pub(super) struct Answered {
    pub(super) body: ReplyBody,
    /// Where in the input the body begins.
    pub(super) head_bytes: usize,
    pub(super) input: Vec<u8>,
    /// Whether all of the request was sent.
    pub(super) sent: bool,
}

impl<'a> Asking<'a> {
    pub(super) fn new(
        request: Request<'a>,
        connection: &'a mut Connection,
        timer: &'a Timer,
        body: &'a mut Body,
    ) -> Self {
        Self {
            outgoing: Outgoing::new(request.head, body),
            request,
            connection,
            timer,
            broken: None,
            waits: Waits::Nothing,
            input: Vec::new(),
            head_start: 0,
            interim_replies: 0,
            early_bytes: 0,
            yields: false,
        }
    }

    /// Whether it cannot be asked again as if nothing had happened.
    pub(super) fn has_begun(&self) -> bool {
        self.outgoing.has_begun()
    }

    /// How much of the request has been written.
    pub(super) fn written(&self) -> u64 {
        self.outgoing.written
    }

    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        x: &mut Exchange,
    ) -> Poll<Result<Answered, Trouble>> {
        if !self.outgoing.is_done() && self.broken.is_none() {
            self.poll_send(cx, x)?;
        }
        match self.poll_head(cx, x) {
            Poll::Ready(answered) => Poll::Ready(answered),
            Poll::Pending if self.yields => self.poll_timeout(cx, x).map(Err),
            Poll::Pending if self.broken.is_some() => Poll::Ready(Err(self.unsent(x))),
            Poll::Pending => self.poll_timeout(cx, x).map(Err),
        }
    }

    fn poll_send(&mut self, cx: &mut Context<'_>, x: &mut Exchange) -> Result<(), Trouble> {
        x.action = "sending request to upstream";
        let before = self.outgoing.written;
        let sent = self.outgoing.poll(cx, x, &mut self.connection.stream);
        if self.outgoing.written > before || sent.is_ready() {
            self.waits = Waits::Nothing;
        }
        match sent {
            Poll::Ready(Err(Unsent::Client(error))) => {
                Err(Trouble::Client(ClientTrouble(error.settle(x))))
            }
            Poll::Ready(Err(Unsent::Call(call, error))) => {
                self.broken = Some((call, error));
                Ok(())
            }
            Poll::Ready(Ok(())) | Poll::Pending => Ok(()),
        }
    }

    /// One of the two times runs: that between writes until all is written, then that between
    /// reads. While the client's body is waited for, none does: that time is the client's.
    fn poll_timeout(&mut self, cx: &mut Context<'_>, x: &mut Exchange) -> Poll<Trouble> {
        let conf = self.request.conf;
        let (waits, timeout_ms) = match self.outgoing.is_done() {
            true => (Waits::ToRead, conf.read_timeout.0),
            false if self.outgoing.waits_for_client() => return Poll::Pending,
            false => (Waits::ToWrite, conf.send_timeout.0),
        };
        if self.waits != waits {
            self.waits = waits;
            self.timer.set(timeout_ms);
        }
        ready!(self.timer.poll(cx));
        if waits == Waits::ToRead {
            x.action = READING;
        }
        Poll::Ready(timed_out(x))
    }

    /// The request could not be written, and the server has nothing to say to that.
    fn unsent(&mut self, x: &mut Exchange) -> Trouble {
        if let Some((call, error)) = self.broken.take() {
            x.action = "sending request to upstream";
            x.log(Level::Error, format_args!("{call} failed{}", Errno(&error)));
        }
        Trouble::Error
    }

    /// Reads until the head of the reply is there.
    fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
        x: &mut Exchange,
    ) -> Poll<Result<Answered, Trouble>> {
        self.yields = false;
        for _ in 0..READS_PER_TURN {
            match ready!(self.poll_read(cx)) {
                Ok(count @ 1..) => self.note_read(count),
                ended => {
                    x.action = READING;
                    return Poll::Ready(Err(self.ended(x, ended)));
                }
            }
            x.action = READING;
            match self.parse(x) {
                Ok(None) => self.expect_more(x),
                Ok(Some(answered)) => return Poll::Ready(Ok(answered)),
                Err(trouble) => {
                    x.backends.note_head(&self.input[self.head_start..]);
                    return Poll::Ready(Err(trouble));
                }
            }
        }
        self.yields = true;
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Reads once. While nothing has come, no buffer is held.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if self.input.capacity() == 0 && self.may_be_large() {
            self.input = buffers::lend_large();
        }
        if !self.input.is_empty() && self.input.len() == self.input.capacity() {
            self.input.reserve(buffers::BUFFER_SIZE);
        }
        let read = self.connection.stream.poll_read(cx, &mut self.input);
        if self.input.is_empty() {
            buffers::give_back(std::mem::take(&mut self.input));
        }
        read
    }

    /// The head is not complete. The interim replies before it are not needed any more; from the
    /// first of them on, the time for reading runs until the final head is there.
    fn expect_more(&mut self, x: &mut Exchange) {
        self.input.drain(..std::mem::take(&mut self.head_start));
        if self.interim_replies == 0 {
            self.waits = Waits::Nothing;
        }
        x.backends.note_head(&self.input);
    }

    /// Whether a head may be larger than most buffers.
    fn may_be_large(&self) -> bool {
        self.request.conf.buffer_size.0 > buffers::BUFFER_SIZE as u64
    }

    fn note_read(&mut self, count: usize) {
        let received = &self.request.asked.bytes_received;
        received.set(received.get() + count as u64);
    }

    /// The connection has ended before the head has.
    fn ended(&mut self, x: &mut Exchange, ended: io::Result<usize>) -> Trouble {
        if self.broken.is_some() {
            return self.unsent(x);
        }
        match ended {
            Ok(_) => x.log(Level::Error, format_args!("upstream prematurely closed connection")),
            Err(error) => x.log(Level::Error, format_args!("recv() failed{}", Errno(&error))),
        }
        Trouble::Error
    }

    /// The head, if all of it is there. Interim replies are passed over, but for early hints.
    fn parse(&mut self, x: &mut Exchange) -> Result<Option<Answered>, Trouble> {
        loop {
            let text = &self.input[self.head_start..];
            let parsed = match x.backends.head.parse(text) {
                Ok(parsed) => parsed,
                Err(error) => return Err(refused(error, text, x)),
            };
            let buffer_size = self.request.conf.buffer_size.0;
            if parsed.unwrap_or(text.len() + 1) as u64 > buffer_size {
                x.log(Level::Error, format_args!("upstream sent too big header"));
                return Err(Trouble::InvalidHeader);
            }
            let Some(head_bytes) = parsed else { return Ok(None) };
            if matches!(x.backends.head.status, 100 | 102..=199) {
                self.pass_over(x, head_bytes)?;
                continue;
            }
            let body = ReplyBody::of(&x.backends.head, text, self.request.to_head)
                .map_err(|error| refused(error, text, x))?;
            x.backends.note_head(&text[..head_bytes]);
            let head_bytes = self.head_start + head_bytes;
            let input = std::mem::take(&mut self.input);
            return Ok(Some(Answered { body, head_bytes, input, sent: self.is_sent() }));
        }
    }

    /// Whether all of the request was sent, and the server knows it: of a body whose length is said
    /// and that is not passed on it waits for more, which would be the next request.
    fn is_sent(&self) -> bool {
        let Request { head, announced, .. } = &self.request;
        let is_whole =
            |length: u64| self.outgoing.written == (head.len() as u64).saturating_add(length);
        self.outgoing.is_done() && self.broken.is_none() && announced.is_none_or(is_whole)
    }

    /// An interim reply: another follows.
    fn pass_over(&mut self, x: &mut Exchange, head_bytes: usize) -> Result<(), Trouble> {
        self.interim_replies += 1;
        if self.interim_replies > INTERIM_REPLIES_MAX {
            let most = INTERIM_REPLIES_MAX;
            x.log(Level::Error, format_args!("upstream sent more than {most} interim responses"));
            return Err(Trouble::InvalidHeader);
        }
        if x.backends.head.status == 103 {
            let text = &self.input[self.head_start..];
            self.early_bytes += head_bytes;
            if self.early_bytes as u64 <= self.request.conf.buffer_size.0 {
                // Whether they are wanted may depend on them.
                x.backends.note_head(&text[..head_bytes]);
                head::send_early_hints(x, text, self.request.passed);
            } else {
                x.log(Level::Info, format_args!("upstream sent too big early hints"));
            }
        }
        x.backends.head.reset();
        self.head_start += head_bytes;
        Ok(())
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        buffers::give_back(std::mem::take(&mut self.input));
    }
}

/// A head that is none.
fn refused(error: ReplyError, input: &[u8], x: &Exchange) -> Trouble {
    x.log(Level::Error, format_args!("{}", describe(error, input)));
    Trouble::InvalidHeader
}

/// What is wrong with a head, in nginx's words.
pub(crate) fn describe(error: ReplyError, input: &[u8]) -> String {
    let line = |field: wire::http1::response::ReplyField| {
        format!("{}: {}", Text(field.name.of(input)), Text(field.value.of(input)))
    };
    match error {
        ReplyError::NotHttp => "upstream sent no valid HTTP/1.0 header".to_owned(),
        ReplyError::InvalidField(slice, byte) => {
            format!("upstream sent invalid header: \"{}\\x{byte:02x}...\"", Text(slice.of(input)))
        }
        ReplyError::DuplicateField { field, previous } => format!(
            "upstream sent duplicate header line: \"{}\", previous value: \"{}\"",
            line(field),
            line(previous)
        ),
        ReplyError::InvalidContentLength(field) => {
            format!("upstream sent invalid \"Content-Length\" header: \"{}\"", line(field))
        }
        ReplyError::LengthAndCoding => {
            "upstream sent \"Content-Length\" and \"Transfer-Encoding\" headers at the same time"
                .to_owned()
        }
        ReplyError::UnknownCoding(value) => {
            format!("upstream sent unknown \"Transfer-Encoding\": \"{}\"", Text(value.of(input)))
        }
        ReplyError::TooManyFields => "upstream sent too many header lines".to_owned(),
    }
}
