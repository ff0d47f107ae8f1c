//! Sends a reply: pieces of the body are pulled as the client reads them, and written with the head
//! in as few calls as possible.
//!
//! ```text
//! body --pull--> piece --put--> outlet --flush--> client
//! ```
//!
//! A piece waits until the outlet has room, and the next one is pulled only after that, so that a
//! slow client slows down the source.
//!
//! Most replies are complete in memory, and the socket has room for them. [`SentHead::send_fast`]
//! puts and flushes such a reply with the same calls in the same order as [`Sending`], and leaves
//! any rest to it.

use std::future::poll_fn;
use std::io;
use std::os::unix::fs::FileExt;
use std::task::{Context, Poll, ready};

use net::memory::{self, OutOfMemory};
use observe::{Errno, Level, Text};

use super::cut::{gone, timed_out};
use super::{BodyBound, CutReply, Framing, Outlet, limit_rate};
use crate::answer;
use crate::exchange::{
    Body, BodyError, Bytes, Chunk, CloseReason, Exchange, FileSlice, FilteredBody, RequestTiming,
    TimedPhase,
};
use crate::header_text::FORBIDDEN;
use crate::phases;
use crate::rate::{Allowance, Rate};
use crate::site::policy::Output;

/// The kernel reads smaller files ahead anyway.
const READ_AHEAD_MIN: u64 = 128 * 1024;

/// A reply on its way to the client.
struct Sending<'o, O> {
    outlet: &'o mut O,
    output: Output,
    framing: Framing,
    rate: Rate,
    body: Option<FilteredBody>,
    piece: Option<ReplyPiece>,
    /// Whether the outlet is being flushed; nothing is gathered meanwhile.
    flushes: bool,
    /// The result of the reply, once the outlet is flushed.
    end: Option<Result<(), SendError>>,
    /// Memory of a piece that was written.
    returned: Option<Vec<u8>>,
    /// The pause before the next write.
    delay_ms: Option<u64>,
    /// Bytes written since other connections had their turn.
    turn: u64,
    /// Whether the reply ends when the client is gone.
    watches: bool,
}

/// A piece of the body that is not in the outlet yet.
enum ReplyPiece {
    Bytes(Bytes),
    File(FileSlice),
}

/// Why a reply is incomplete.
enum SendError {
    /// The client is gone.
    Gone,
    TimedOut,
    /// A system call failed.
    Call(&'static str, io::Error),
    /// The source of the body failed.
    Body(BodyError),
    /// There is no memory for the next piece.
    NoMemory(OutOfMemory),
    /// The body is longer than announced.
    TooLong,
}

enum Gathered {
    /// There may be more.
    More,
    /// The outlet must be flushed first.
    Enough,
    End,
}

/// Replaces a reply whose fields contain a line break by an error, before anything is sent.
pub(super) fn check(x: &mut Exchange) {
    if let Err(name) = x.reply.unfold() {
        let name = Text(&name);
        x.log(Level::Error, format_args!("header \"{name}\" of the reply {FORBIDDEN}"));
        answer::instead_of_reply(x, 500);
    }
}

/// Sends the reply. Errors are logged here.
pub(super) async fn send<O: Outlet>(x: &mut Exchange, outlet: &mut O) -> Result<(), CutReply> {
    let fast = poll_fn(|cx| Poll::Ready(SentHead::new(outlet, x).send_fast(cx, x, outlet)));
    let result = match fast.await {
        FastSend::Sent => Ok(()),
        FastSend::Cut(cut) => Err(cut),
        FastSend::Rest(head) => {
            x.begin_timing();
            let mut sending = Sending::new(outlet, x, head);
            let result = poll_fn(|cx| sending.poll_timed(cx, x)).await;
            sending.end(x, result)
        }
    };
    outlet.release();
    outlet.end_wait();
    x.reply.complete |= result.is_ok();
    result
}

/// A reply whose head was put into the outlet.
struct SentHead {
    has_body: bool,
    framing: Framing,
    /// Whether its rate is limited.
    is_limited: bool,
    /// The most bytes to write before other connections get their turn; 0: no limit.
    turn_max: u64,
    /// Whether the whole reply was put into the outlet.
    is_put: bool,
}

/// The result of sending a reply in one call.
enum FastSend {
    Sent,
    /// It failed, which was logged.
    Cut(CutReply),
    /// [`Sending`] has to send the rest.
    Rest(SentHead),
}

impl SentHead {
    fn new(outlet: &mut impl Outlet, x: &mut Exchange) -> Self {
        let has_body = settle_head(x);
        let generation = x.generation.clone();
        let output = &generation.location(x.location).core.output;
        let framing = outlet.put_head(x, has_body, output);
        x.reply.head_sent = true;
        if x.backends.named && x.reply.status != 101 {
            x.action = "sending to client";
        }
        let is_limited = limit_rate::settle(x) > 0;
        Self { has_body, framing, is_limited, turn_max: output.sendfile_max_chunk, is_put: false }
    }

