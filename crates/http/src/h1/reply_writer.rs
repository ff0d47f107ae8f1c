//! Writes a reply as bytes of HTTP/1: the text of the head, and the body, in chunks or unchanged.

use std::io::{self, IoSlice};
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, ready};

use ::session::status::ProgramFacts;
use wire::http1::chunked::{ChunkHead, LAST_CHUNK};

use super::batch::{Batch, WriteLimits};
use super::connection::Connection;
use super::link::WaitsFor;
use super::reply_head;
use super::request_stream::{CONTINUE, RequestStream};
use crate::drive::{Framing, Outlet};
use crate::exchange::{Bytes, CloseReason, Exchange, Fields, FileSlice, TunnelEnd};
use crate::site::policy::Output;

/// Writes one reply to its connection.
pub(super) struct ReplyWriter<'c> {
    connection: &'c Connection,
    request: &'c RequestStream,
    batch: Batch,
    is_chunked: bool,
    /// `tcp_nopush` and `tcp_nodelay` of the location that replies.
    nopush: bool,
    nodelay: bool,
}

impl<'c> ReplyWriter<'c> {
    pub(super) fn new(connection: &'c Connection, request: &'c RequestStream) -> Self {
        let batch = Batch::new();
        Self { connection, request, batch, is_chunked: false, nopush: false, nodelay: false }
    }

    fn open_chunk(&mut self, length: u64) {
        if self.is_chunked {
            self.batch.text().extend_from_slice(ChunkHead::new(length).as_ref());
        }
    }

    fn close_chunk(&mut self) {
        if self.is_chunked {
            self.batch.text().extend_from_slice(b"\r\n");
        }
    }
}

impl Outlet for ReplyWriter<'_> {
    fn put_head(&mut self, x: &mut Exchange, has_body: bool, output: &Output) -> Framing {
        let Connection { context, client, .. } = self.connection;
        if !context.keeps(client) {
            x.close_after(CloseReason::Leaving);
        } else if ProgramFacts::get().is_draining.load(Relaxed) {
            x.close_after(CloseReason::Draining);
        }
        if self.request.take_expectation() && !x.reply.without_continue {
            self.batch.text().extend_from_slice(CONTINUE);
        }
        self.batch.text().append(&mut self.request.unsent.borrow_mut());
        let framing = reply_head::write(x, has_body, self.batch.text());
        self.is_chunked = x.reply.chunked;
        (self.nopush, self.nodelay) = (output.tcp_nopush, output.tcp_nodelay);
        framing
    }

    fn takes(&self, length: usize) -> bool {
        self.batch.takes(length)
    }

    fn has_large(&self) -> bool {
        self.batch.has_large()
    }

    fn put_bytes(&mut self, bytes: Bytes) -> Option<Bytes> {
        self.open_chunk(bytes.len() as u64);
        let copied = self.batch.push(bytes);
        self.close_chunk();
        copied
    }

    fn sends_files(&self) -> bool {
        self.request.link.stream.borrow().can_sendfile()
    }

    fn put_file(&mut self, slice: FileSlice) {
        self.open_chunk(slice.len());
        self.batch.push_file(slice);
        self.close_chunk();
    }

    fn put_end(&mut self, trailers: &Fields) {
        if self.is_chunked {
            let (size, end) = LAST_CHUNK.split_at(LAST_CHUNK.len() - 2);
            self.batch.text().extend_from_slice(size);
            trailers.write(self.batch.text());
            self.batch.text().extend_from_slice(end);
        }
    }

    fn gathered(&self) -> u64 {
        self.batch.len()
    }

    fn shrink(&mut self) {
        self.batch.shrink();
    }

    fn begin_flush(&mut self) {
        if self.nodelay {
            self.request.link.note_write();
        }
    }

    fn poll_flush(
        &mut self,
        cx: &mut Context<'_>,
        most: usize,
    ) -> Poll<Result<usize, (&'static str, io::Error)>> {
        let manner = WriteLimits { most, nopush: self.nopush };
        self.batch.poll_write(&mut self.request.link.stream.borrow_mut(), cx, manner)
    }

    fn end_flush(&mut self) -> Option<Bytes> {
        self.batch.clear()
    }

    fn poll_stalled(&self, cx: &mut Context<'_>, timeout_ms: u64) -> Poll<()> {
        self.request.link.poll_deadline(cx, WaitsFor::Room, timeout_ms)
    }

    fn poll_pause(&self, cx: &mut Context<'_>, delay_ms: u64) -> Poll<()> {
        self.request.link.poll_deadline(cx, WaitsFor::Rate, delay_ms)
    }

    fn end_wait(&self) {
        self.request.link.progress();
    }

    fn forget_reader(&self) {
        self.request.forget_reader();
    }

    fn poll_gone(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.request.poll_gone(cx)
    }

    fn poll_unwanted(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.request.poll_unwanted(cx)
    }

    fn release(&mut self) {
        self.batch.release();
    }

    fn begin_tunnel(&mut self) {
        if self.nodelay {
            self.request.link.stream.borrow().set_nodelay();
        }
    }
}

impl TunnelEnd for ReplyWriter<'_> {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut Vec<u8>) -> Poll<io::Result<usize>> {
        let link = &self.request.link;
        let arrived = link.take_input(buffer);
        if arrived > 0 {
            return Poll::Ready(Ok(arrived));
        }
        let read = ready!(link.stream.borrow_mut().poll_read(cx, buffer));
        link.progress();
        Poll::Ready(read)
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let link = &self.request.link;
        let written = ready!(link.stream.borrow_mut().poll_write(cx, &[IoSlice::new(bytes)]))?;
        link.progress();
        Poll::Ready(Ok(written))
    }
}
