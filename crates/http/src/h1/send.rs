//! Sending a reply: pieces of the body are pulled as the client takes them, framed, and written
//! with their head in as few calls as there can be.

use std::future::poll_fn;
use std::io;
use std::os::unix::fs::FileExt;
use std::task::{Context, Poll, ready};

use observe::{Errno, Level};
use wire::http1::chunked::{ChunkHead, LAST_CHUNK};

use super::batch::{Batch, Manner};
use super::link::{CONTINUE, Link, WaitsFor};
use super::rate::{Allowance, Rate};
use super::reply_head::{self, Framing};
use super::{After, Connection};
use crate::exchange::{Body, BodyError, BodyStream, Bytes, Chunk, Exchange, FileSlice};
use crate::features::output::Output;

/// A reply on its way to the client.
struct Sending<'c> {
    link: &'c Link,
    output: Output,
    framing: Framing,
    rate: Rate,
    batch: Batch,
    /// Memory of a piece that was written.
    returned: Option<Bytes>,
    /// How long nothing may be written.
    delay_ms: Option<u64>,
    /// Bytes written since others had their turn.
    turn: u64,
    /// Whether the reply ends when its client is gone.
    watches: bool,
}

/// Files up to this are read ahead anyway.
const READ_AHEAD_MIN: u64 = 128 * 1024;

/// Why a reply does not reach its end.
enum Failed {
    /// The client is gone.
    Gone,
    TimedOut,
    Connection(&'static str, io::Error),
    /// The body ended before its end; what there was of it is sent.
    Body(BodyError),
    /// The body is longer than its head says.
    TooLong,
}

/// What a body stream had to give.
enum Pulled {
    Piece(Chunk),
    End,
    /// Nothing yet: what was gathered is worth sending meanwhile.
    Later,
}

impl Connection {
    /// Sends the reply. An error has been logged.
    pub(super) async fn send(&self, x: &mut Exchange) -> Result<(), After> {
        if self.worker.is_draining() {
            x.keepalive = false;
        }
        let mut sending = Sending::begin(&self.link, x);
        let result = sending.run(x).await;
        drop(sending);
        self.link.progress();
        match result {
            Ok(()) => {
                x.reply.complete = true;
                Ok(())
            }
            Err(failed) => Err(self.failed(x, failed)),
        }
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
            Failed::Connection(call, error) => {
                x.log(Level::Info, format_args!("{call} failed{}", Errno(&error)));
            }
            Failed::Body(BodyError::Io(error)) => {
                x.log(
                    Level::Alert,
                    format_args!("reading the reply's body failed{}", Errno(&error)),
                );
            }
            Failed::Body(BodyError::Truncated) => {}
            Failed::TooLong => {
                x.log(Level::Alert, format_args!("the reply's body is longer than announced"));
            }
        }
        After::Close
    }
}

impl<'c> Sending<'c> {
    fn begin(link: &'c Link, x: &mut Exchange) -> Self {
        let mut batch = Batch::new();
        if link.take_expectation() && !x.reply.without_continue {
            batch.text.extend_from_slice(CONTINUE);
        }
        let framing = reply_head::write(x, &mut batch.text);
        let output = x.location().core.output;
        let (rate, watches) = (Rate::of(x), !x.outlives_client);
        let (delay_ms, turn) = (None, 0);
        Self { link, output, framing, rate, batch, returned: None, delay_ms, turn, watches }
    }

    async fn run(&mut self, x: &mut Exchange) -> Result<(), Failed> {
        let body = x.reply.body.take();
        let sent = match body {
            _ if self.framing == Framing::Bodiless => Ok(()),
            Body::Empty => Ok(()),
            Body::Bytes(bytes) => self.send_bytes(x, bytes).await,
            Body::File(slice) => self.send_file(x, slice).await,
            Body::Stream(stream) => self.send_stream(x, stream).await,
        };
        let ended = sent.and_then(|()| self.end(x));
        if let Ok(()) | Err(Failed::Body(_)) = ended {
            self.flush(x).await?;
        }
        // What was made for this reply serves for the next.
        if let Some(bytes) = self.returned.take() {
            x.reply.body = Body::Bytes(bytes);
        }
        ended
    }

    async fn send_bytes(&mut self, x: &mut Exchange, bytes: Bytes) -> Result<(), Failed> {
        if bytes.is_empty() {
            return Ok(());
        }
        if !self.batch.takes(bytes.len()) {
            self.flush(x).await?;
        }
        self.open_piece(bytes.len() as u64)?;
        self.returned = self.batch.push(bytes);
        self.close_piece();
        Ok(())
    }