    /// Sends a reply that is complete in memory, as far as outlet and socket have room.
    fn send_fast(
        mut self,
        cx: &mut Context<'_>,
        x: &mut Exchange,
        outlet: &mut impl Outlet,
    ) -> FastSend {
        if self.has_body && x.reply.has_filters() {
            filter_whole(cx, x);
        }
        let fits = match &x.reply.body {
            _ if !self.has_body => true,
            _ if x.reply.has_filters() => false,
            Body::Empty => true,
            Body::Bytes(bytes) => outlet.takes(bytes.len()),
            Body::File(_) | Body::Stream(_) => false,
        };
        if !fits || self.is_limited || cfg!(feature = "never-at-once") {
            return FastSend::Rest(self);
        }
        if let Err(failed) = self.put_body(x, outlet) {
            return FastSend::Cut(failed.settle(x));
        }
        self.framing.put_end(x, outlet);
        self.is_put = true;
        outlet.begin_flush();
        match outlet.poll_flush(cx, flush_max(self.turn_max)) {
            Poll::Ready(Ok(count)) => {
                x.reply.bytes_sent += count as u64;
                outlet.end_wait();
            }
            Poll::Ready(Err((call, error))) => {
                return FastSend::Cut(SendError::Call(call, error).settle(x));
            }
            Poll::Pending => {}
        }
        if outlet.gathered() > 0 {
            return FastSend::Rest(self);
        }
        take_back(x, outlet.end_flush());
        match self.framing.end() {
            Ok(()) => FastSend::Sent,
            Err(failed) => FastSend::Cut(failed.settle(x)),
        }
    }

    fn put_body(&mut self, x: &mut Exchange, outlet: &mut impl Outlet) -> Result<(), SendError> {
        if let Body::Bytes(bytes) = x.reply.body.take()
            && self.has_body
            && !bytes.is_empty()
        {
            self.framing.count(bytes.len() as u64)?;
            take_back(x, outlet.put_bytes(bytes));
        }
        Ok(())
    }
}

/// Filters a body that is completely in memory, so that the result can be sent in one call.
fn filter_whole(cx: &mut Context<'_>, x: &mut Exchange) {
    if !matches!(x.reply.body, Body::Empty | Body::Bytes(_)) {
        return;
    }
    match FilteredBody::take(&mut x.reply).whole(x, cx) {
        Ok(body) => x.reply.body = body,
        Err(rest) => rest.give_back(&mut x.reply),
    }
}

/// Keeps the memory of a written piece for the next reply.
fn take_back(x: &mut Exchange, bytes: Option<Bytes>) {
    if let Some(bytes @ Bytes::Owned(_)) = bytes {
        x.reply.body = Body::Bytes(bytes);
    }
}

/// The most bytes to write in one call.
fn flush_max(turn_max: u64) -> usize {
    match turn_max {
        0 => usize::MAX,
        chunk => usize::try_from(chunk).unwrap_or(usize::MAX),
    }
}

/// Adapts the head to the status. Returns whether there is a body.
fn settle_head(x: &mut Exchange) -> bool {
    let reply = &mut x.reply;
    // As in nginx, the fields of a backend's reply without a body are passed on.
    if reply.status == 204 && reply.reason.is_empty() {
        reply.content_type.clear();
        reply.content_length = None;
    }
    if !matches!(reply.status, 200 | 206 | 304) {
        reply.last_modified = None;
    }
    x.request.header_only |= matches!(reply.status, 204 | 304);
    !x.request.header_only && !matches!(reply.status, 100..200)
}

impl SendError {
    /// Logs the error. Returns how the connection ends.
    fn settle(self, x: &mut Exchange) -> CutReply {
        match self {
            Self::Gone => return gone(x),
            Self::TimedOut => {
                let error = net::timed_out();
                x.log(Level::Info, format_args!("client timed out{}", Errno(&error)));
                if x.reply.bytes_sent == 0 {
                    x.reply.status = 408;
                }
                return timed_out(x);
            }
            Self::Call(call, error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                x.log(Level::Alert, format_args!("{call} reported that the file was truncated"));
            }
            Self::Call(call, error) => {
                x.log(Level::Info, format_args!("{call} failed{}", Errno(&error)));
            }
            Self::Body(error) => {
                if error.is_of_backend() {
                    // As in nginx, the request counts as complete, and the connection is closed.
                    x.reply.complete = true;
                    x.close_after(CloseReason::Over);
                }
                error.log(x);
            }
            Self::NoMemory(error) => x.log(Level::Emerg, format_args!("{error}")),
            Self::TooLong => {
                x.log(Level::Alert, format_args!("the reply's body is longer than announced"));
            }
        }
        CutReply::Close
    }
}

fn rate_of(x: &mut Exchange) -> Rate {
    match limit_rate::settle(x) {
        0 => Rate::default(),
        rate => Rate::new(rate, limit_rate::settle_after(x), x.started_unix_ms / 1000),
    }
}

impl Framing {
    /// Checks the body against the announced length.
    fn count(&mut self, length: u64) -> Result<(), SendError> {
        if let BodyBound::Length(left) = &mut self.body {
            *left = left.checked_sub(length).ok_or(SendError::TooLong)?;
        }
        Ok(())
    }

