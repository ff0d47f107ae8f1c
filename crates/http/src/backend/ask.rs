//! One request on one connection: written and, as soon as there is any of it, the reply's head read.
//!
//! A server may answer before it has read everything: what is not written by then is not written
//! any more, and the connection is used for nothing else.

use std::io::{self, IoSlice};
use std::os::fd::AsFd;
use std::task::{Context, Poll, ready};

use net::{Timer, buffers};
use observe::{Errno, Level, Text};
use wire::http1::chunked::{ChunkHead, LAST_CHUNK};
use wire::http1::response::{ReplyBody, ReplyError};

use super::Conf;
use super::connect::timed_out;
use crate::exchange::{Exchange, FileSlice, Flow, Kept};
use ::upstream::pool::Connection;

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

/// What follows the head of a request.
pub(super) enum Body {
    None,
    /// Bytes that stand in the exchange: its body in memory.
    Kept,
    /// Bytes made for it.
    Made(Vec<u8>),
    File(FileSlice),
    /// As it comes from the client, chunked again where its length is not known.
    Streamed {
        chunked: bool,
    },
}

/// The request on its way, and the reply's beginning.
pub(super) struct Asking<'a> {
    pub(super) conf: &'a Conf,
    pub(super) connection: &'a mut Connection,
    pub(super) timer: &'a Timer,
    pub(super) head: &'a [u8],
    pub(super) body: &'a mut Body,
    pub(super) to_head: bool,
    /// How much of head and body has been written, and in how many calls.
    pub(super) written: u64,
    writes: u64,
    /// A piece of a streamed body, framed.
    piece: Vec<u8>,
    piece_written: usize,
    /// Whether nothing follows it.
    is_last: bool,
    state: Sending,
    /// What the timer is for.
    waits: Waits,
    /// What has been received.
    pub(super) input: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sending {
    Head,
    Body,
    Done,
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
    /// How many bytes of the input are the head.
    pub(super) head_bytes: usize,
    pub(super) input: Vec<u8>,
    /// Whether all of the request was sent.
    pub(super) sent: bool,
}

