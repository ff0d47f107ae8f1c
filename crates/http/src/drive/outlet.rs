//! Where a reply goes: what the driver of an exchange asks of its client's protocol.

use std::io;
use std::task::{Context, Poll};

use crate::exchange::{Bytes, Exchange, Fields, FileSlice, TunnelEnd};
use crate::site::policy::Output;

/// The client's end of one exchange. What is put into it is gathered until it is flushed.
pub(crate) trait Outlet: TunnelEnd {
    /// Puts the head of the exchange's reply, which has a body or not. How the body is framed.
    fn put_head(&mut self, x: &mut Exchange, has_body: bool, output: &Output) -> Framing;

    /// Whether a piece of the body of that length fits in before what is gathered is flushed.
    fn takes(&self, length: usize) -> bool;

    /// Whether a piece is gathered that is large enough to be worth a write.
    fn has_large(&self) -> bool;

    /// Puts a piece of the body, which is not empty. Gives it back where it was copied.
    fn put_bytes(&mut self, bytes: Bytes) -> Option<Bytes>;

    /// Whether it sends ranges of files, so that they need not be read.
    fn sends_files(&self) -> bool;

    /// Puts a range of a file, which is not empty.
    fn put_file(&mut self, slice: FileSlice);

    /// Puts the end of the reply, with the fields that follow the body, if any can.
    fn put_end(&mut self, trailers: &Fields);

    /// How many bytes are gathered and not yet written.
    fn gathered(&self) -> u64;

    /// Nothing can be written for now: holds no more memory than what is gathered needs.
    fn settle(&mut self);

    /// What is gathered is about to be written to its end.
    fn begin_flush(&mut self);

    /// Writes some of what is gathered, at most so many bytes. An error comes with the name of the
    /// call.
    fn poll_flush(
        &mut self,
        cx: &mut Context<'_>,
        most: usize,
    ) -> Poll<Result<usize, (&'static str, io::Error)>>;

    /// All that was gathered is written: makes room. Gives the last large piece back.
    fn end_flush(&mut self) -> Option<Bytes>;

    /// Ready once the client has taken nothing for so long.
    fn poll_stalled(&self, cx: &mut Context<'_>, timeout_ms: u64) -> Poll<()>;

    /// Ready after a pause of that length.
    fn poll_pause(&self, cx: &mut Context<'_>, delay_ms: u64) -> Poll<()>;

    /// A wait is over; the next one has its whole time.
    fn end_wait(&self);

    /// Before something is polled that may read the request's body.
    fn forget_reader(&self);

    /// Ready once the client is gone. While somebody reads the request's body, that is seen there.
    fn poll_gone(&self, cx: &mut Context<'_>) -> Poll<()>;

    /// Throws away what comes of a request body that nobody wants: the client may send all of it
    /// before it reads the reply. Ready where there is no more.
    fn poll_unwanted(&self, cx: &mut Context<'_>) -> Poll<()>;

    /// The reply is over, or cut: gives back the memory for what is gathered.
    fn release(&mut self);

    /// The head is sent, and a tunnel begins.
    fn begin_tunnel(&mut self);
}

/// How a reply's body is framed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Framing {
    pub(crate) body: BodyBound,
    /// Whether fields can follow the body.
    pub(crate) has_trailers: bool,
}

/// How much of a body is to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyBound {
    /// Nothing.
    None,
    /// So many bytes: the head has said so.
    Length(u64),
    /// Whatever its source gives.
    Open,
}