    /// The result of a reply whose body has ended.
    fn end(&self) -> Result<(), SendError> {
        match self.body {
            BodyBound::Length(1..) => Err(SendError::Body(BodyError::Truncated)),
            _ => Ok(()),
        }
    }

    /// Puts the end, if the body is complete.
    fn put_end(&self, x: &mut Exchange, outlet: &mut impl Outlet) {
        if self.end().is_err() {
            return;
        }
        // As in nginx, trailers are computed even if they cannot be sent: variables show them.
        let has_body = !matches!(self.body, BodyBound::None);
        if self.has_trailers || has_body && x.reply.expect_trailers {
            phases::end_body(x);
            if let Some(name) = x.reply.trailers.unfold() {
                let name = Text(&name);
                x.log(Level::Error, format_args!("trailer \"{name}\" {FORBIDDEN}"));
            }
        }
        outlet.put_end(&x.reply.trailers);
    }
}

impl<'o, O: Outlet> Sending<'o, O> {
    fn new(outlet: &'o mut O, x: &mut Exchange, head: SentHead) -> Self {
        let body = match head.has_body && !head.is_put {
            true => FilteredBody::take(&mut x.reply),
            false => FilteredBody::default(),
        };
        Self {
            outlet,
            output: x.location().core.output,
            framing: head.framing,
            rate: rate_of(x),
            body: (!body.is_empty()).then_some(body),
            piece: None,
            flushes: head.is_put,
            end: head.is_put.then(|| head.framing.end()),
            returned: None,
            delay_ms: None,
            turn: 0,
            watches: !x.outlives_client.get(),
        }
    }

    fn end(mut self, x: &mut Exchange, result: Result<(), SendError>) -> Result<(), CutReply> {
        take_back(x, self.returned.take().map(Bytes::Owned));
        // Log lines of the body's source need the body, which `self` still holds.
        result.map_err(|failed| failed.settle(x))
    }

    /// [`poll`](Self::poll), stamped.
    fn poll_timed(
        &mut self,
        cx: &mut Context<'_>,
        x: &mut Exchange,
    ) -> Poll<Result<(), SendError>> {
        let timing = x.timing.clone();
        RequestTiming::around(&timing, || self.poll(cx, x))
    }

    fn poll(&mut self, cx: &mut Context<'_>, x: &mut Exchange) -> Poll<Result<(), SendError>> {
        loop {
            if self.flushes {
                ready!(self.poll_flush(cx, x))?;
                self.flushes = false;
                if let Some(Bytes::Owned(bytes)) = self.outlet.end_flush() {
                    self.returned = Some(bytes);
                }
                if let Some(end) = self.end.take() {
                    return Poll::Ready(end);
                }
            }
            let end = match ready!(self.poll_gather(cx, x)) {
                Ok(Gathered::More) => continue,
                Ok(Gathered::Enough) => None,
                Ok(Gathered::End) => {
                    self.framing.put_end(x, self.outlet);
                    Some(self.framing.end())
                }
                Err(SendError::Body(error)) if !error.discards_unsent() => {
                    Some(Err(SendError::Body(error)))
                }
                // What was read of a file before its end goes out, as it does by sendfile().
                Err(failed @ SendError::Call(..)) => Some(Err(failed)),
                Err(failed) => return Poll::Ready(Err(failed)),
            };
            self.end = end;
            self.flushes = true;
            self.outlet.begin_flush();
        }
    }

