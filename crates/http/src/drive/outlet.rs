//! The destination of a reply: the interface between the driver of an exchange and the client's
//! protocol.

use std::io;
use std::task::{Context, Poll};

use crate::exchange::{Bytes, Exchange, Fields, FileSlice, TunnelEnd};
use crate::site::policy::Output;

/// The client's end of one exchange. Buffers the reply's head and body until they are flushed.
pub(crate) trait Outlet: TunnelEnd {
    /// Puts the head of the exchange's reply. Returns the framing of the body.
    fn put_head(&mut self, x: &mut Exchange, has_body: bool, output: &Output) -> Framing;

    /// Whether a piece of the body of that length can be added before the next flush.
    fn takes(&self, length: usize) -> bool;

    /// Whether a gathered piece is large enough to be worth a write.
    fn has_large(&self) -> bool;

    /// Puts a piece of the body, which is not empty. Returns the piece if it was copied.
    fn put_bytes(&mut self, bytes: Bytes) -> Option<Bytes>;

    /// Whether the outlet sends ranges of files, so that they need not be read.
    fn sends_files(&self) -> bool;

    /// Puts a range of a file, which is not empty.
    fn put_file(&mut self, slice: FileSlice);

    /// Puts the end of the reply, with trailers if the framing allows them.
    fn put_end(&mut self, trailers: &Fields);

    /// The number of bytes that are gathered and not written.
    fn gathered(&self) -> u64;

    /// Shrinks the memory to what the gathered bytes need, because nothing can be written now.
    fn shrink(&mut self);

    /// Called before the gathered bytes are written, up to the last.
    fn begin_flush(&mut self);

    /// Writes at most `most` gathered bytes. Errors come with the name of the system call.
    fn poll_flush(
        &mut self,
        cx: &mut Context<'_>,
        most: usize,
    ) -> Poll<Result<usize, (&'static str, io::Error)>>;

    /// Called after everything was written. Returns the last large piece, whose memory can be
    /// reused.
    fn end_flush(&mut self) -> Option<Bytes>;

    /// Ready once the client has read nothing for that time.
    fn poll_stalled(&self, cx: &mut Context<'_>, timeout_ms: u64) -> Poll<()>;

    /// Ready after a pause of that length.
    fn poll_pause(&self, cx: &mut Context<'_>, delay_ms: u64) -> Poll<()>;

    /// Ends a wait; the next one has a deadline of its own.
    fn end_wait(&self);

    /// Called before polling something that may read the request's body.
    fn forget_reader(&self);

    /// Ready once the client is gone. While the exchange reads the request's body, the read notices
    /// it instead.
    fn poll_gone(&self, cx: &mut Context<'_>) -> Poll<()>;

    /// Discards a request body that the exchange does not read, because the client may send all of
    /// it before it reads the reply. Ready once nothing is left.
    fn poll_unwanted(&self, cx: &mut Context<'_>) -> Poll<()>;

    /// Releases the memory after a complete or incomplete reply.
    fn release(&mut self);

    /// Called when a tunnel begins, after the head was sent.
    fn begin_tunnel(&mut self);
}

/// How a reply's body is framed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Framing {
    pub(crate) body: BodyBound,
    /// Whether trailers can follow the body.
    pub(crate) has_trailers: bool,
}

/// The length of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyBound {
    None,
    /// The number of bytes still to come, of the length that the head announced.
    Length(u64),
    /// Unknown: the body ends when its source does.
    Open,
}
