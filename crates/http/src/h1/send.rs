//! Sending a reply: pieces of the body are pulled as the client takes them, framed, and written
//! with their head in as few calls as there can be.
//!
//! ```text
//! stream --pull--> piece --frame--> batch --flush--> socket
//! ```
//!
//! A piece waits until the batch has room for it, the stream until there is no piece: the client's
//! pace is felt as far back as the source goes.

use std::future::poll_fn;
use std::io;
use std::os::unix::fs::FileExt;
use std::task::{Context, Poll, ready};

use observe::{Errno, Level, Text};
use wire::http1::chunked::{ChunkHead, LAST_CHUNK};

use super::batch::{Batch, Manner};
use super::link::{CONTINUE, Link, WaitsFor};
use super::reply_head::{self, Framing};
use super::{After, Connection};
use crate::drive::limit_rate;
use crate::exchange::{Body, BodyError, BodyStream, Bytes, Chunk, Exchange, FileSlice};
use crate::header_text::FORBIDDEN;
use crate::phases;
use crate::rate::{Allowance, Rate};
use crate::site::policy::Output;

/// Files up to this are read ahead anyway.
const READ_AHEAD_MIN: u64 = 128 * 1024;

/// A reply on its way to the client.
struct Sending<'c> {
    link: &'c Link,
    output: Output,
    framing: Framing,
    rate: Rate,
    stream: Option<Box<dyn BodyStream>>,
    piece: Option<Piece>,
    batch: Batch,
    /// Whether the batch is being written, and nothing gathered meanwhile.
    flushes: bool,
    /// How it ends, once the batch is written.
    end: Option<Result<(), Failed>>,
    /// Memory of a piece that was written.
    returned: Option<Vec<u8>>,
    /// How long nothing may be written.
    delay_ms: Option<u64>,
    /// Bytes written since others had their turn.
    turn: u64,
    /// Whether the reply ends when its client is gone.
    watches: bool,
}

/// A piece of the body that is not in the batch yet.
enum Piece {
    Bytes(Bytes),
    File(FileSlice),
}

/// Why a reply does not reach its end.
enum Failed {
    /// The client is gone.
    Gone,
    TimedOut,
    /// A system call.
    Call(&'static str, io::Error),
    /// The body ended before its end.
    Body(BodyError),
    /// The body is longer than its head says.
    TooLong,
}

/// What came of gathering.
enum Gathered {
    /// There may be more at once.
    More,
    /// The batch is to be written before there can be more.
    Enough,
    /// There is no more.
    End,
}

impl Connection {
    /// Sends the reply. An error has been logged.
    pub(super) async fn send(&self, x: &mut Exchange) -> Result<(), After> {
        if !self.context.keeps(&self.client) {
            x.keepalive = false;
        }
        let mut sending = Sending::begin(&self.link, x);
        let result = poll_fn(|cx| sending.poll(cx, x)).await;
        // What was made for this reply serves for the next.
        if let Some(bytes) = sending.returned.take() {
            x.reply.body = Body::Bytes(Bytes::Owned(bytes));
        }
        // What the body has under way is told of while it is.
        let result = result.map_err(|failed| self.failed(x, failed));
        drop(sending);
        self.link.progress();
        x.reply.complete = result.is_ok();
        result
    }