    fn poll_gather(
        &mut self,
        cx: &mut Context<'_>,
        x: &mut Exchange,
    ) -> Poll<Result<Gathered, SendError>> {
        match (self.piece.take(), &self.body) {
            (Some(piece), _) => Poll::Ready(self.put(piece)),
            (None, Some(body)) if self.outlet.has_large() && body.is_better_flushed() => {
                Poll::Ready(Ok(Gathered::Enough))
            }
            (None, Some(_)) => self.poll_pull(cx, x),
            (None, None) => Poll::Ready(Ok(Gathered::End)),
        }
    }

    /// Pulls the next piece of the body.
    fn poll_pull(
        &mut self,
        cx: &mut Context<'_>,
        x: &mut Exchange,
    ) -> Poll<Result<Gathered, SendError>> {
        self.outlet.forget_reader();
        let body = self.body.as_mut().expect("called while there is a body");
        let pulled = match body.poll_chunk(x, cx) {
            Poll::Ready(pulled) => pulled.map_err(SendError::Body)?,
            Poll::Pending if self.outlet.gathered() >= self.output.postpone_output.max(1) => {
                return Poll::Ready(Ok(Gathered::Enough));
            }
            Poll::Pending => {
                if self.outlet.gathered() == 0 {
                    self.outlet.shrink();
                }
                return self.poll_client(cx).map(Err);
            }
        };
        match pulled {
            Some(Chunk::Bytes(bytes)) => self.piece = Some(ReplyPiece::Bytes(bytes)),
            Some(Chunk::File(slice)) => self.piece = Some(ReplyPiece::File(slice)),
            Some(Chunk::Flush | Chunk::Pause) => return Poll::Ready(Ok(Gathered::Enough)),
            Some(Chunk::Trailers(_)) => {}
            None => self.body = None,
        }
        Poll::Ready(Ok(Gathered::More))
    }

    /// Puts a piece into the outlet, if there is room.
    fn put(&mut self, piece: ReplyPiece) -> Result<Gathered, SendError> {
        let (length, room) = match &piece {
            ReplyPiece::Bytes(bytes) => (bytes.len() as u64, bytes.len()),
            ReplyPiece::File(slice) => (slice.len(), usize::MAX),
        };
        if length == 0 {
            return Ok(Gathered::More);
        }
        if !self.outlet.takes(room) {
            self.piece = Some(piece);
            return Ok(Gathered::Enough);
        }
        match piece {
            ReplyPiece::File(slice) if !self.output.sendfile || !self.outlet.sends_files() => {
                self.put_read(slice)?;
            }
            ReplyPiece::File(slice) => {
                self.advise(&slice);
                self.framing.count(length)?;
                self.outlet.put_file(slice);
            }
            ReplyPiece::Bytes(bytes) => self.put_bytes(bytes)?,
        }
        Ok(Gathered::More)
    }

    fn put_bytes(&mut self, bytes: Bytes) -> Result<(), SendError> {
        self.framing.count(bytes.len() as u64)?;
        if let Some(Bytes::Owned(copied)) = self.outlet.put_bytes(bytes) {
            self.returned = Some(copied);
        }
        Ok(())
    }

    /// Reads the next buffer of a file that is not sent by sendfile().
    fn put_read(&mut self, mut slice: FileSlice) -> Result<(), SendError> {
        self.advise(&slice);
        let mut buffer = self.returned.take().unwrap_or_default();
        let size = slice.len().min(self.output.buffer_size.max(1)) as usize;
        let more = size.saturating_sub(buffer.len());
        memory::try_reserve_exact(&mut buffer, more).map_err(SendError::NoMemory)?;
        buffer.resize(size, 0);
        match slice.file.read_at(&mut buffer, slice.start) {
            Ok(0) => return Err(SendError::Call("pread()", io::ErrorKind::UnexpectedEof.into())),
            Ok(read) => buffer.truncate(read),
            Err(error) => return Err(SendError::Body(BodyError::Io(error))),
        }
        slice.start += buffer.len() as u64;
        if !slice.is_empty() {
            self.piece = Some(ReplyPiece::File(slice));
        }
        self.put_bytes(Bytes::Owned(buffer))
    }