    async fn send_file(&mut self, x: &mut Exchange, slice: FileSlice) -> Result<(), Failed> {
        if self.output.read_ahead > 0 && slice.len() > READ_AHEAD_MIN {
            net::file::read_ahead(&slice.file);
        }
        if !self.output.sendfile {
            return self.send_read(x, slice).await;
        }
        if slice.is_empty() {
            return Ok(());
        }
        if !self.batch.takes(usize::MAX) {
            self.flush(x).await?;
        }
        self.open_piece(slice.len())?;
        self.batch.push_file(slice);
        self.close_piece();
        Ok(())
    }

    /// A file that is read and written, one buffer at a time.
    async fn send_read(&mut self, x: &mut Exchange, mut slice: FileSlice) -> Result<(), Failed> {
        while !slice.is_empty() {
            if !self.batch.takes(usize::MAX) {
                self.flush(x).await?;
            }
            let mut buffer = match self.returned.take() {
                Some(Bytes::Owned(buffer)) => buffer,
                _ => Vec::new(),
            };
            buffer.resize(slice.len().min(self.output.buffer_size.max(1)) as usize, 0);
            match slice.file.read_at(&mut buffer, slice.start) {
                Ok(0) => return Err(Failed::Body(BodyError::Truncated)),
                Ok(read) => buffer.truncate(read),
                Err(error) => return Err(Failed::Body(BodyError::Io(error))),
            }
            slice.start += buffer.len() as u64;
            self.send_bytes(x, Bytes::Owned(buffer)).await?;
        }
        Ok(())
    }

    async fn send_stream(
        &mut self,
        x: &mut Exchange,
        mut stream: Box<dyn BodyStream>,
    ) -> Result<(), Failed> {
        loop {
            match poll_fn(|cx| self.poll_pull(cx, &mut *stream)).await? {
                Pulled::Piece(Chunk::Bytes(bytes)) => self.send_bytes(x, bytes).await?,
                Pulled::Piece(Chunk::File(slice)) => self.send_file(x, slice).await?,
                Pulled::Piece(Chunk::Flush) | Pulled::Later => self.flush(x).await?,
                Pulled::Piece(Chunk::Trailers(fields)) => x.reply.trailers = fields,
                Pulled::End => return Ok(()),
            }
        }
    }

    fn poll_pull(
        &mut self,
        cx: &mut Context<'_>,
        stream: &mut dyn BodyStream,
    ) -> Poll<Result<Pulled, Failed>> {
        self.link.forget_reader();
        match stream.poll_chunk(cx) {
            Poll::Ready(Ok(Some(chunk))) => Poll::Ready(Ok(Pulled::Piece(chunk))),
            Poll::Ready(Ok(None)) => Poll::Ready(Ok(Pulled::End)),
            Poll::Ready(Err(error)) => Poll::Ready(Err(Failed::Body(error))),
            Poll::Pending if self.batch.len() >= self.output.postpone_output.max(1) => {
                Poll::Ready(Ok(Pulled::Later))
            }
            Poll::Pending => self.poll_client(cx).map(Err),
        }
    }

    fn open_piece(&mut self, length: u64) -> Result<(), Failed> {
        match &mut self.framing {
            Framing::Chunked => {
                self.batch.text.extend_from_slice(ChunkHead::new(length).as_ref());
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
            self.batch.text.extend_from_slice(b"\r\n");
        }
    }

    /// The body is complete.
    fn end(&mut self, x: &Exchange) -> Result<(), Failed> {
        match self.framing {
            Framing::Length(1..) => return Err(Failed::Body(BodyError::Truncated)),
            Framing::Chunked => {
                let (size, end) = LAST_CHUNK.split_at(LAST_CHUNK.len() - 2);
                self.batch.text.extend_from_slice(size);
                x.reply.trailers.write(&mut self.batch.text);
                self.batch.text.extend_from_slice(end);
            }
            Framing::Length(0) | Framing::Close | Framing::Bodiless => {}
        }
        Ok(())
    }

    /// Writes all that was gathered.
    async fn flush(&mut self, x: &mut Exchange) -> Result<(), Failed> {
        if self.output.tcp_nodelay {
            self.link.note_write();
        }
        poll_fn(|cx| self.poll_flush(cx, x)).await?;
        if let Some(bytes) = self.batch.clear() {
            self.returned = Some(bytes);
        }
        Ok(())
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>, x: &mut Exchange) -> Poll<Result<(), Failed>> {
        while self.batch.len() > 0 {
            let most = ready!(self.poll_allowance(cx, x.reply.bytes_sent))?;
            let manner = Manner { most, nopush: self.output.tcp_nopush };
            let written = self.batch.poll_write(&mut self.link.stream.borrow_mut(), cx, manner);
            match written {
                Poll::Ready(Ok(count)) => self.note_written(x, count as u64),
                Poll::Ready(Err((call, error))) => {
                    return Poll::Ready(Err(Failed::Connection(call, error)));
                }
                Poll::Pending => return self.poll_stalled(cx).map(Err),
            }
            let chunk = self.output.sendfile_max_chunk;
            if chunk > 0 && self.turn >= chunk && self.batch.len() > 0 {
                self.turn = 0;
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