    fn failed(&self, x: &mut Exchange, failed: Failed) -> After {
        match failed {
            Failed::Gone => return self.gone(x),
            Failed::TimedOut => {
                let error = net::timed_out();
                x.log(Level::Info, format_args!("client timed out{}", Errno(&error)));
                if x.reply.bytes_sent == 0 {
                    x.reply.status = 408;
                }
                return self.timed_out(x);
            }
            Failed::Call(call, error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                x.log(Level::Alert, format_args!("{call} reported that the file was truncated"));
            }
            Failed::Call(call, error) => {
                x.log(Level::Info, format_args!("{call} failed{}", Errno(&error)));
            }
            Failed::Body(error) => error.log(x),
            Failed::TooLong => {
                x.log(Level::Alert, format_args!("the reply's body is longer than announced"));
            }
        }
        After::Close
    }
}

/// How fast the reply is sent.
fn rate_of(x: &mut Exchange) -> Rate {
    match limit_rate::settle(x) {
        0 => Rate::default(),
        rate => Rate::new(rate, limit_rate::settle_after(x), x.started_unix_ms / 1000),
    }
}

impl<'c> Sending<'c> {
    fn begin(link: &'c Link, x: &mut Exchange) -> Self {
        let mut batch = Batch::new();
        if link.take_expectation() && !x.reply.without_continue {
            batch.text().extend_from_slice(CONTINUE);
        }
        batch.text().append(&mut link.unsent.borrow_mut());
        let framing = reply_head::write(x, batch.text());
        if x.backends.named && x.reply.status != 101 {
            x.action = "sending to client";
        }
        let (piece, stream) = match x.reply.body.take() {
            _ if framing == Framing::Bodiless => (None, None),
            Body::Empty => (None, None),
            Body::Bytes(bytes) => (Some(Piece::Bytes(bytes)), None),
            Body::File(slice) => (Some(Piece::File(slice)), None),
            Body::Stream(stream) => (None, Some(stream)),
        };
        let mut output = x.location().core.output;
        output.sendfile &= link.stream.borrow().can_sendfile();
        Self {
            link,
            output,
            framing,
            rate: rate_of(x),
            stream,
            piece,
            batch,
            flushes: false,
            end: None,
            returned: None,
            delay_ms: None,
            turn: 0,
            watches: !x.outlives_client.get(),
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>, x: &mut Exchange) -> Poll<Result<(), Failed>> {
        loop {
            if self.flushes {
                ready!(self.poll_flush(cx, x))?;
                self.flushes = false;
                if let Some(Bytes::Owned(bytes)) = self.batch.clear() {
                    self.returned = Some(bytes);
                }
                if let Some(end) = self.end.take() {
                    return Poll::Ready(end);
                }
            }
            let end = match ready!(self.poll_gather(cx, x)) {
                Ok(Gathered::More) => continue,
                Ok(Gathered::Enough) => None,
                Ok(Gathered::End) => Some(self.finish(x)),
                Err(Failed::Body(error)) if !error.spoils() => Some(Err(Failed::Body(error))),
                Err(failed) => return Poll::Ready(Err(failed)),
            };
            self.end = end;
            self.begin_flush();
        }
    }

    fn begin_flush(&mut self) {
        self.flushes = true;
        if self.output.tcp_nodelay {
            self.link.note_write();
        }
    }

    fn poll_gather(
        &mut self,
        cx: &mut Context<'_>,
        x: &mut Exchange,
    ) -> Poll<Result<Gathered, Failed>> {
        match (self.piece.take(), &mut self.stream) {
            (Some(piece), _) => Poll::Ready(self.put(piece)),
            (None, Some(stream)) if self.batch.has_large() && stream.is_better_flushed() => {
                Poll::Ready(Ok(Gathered::Enough))
            }
            (None, Some(_)) => self.poll_pull(cx, x),
            (None, None) => Poll::Ready(Ok(Gathered::End)),
        }
    }

    /// Asks the stream for its next piece.
    fn poll_pull(
        &mut self,
        cx: &mut Context<'_>,
        x: &mut Exchange,
    ) -> Poll<Result<Gathered, Failed>> {
        self.link.forget_reader();
        let stream = self.stream.as_mut().expect("asked while it is there");
        let pulled = match stream.poll_chunk(cx) {
            Poll::Ready(pulled) => pulled.map_err(Failed::Body)?,
            Poll::Pending if self.batch.len() >= self.output.postpone_output.max(1) => {
                return Poll::Ready(Ok(Gathered::Enough));
            }
            Poll::Pending => {
                if self.batch.len() == 0 {
                    self.batch.settle();
                }
                return self.poll_client(cx).map(Err);
            }
        };
        match pulled {
            Some(Chunk::Bytes(bytes)) => self.piece = Some(Piece::Bytes(bytes)),
            Some(Chunk::File(slice)) => self.piece = Some(Piece::File(slice)),
            Some(Chunk::Flush | Chunk::Pause) => return Poll::Ready(Ok(Gathered::Enough)),
            Some(Chunk::Trailers(fields)) => {
                fields.iter().for_each(|(name, value)| x.reply.trailers.append(name, value));
            }
            Some(Chunk::Remark(remark)) => remark.log(x),
            None => self.stream = None,
        }
        Poll::Ready(Ok(Gathered::More))
    }

    /// Puts a piece into the batch, if there is room.
    fn put(&mut self, piece: Piece) -> Result<Gathered, Failed> {
        let (length, room) = match &piece {
            Piece::Bytes(bytes) => (bytes.len() as u64, bytes.len()),
            Piece::File(slice) => (slice.len(), usize::MAX),
        };
        if length == 0 {
            return Ok(Gathered::More);
        }
        if !self.batch.takes(room) {
            self.piece = Some(piece);
            return Ok(Gathered::Enough);
        }
        match piece {
            Piece::File(slice) if !self.output.sendfile => self.put_read(slice)?,
            Piece::File(slice) => {
                self.advise(&slice);
                self.open_piece(length)?;
                self.batch.push_file(slice);
                self.close_piece();
            }
            Piece::Bytes(bytes) => self.put_bytes(bytes)?,
        }
        Ok(Gathered::More)
    }

    fn put_bytes(&mut self, bytes: Bytes) -> Result<(), Failed> {
        self.open_piece(bytes.len() as u64)?;
        if let Some(Bytes::Owned(copied)) = self.batch.push(bytes) {
            self.returned = Some(copied);
        }
        self.close_piece();
        Ok(())
    }

    /// Reads the next buffer of a file that the kernel does not send.
    fn put_read(&mut self, mut slice: FileSlice) -> Result<(), Failed> {
        self.advise(&slice);
        let mut buffer = self.returned.take().unwrap_or_default();
        buffer.resize(slice.len().min(self.output.buffer_size.max(1)) as usize, 0);
        match slice.file.read_at(&mut buffer, slice.start) {
            Ok(0) => return Err(Failed::Call("pread()", io::ErrorKind::UnexpectedEof.into())),
            Ok(read) => buffer.truncate(read),
            Err(error) => return Err(Failed::Body(BodyError::Io(error))),
        }
        slice.start += buffer.len() as u64;
        if !slice.is_empty() {
            self.piece = Some(Piece::File(slice));
        }
        self.put_bytes(Bytes::Owned(buffer))
    }

    /// nginx does this when it opens the file; the kernel remembers it as long.
    fn advise(&self, slice: &FileSlice) {
        if self.output.read_ahead > 0 && slice.start == 0 && slice.len() > READ_AHEAD_MIN {
            net::file::read_ahead(&slice.file);
        }
    }

    fn open_piece(&mut self, length: u64) -> Result<(), Failed> {
        match &mut self.framing {
            Framing::Chunked => {
                self.batch.text().extend_from_slice(ChunkHead::new(length).as_ref());
            }
            Framing::Length(left) => {
                *left = left.checked_sub(length).ok_or(Failed::TooLong)?;
            }
            Framing::Close | Framing::Bodiless => {}
        }
        Ok(())
    }

    fn close_piece(&mut self) {
        if self.framing == Framing::Chunked {
            self.batch.text().extend_from_slice(b"\r\n");
        }
    }

    /// The body is complete.
    fn finish(&mut self, x: &mut Exchange) -> Result<(), Failed> {
        match self.framing {
            Framing::Length(1..) => return Err(Failed::Body(BodyError::Truncated)),
            Framing::Chunked => {
                phases::end_body(x);
                let (size, end) = LAST_CHUNK.split_at(LAST_CHUNK.len() - 2);
                self.batch.text().extend_from_slice(size);
                if let Some(name) = x.reply.trailers.unfold() {
                    let name = Text(&name);
                    x.log(Level::Error, format_args!("trailer \"{name}\" {FORBIDDEN}"));
                }
                x.reply.trailers.write(self.batch.text());
                self.batch.text().extend_from_slice(end);
            }
            Framing::Length(0) | Framing::Close | Framing::Bodiless => {}
        }
        Ok(())
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>, x: &mut Exchange) -> Poll<Result<(), Failed>> {
        while self.batch.len() > 0 {
            let most = match self.poll_allowance(cx, x.reply.bytes_sent) {
                Poll::Ready(most) => most?,
                Poll::Pending => {
                    self.batch.settle();
                    self.fill(cx, x);
                    return Poll::Pending;
                }
            };
            let manner = Manner { most, nopush: self.output.tcp_nopush };
            let written = self.batch.poll_write(&mut self.link.stream.borrow_mut(), cx, manner);
            match written {
                Poll::Ready(Ok(count)) => self.note_written(x, count as u64),
                Poll::Ready(Err((call, error))) => {
                    return Poll::Ready(Err(Failed::Call(call, error)));
                }
                Poll::Pending => {
                    self.batch.settle();
                    self.fill(cx, x);
                    return self.poll_stalled(cx).map(Err);
                }
            }
            let chunk = self.output.sendfile_max_chunk;
            if chunk > 0 && self.turn >= chunk && self.batch.len() > 0 {
                self.turn = 0;
                self.batch.settle();
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
        Poll::Ready(Ok(()))
    }

    /// How much may be written; ready when that is more than nothing.
    fn poll_allowance(&mut self, cx: &mut Context<'_>, sent: u64) -> Poll<Result<usize, Failed>> {
        loop {
            if let Some(delay_ms) = self.delay_ms {
                if self.link.poll_deadline(cx, WaitsFor::Rate, delay_ms).is_pending() {
                    return self.poll_client(cx).map(Err);
                }
                self.link.progress();
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
            let most = match self.output.sendfile_max_chunk {
                0 => most,
                chunk => most.min(chunk),
            };
            return Poll::Ready(Ok(usize::try_from(most).unwrap_or(usize::MAX)));
        }
    }

    fn note_written(&mut self, x: &mut Exchange, count: u64) {
        let before = x.reply.bytes_sent;
        x.reply.bytes_sent += count;
        self.turn += count;
        self.link.progress();
        match self.rate.delay_ms(before, x.reply.bytes_sent) {
            0 => {}
            delay_ms => self.delay_ms = Some(delay_ms),
        }
    }

    /// Nothing can be sent: the source may read ahead.
    fn fill(&mut self, cx: &mut Context<'_>, x: &mut Exchange) {
        if let Some(remark) = self.stream.as_mut().and_then(|stream| stream.poll_fill(cx)) {
            remark.log(x);
        }
    }

    /// The socket has no room.
    fn poll_stalled(&mut self, cx: &mut Context<'_>) -> Poll<Failed> {
        let timeout_ms = self.output.send_timeout_ms;
        if self.link.poll_deadline(cx, WaitsFor::Room, timeout_ms).is_ready() {
            return Poll::Ready(Failed::TimedOut);
        }
        self.poll_client(cx)
    }

    /// While nothing can be sent: a body that nobody wants is read, so that the client comes to
    /// read the reply; else it is watched.
    fn poll_client(&self, cx: &mut Context<'_>) -> Poll<Failed> {
        match self.link.poll_unwanted(cx) {
            Poll::Ready(()) if self.watches => self.link.poll_gone(cx).map(|()| Failed::Gone),
            _ => Poll::Pending,
        }
    }
}