    /// Applies `read_ahead`. nginx does this when it opens the file, with the same effect.
    fn advise(&self, slice: &FileSlice) {
        if self.output.read_ahead > 0 && slice.start == 0 && slice.len() > READ_AHEAD_MIN {
            net::file::read_ahead(&slice.file);
        }
    }

    fn poll_flush(
        &mut self,
        cx: &mut Context<'_>,
        x: &mut Exchange,
    ) -> Poll<Result<(), SendError>> {
        while self.outlet.gathered() > 0 {
            let most = match self.poll_allowance(cx, x.reply.bytes_sent) {
                Poll::Ready(most) => most?,
                Poll::Pending => {
                    x.waits_for(TimedPhase::LimitRate);
                    self.outlet.shrink();
                    self.fill(cx, x);
                    return Poll::Pending;
                }
            };
            match self.outlet.poll_flush(cx, most) {
                Poll::Ready(Ok(count)) => self.note_written(x, count as u64),
                Poll::Ready(Err((call, error))) => {
                    return Poll::Ready(Err(SendError::Call(call, error)));
                }
                Poll::Pending => {
                    x.waits_for(TimedPhase::Send);
                    self.outlet.shrink();
                    self.fill(cx, x);
                    return self.poll_stalled(cx).map(Err);
                }
            }
            let chunk = self.output.sendfile_max_chunk;
            if chunk > 0 && self.turn >= chunk && self.outlet.gathered() > 0 {
                self.turn = 0;
                x.waits_for(TimedPhase::Loop);
                self.outlet.shrink();
                net::defer(cx.waker());
                return Poll::Pending;
            }
        }
        Poll::Ready(Ok(()))
    }

    /// The number of bytes that may be written; ready when it is not 0.
    fn poll_allowance(
        &mut self,
        cx: &mut Context<'_>,
        sent: u64,
    ) -> Poll<Result<usize, SendError>> {
        loop {
            if let Some(delay_ms) = self.delay_ms {
                if self.outlet.poll_pause(cx, delay_ms).is_pending() {
                    return self.poll_client(cx).map(Err);
                }
                self.outlet.end_wait();
                self.delay_ms = None;
            }
            let most = match self.rate.allowance(net::clock::unix_ms() / 1000, sent) {
                Allowance::Unlimited => u64::MAX,
                Allowance::Bytes(bytes) => bytes,
                Allowance::NotBefore(delay_ms) => {
                    self.delay_ms = Some(delay_ms);
                    continue;
                }
            };
            let most = usize::try_from(most).unwrap_or(usize::MAX);
            return Poll::Ready(Ok(most.min(flush_max(self.output.sendfile_max_chunk))));
        }
    }

    fn note_written(&mut self, x: &mut Exchange, count: u64) {
        let before = x.reply.bytes_sent;
        x.reply.bytes_sent += count;
        self.turn += count;
        net::spend(count as usize);
        self.outlet.end_wait();
        match self.rate.delay_ms(before, x.reply.bytes_sent) {
            0 => {}
            delay_ms => self.delay_ms = Some(delay_ms),
        }
    }

    /// Lets the source read ahead while nothing can be sent.
    fn fill(&mut self, cx: &mut Context<'_>, x: &mut Exchange) {
        if let Some(body) = &mut self.body {
            body.fill(x, cx);
        }
    }

    /// Waits for a client that reads nothing.
    fn poll_stalled(&mut self, cx: &mut Context<'_>) -> Poll<SendError> {
        if self.outlet.poll_stalled(cx, self.output.send_timeout_ms).is_ready() {
            return Poll::Ready(SendError::TimedOut);
        }
        self.poll_client(cx)
    }

    /// While nothing can be sent, discards an unread request body, so that the client comes to read
    /// the reply, and then watches the client.
    fn poll_client(&self, cx: &mut Context<'_>) -> Poll<SendError> {
        match self.outlet.poll_unwanted(cx) {
            Poll::Ready(()) if self.watches => self.outlet.poll_gone(cx).map(|()| SendError::Gone),
            _ => Poll::Pending,
        }
    }
}