impl<'a> Asking<'a> {
    pub(super) fn new(
        conf: &'a Conf,
        connection: &'a mut Connection,
        timer: &'a Timer,
        head: &'a [u8],
        body: &'a mut Body,
        to_head: bool,
    ) -> Self {
        Self {
            conf,
            connection,
            timer,
            head,
            body,
            to_head,
            written: 0,
            writes: 0,
            piece: Vec::new(),
            piece_written: 0,
            is_last: false,
            state: Sending::Head,
            waits: Waits::Nothing,
            input: Vec::new(),
        }
    }

    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        x: &mut Exchange,
    ) -> Poll<Result<Answered, Trouble>> {
        if self.state != Sending::Done
            && let Poll::Ready(Err(trouble)) = self.poll_send(cx, x)
        {
            return Poll::Ready(Err(trouble));
        }
        match self.poll_head(cx, x) {
            Poll::Ready(answered) => Poll::Ready(answered),
            Poll::Pending => self.poll_timeout(cx, x).map(Err),
        }
    }

    /// One of the two times runs: that between writes until all is written, then that between
    /// reads. While the client's body is waited for, none does: that time is the client's.
    fn poll_timeout(&mut self, cx: &mut Context<'_>, x: &Exchange) -> Poll<Trouble> {
        let (waits, timeout_ms) = match self.state {
            Sending::Done => (Waits::ToRead, self.conf.read_timeout.0),
            _ if self.waits_for_client() => return Poll::Pending,
            _ => (Waits::ToWrite, self.conf.send_timeout.0),
        };
        if self.waits != waits {
            self.waits = waits;
            self.timer.set(timeout_ms);
        }
        ready!(self.timer.poll(cx));
        Poll::Ready(timed_out(x))
    }

    fn waits_for_client(&self) -> bool {
        matches!(self.body, Body::Streamed { .. }) && self.piece_written == self.piece.len()
    }

    fn poll_send(&mut self, cx: &mut Context<'_>, x: &mut Exchange) -> Poll<Result<(), Trouble>> {
        if self.state == Sending::Head {
            x.action = "sending request to upstream";
        }
        while self.state != Sending::Done {
            ready!(self.poll_send_some(cx, x))?;
        }
        self.waits = Waits::Nothing;
        Poll::Ready(Ok(()))
    }

    fn poll_send_some(
        &mut self,
        cx: &mut Context<'_>,
        x: &mut Exchange,
    ) -> Poll<Result<(), Trouble>> {
        let head_left = &self.head[self.head.len().min(self.written as usize)..];
        let body_written = (self.written as usize).saturating_sub(self.head.len());
        let memory: &[u8] = match &*self.body {
            Body::Made(bytes) => bytes,
            Body::Kept => kept(x),
            Body::None | Body::File(_) | Body::Streamed { .. } => &[],
        };
        let rest = &memory[body_written.min(memory.len())..];
        if !head_left.is_empty() || !rest.is_empty() {
            let parts = [IoSlice::new(head_left), IoSlice::new(rest)];
            let parts = match (head_left.is_empty(), rest.is_empty()) {
                (false, true) => &parts[..1],
                (true, false) => &parts[1..],
                _ => &parts[..],
            };
            let written = ready!(self.connection.stream.poll_write(cx, parts));
            self.note(written, "writev()", x)?;
            return Poll::Ready(Ok(()));
        }
        self.state = Sending::Body;
        match &mut *self.body {
            Body::None | Body::Made(_) | Body::Kept => self.state = Sending::Done,
            Body::File(slice) if slice.is_empty() => self.state = Sending::Done,
            Body::File(slice) => {
                let count = usize::try_from(slice.len()).unwrap_or(usize::MAX);
                let file = slice.file.clone();
                let stream = &mut self.connection.stream;
                let sent = ready!(stream.poll_sendfile(cx, file.as_fd(), &mut slice.start, count));
                self.note(sent, "sendfile()", x)?;
            }
            Body::Streamed { chunked } => {
                let chunked = *chunked;
                return self.poll_stream(cx, x, chunked);
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Passes on what comes from the client.
    fn poll_stream(
        &mut self,
        cx: &mut Context<'_>,
        x: &mut Exchange,
        chunked: bool,
    ) -> Poll<Result<(), Trouble>> {
        while self.piece_written < self.piece.len() {
            let rest = &self.piece[self.piece_written..];
            let written = ready!(self.connection.stream.poll_write(cx, &[IoSlice::new(rest)]));
            self.piece_written += self.note(written, "send()", x)?;
        }
        self.piece.clear();
        self.piece_written = 0;
        if self.is_last {
            self.state = Sending::Done;
            return Poll::Ready(Ok(()));
        }
        let mut bytes = buffers::lend();
        let read = x.poll_body(cx, &mut bytes);
        if let Poll::Ready(Ok(read)) = read {
            self.frame(&bytes, chunked);
            self.is_last = read == 0;
        }
        buffers::give_back(bytes);
        match ready!(read) {
            Ok(_) => Poll::Ready(Ok(())),
            Err(error) => Poll::Ready(Err(Trouble::Client(ClientTrouble(error.settle(x))))),
        }
    }

    /// Makes the next piece of what was read; of nothing, the end.
    fn frame(&mut self, bytes: &[u8], chunked: bool) {
        match (chunked, bytes.is_empty()) {
            (false, _) => self.piece.extend_from_slice(bytes),
            (true, true) => self.piece.extend_from_slice(LAST_CHUNK),
            (true, false) => {
                self.piece.extend_from_slice(ChunkHead::new(bytes.len() as u64).as_ref());
                self.piece.extend_from_slice(bytes);
                self.piece.extend_from_slice(b"\r\n");
            }
        }
    }

    /// Notes what was written; an error is logged.
    fn note(
        &mut self,
        written: io::Result<usize>,
        call: &str,
        x: &Exchange,
    ) -> Result<usize, Trouble> {
        match written {
            Ok(count) => {
                if self.writes == 1 {
                    // What the server has not acknowledged yet must not hold back what follows.
                    self.connection.stream.set_nodelay();
                }
                self.writes += 1;
                self.written += count as u64;
                self.waits = Waits::Nothing;
                Ok(count)
            }
            Err(error) => {
                x.log(Level::Error, format_args!("{call} failed{}", Errno(&error)));
                Err(Trouble::Error)
            }
        }
    }

    /// Reads until the head of the reply is there.
    fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
        x: &mut Exchange,
    ) -> Poll<Result<Answered, Trouble>> {
        loop {
            if self.input.capacity() == 0 {
                self.input = lend(self.conf.buffer_size.0);
            }
            let read = self.connection.stream.poll_read(cx, &mut self.input);
            if self.input.is_empty() {
                buffers::give_back(std::mem::take(&mut self.input));
            }
            if self.state == Sending::Done {
                x.action = "reading response header from upstream";
            }
            match ready!(read) {
                Ok(0) => return Poll::Ready(Err(self.closed(x))),
                Ok(_) => self.waits = Waits::Nothing,
                Err(error) => {
                    x.log(Level::Error, format_args!("recv() failed{}", Errno(&error)));
                    return Poll::Ready(Err(Trouble::Error));
                }
            }
            x.action = "reading response header from upstream";
            if let Some(answered) = self.parse(x)? {
                return Poll::Ready(Ok(answered));
            }
        }
    }

    fn closed(&self, x: &Exchange) -> Trouble {
        x.log(Level::Error, format_args!("upstream prematurely closed connection"));
        Trouble::Error
    }

    /// The head, if all of it is there. Interim replies are passed over.
    fn parse(&mut self, x: &mut Exchange) -> Result<Option<Answered>, Trouble> {
        loop {
            let parsed = x.backends.head.parse(&self.input);
            let parsed = match parsed {
                Ok(parsed) => parsed,
                Err(error) => return Err(refused(error, &self.input, x)),
            };
            // More than the limit may have been read at once.
            let size = self.conf.buffer_size.0;
            let too_big = match parsed {
                None => self.input.len() as u64 >= size,
                Some(head_bytes) => head_bytes as u64 > size,
            };
            if too_big {
                x.log(Level::Error, format_args!("upstream sent too big header"));
                return Err(Trouble::InvalidHeader);
            }
            let Some(head_bytes) = parsed else { return Ok(None) };
            if matches!(x.backends.head.status, 100 | 102..=199) {
                x.backends.head.reset_to_next();
                continue;
            }
            let body = ReplyBody::of(&x.backends.head, &self.input, self.to_head)
                .map_err(|error| refused(error, &self.input, x))?;
            x.backends.head_text.clear();
            x.backends.head_text.extend_from_slice(&self.input[..head_bytes]);
            let input = std::mem::take(&mut self.input);
            let sent = self.state == Sending::Done;
            return Ok(Some(Answered { body, head_bytes, input, sent }));
        }
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        buffers::give_back(std::mem::take(&mut self.input));
    }
}

/// A buffer for a head of that size.
fn lend(size: u64) -> Vec<u8> {
    match usize::try_from(size) {
        Ok(size) if size > buffers::BUFFER_SIZE => Vec::with_capacity(size),
        _ => buffers::lend(),
    }
}

/// The body of the request, where it is in memory.
fn kept(x: &Exchange) -> &[u8] {
    match x.request.body.kept() {
        Some(Kept::Memory(bytes)) => bytes,
        Some(Kept::File(_)) | None => &[],
    }
}

/// What is wrong with a head, in nginx's words.
fn refused(error: ReplyError, input: &[u8], x: &Exchange) -> Trouble {
    let line = |field: wire::http1::response::ReplyField| {
        format!("{}: {}", Text(field.name.of(input)), Text(field.value.of(input)))
    };
    let message = match error {
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
    };
    x.log(Level::Error, format_args!("{message}"));
    Trouble::InvalidHeader
}
