//! Sends a reply as frames of its stream.
//!
//! The head is encoded immediately, because the peer decodes heads in the order of the output. Data
//! becomes frames as windows and the output have room.

use std::io;
use std::rc::Rc;
use std::task::{Context, Poll};

use net::buffers;
use wire::http2::counts::Http2Count;
use wire::http2::frame::FRAME_HEAD_BYTES;

use super::reply_head;
use super::stream_link::{StreamLink, StreamWait};
use crate::drive::{BodyBound, Framing, Outlet};
use crate::exchange::{Bytes, Exchange, Fields, FileSlice, TunnelEnd};
use crate::site::policy::Output;

/// With more unsent output on the connection, streams wait.
pub(super) const OUTPUT_BYTES_MAX: usize = 64 * 1024;

/// Spare room in the output, for frame headers and for answers such as acknowledgements.
const ROOM_FOR_HEADS: usize = 1024;

/// Up to how many bytes small pieces are gathered.
const GATHERED_MAX: usize = 16 * 1024;

/// Writes one reply to its stream.
pub(super) struct StreamReply {
    link: Rc<StreamLink>,
    /// Bytes of the head that were not yet reported to the exchange as sent.
    head: usize,
    data: Bytes,
    /// How much of `data` was sent.
    sent: usize,
    end: ReplyEnd,
    chunk_size: usize,
}

/// What follows the data.
enum ReplyEnd {
    /// More data, perhaps.
    Open,
    EndStream,
    /// The trailers of the stream's link.
    Trailers,
    /// Nothing: the stream has ended.
    Sent,
}

impl StreamReply {
    pub(super) fn new(link: Rc<StreamLink>) -> Self {
        let (data, end) = (Bytes::Owned(Vec::new()), ReplyEnd::Open);
        Self { link, head: 0, data, sent: 0, end, chunk_size: GATHERED_MAX }
    }

    fn unsent(&self) -> usize {
        self.data.len() - self.sent
    }

    /// Waits until the connection has written some of its output.
    fn wait_for_output(&self) {
        self.link.shared.wait_for_room(&self.link.waker);
    }

    /// Sends data, and the end of the stream after the last. Returns the length of the frames; 0 if
    /// nothing can be sent now.
    fn send_data(&mut self, most: usize) -> usize {
        let mut endpoint = self.link.shared.endpoint.borrow_mut();
        // One stream may fill the output up to the limit for all streams.
        if endpoint.output().len() >= OUTPUT_BYTES_MAX {
            drop(endpoint);
            self.wait_for_output();
            return 0;
        }
        let key = self.link.key.get();
        let count = self.unsent().min(endpoint.sendable(key)).min(OUTPUT_BYTES_MAX).min(most);
        let is_last = count == self.unsent();
        if count == 0 && !is_last {
            self.link.is_blocked.set(true);
            return 0;
        }
        let ends = is_last && matches!(self.end, ReplyEnd::EndStream);
        if endpoint.output_room() < count + ROOM_FOR_HEADS {
            let buffer = endpoint.change_buffer(buffers::lend_huge());
            buffers::give_back(buffer);
        }
        let data = &self.data.as_ref()[self.sent..self.sent + count];
        let frames = endpoint.send_data(key, data, ends, self.chunk_size);
        self.sent += count;
        let mut bytes = frames * FRAME_HEAD_BYTES;
        if ends {
            self.end = ReplyEnd::Sent;
        } else if is_last && matches!(self.end, ReplyEnd::Trailers) {
            if let Some(mut writer) = endpoint.begin_fields(key) {
                let trailers = self.link.trailers.borrow();
                trailers.iter().for_each(|(name, value)| writer.field(name, value));
                bytes += writer.finish(true);
            }
            self.end = ReplyEnd::Sent;
        }
        self.link.overhead.set(self.link.overhead.get() + bytes as u64);
        count + bytes
    }
}

impl Outlet for StreamReply {
    fn put_head(&mut self, x: &mut Exchange, has_body: bool, _: &Output) -> Framing {
        self.chunk_size = x.location().core.http2_chunk_size;
        let is_empty = x.reply.content_length == Some(0) && !x.reply.expect_trailers;
        let ends = !has_body || is_empty;
        self.head = reply_head::write(x, &self.link, ends);
        if ends {
            self.end = ReplyEnd::Sent;
        }
        let body = match x.reply.content_length {
            _ if !has_body => BodyBound::None,
            Some(length) => BodyBound::Length(length),
            None => BodyBound::Open,
        };
        Framing { body, has_trailers: !ends }
    }

    fn takes(&self, length: usize) -> bool {
        let unsent = self.unsent();
        unsent == 0 || unsent.saturating_add(length) <= GATHERED_MAX
    }

    fn has_large(&self) -> bool {
        self.unsent() > GATHERED_MAX / 2
    }

    fn put_bytes(&mut self, bytes: Bytes) -> Option<Bytes> {
        if self.unsent() == 0 {
            self.sent = 0;
            self.data = bytes;
            return None;
        }
        if let Bytes::Owned(text) = &mut self.data {
            text.extend_from_slice(bytes.as_ref());
        } else {
            let mut text = Vec::with_capacity(GATHERED_MAX);
            text.extend_from_slice(&self.data.as_ref()[self.sent..]);
            text.extend_from_slice(bytes.as_ref());
            (self.data, self.sent) = (Bytes::Owned(text), 0);
        }
        Some(bytes)
    }

    fn sends_files(&self) -> bool {
        false
    }

    fn put_file(&mut self, _: FileSlice) {
        unreachable!("files are read");
    }

    fn put_end(&mut self, trailers: &Fields) {
        if matches!(self.end, ReplyEnd::Open) {
            self.end = match trailers.is_empty() {
                true => ReplyEnd::EndStream,
                false => {
                    let mut kept = self.link.trailers.borrow_mut();
                    kept.clear();
                    trailers.iter().for_each(|(name, value)| kept.append(name, value));
                    ReplyEnd::Trailers
                }
            };
        }
    }

    fn gathered(&self) -> u64 {
        let has_end = matches!(self.end, ReplyEnd::EndStream | ReplyEnd::Trailers);
        let end = if has_end { FRAME_HEAD_BYTES } else { 0 };
        (self.head + self.unsent() + end) as u64
    }

    fn shrink(&mut self) {}

    fn begin_flush(&mut self) {}

    fn poll_flush(
        &mut self,
        _: &mut Context<'_>,
        most: usize,
    ) -> Poll<Result<usize, (&'static str, io::Error)>> {
        if self.link.is_gone() {
            return Poll::Ready(Err(("send()", io::ErrorKind::ConnectionReset.into())));
        }
        match std::mem::take(&mut self.head) {
            0 => {}
            head => return Poll::Ready(Ok(head)),
        }
        match self.send_data(most) {
            0 => Poll::Pending,
            count => Poll::Ready(Ok(count)),
        }
    }

    fn end_flush(&mut self) -> Option<Bytes> {
        self.sent = 0;
        Some(std::mem::replace(&mut self.data, Bytes::Owned(Vec::new())))
    }

    fn poll_stalled(&self, cx: &mut Context<'_>, timeout_ms: u64) -> Poll<()> {
        let stalled = self.link.poll_deadline(cx, StreamWait::Room, timeout_ms);
        if stalled.is_ready() && !self.link.timed_out.replace(true) {
            self.link.shared.endpoint.borrow_mut().count(Http2Count::StalledStreams);
        }
        stalled
    }

    fn poll_pause(&self, cx: &mut Context<'_>, delay_ms: u64) -> Poll<()> {
        self.link.poll_deadline(cx, StreamWait::Rate, delay_ms)
    }

    fn end_wait(&self) {
        self.link.end_wait();
    }

    fn forget_reader(&self) {}

    fn poll_gone(&self, _: &mut Context<'_>) -> Poll<()> {
        // The connection makes its streams ready when the client is gone.
        if self.link.is_gone() { Poll::Ready(()) } else { Poll::Pending }
    }

    fn poll_unwanted(&self, _: &mut Context<'_>) -> Poll<()> {
        self.link.discard_unclaimed();
        Poll::Ready(())
    }

    fn release(&mut self) {
        (self.data, self.sent) = (Bytes::Owned(Vec::new()), 0);
    }

    fn begin_tunnel(&mut self) {}
}

impl TunnelEnd for StreamReply {
    fn poll_read(&mut self, _: &mut Context<'_>, buffer: &mut Vec<u8>) -> Poll<io::Result<usize>> {
        let count = self.link.take_input(buffer);
        self.link.open_window();
        if count > 0 || self.link.is_read() || self.link.is_gone() {
            return Poll::Ready(Ok(count));
        }
        Poll::Pending
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.unsent() == 0 {
            self.put_bytes(Bytes::Owned(bytes.to_vec()));
        }
        let before = self.unsent();
        match self.poll_flush(cx, usize::MAX) {
            Poll::Ready(Ok(_)) => Poll::Ready(Ok(before - self.unsent())),
            Poll::Ready(Err((_, error))) => Poll::Ready(Err(error)),
            Poll::Pending => Poll::Pending,
        }
    }
}
