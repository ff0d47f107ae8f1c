//! Steps of one exchange on a connection in the background.

use std::future::poll_fn;
use std::io::IoSlice;
use std::task::Poll;

use net::{Stream, Timer};

use super::failure::RunFailure;
use crate::replies::{BufferSearch, HEAD_MAX, Replies};
use crate::requests::PreparedRequest;

/// A reply while it is received.
#[derive(Default)]
pub(super) struct IncomingReply {
    replies: Replies,
    input: Vec<u8>,
}

/// Sends a request.
pub(super) async fn send(
    stream: &mut Stream,
    request: &PreparedRequest,
    timer: &Timer,
) -> Result<(), RunFailure> {
    let mut rest = &request.bytes[..];
    while !rest.is_empty() {
        let written = poll_fn(|cx| match stream.poll_write(cx, &[IoSlice::new(rest)]) {
            Poll::Ready(written) => {
                Poll::Ready(written.map_err(|error| RunFailure::of_write(&error)))
            }
            Poll::Pending => timer.poll(cx).map(|()| Err(RunFailure::Timeout)),
        });
        rest = &rest[written.await?..];
    }
    Ok(())
}

impl IncomingReply {
    /// Reads at most `most` bytes. Returns how many, and whether the connection is kept if the
    /// reply is complete.
    pub(super) async fn read(
        &mut self,
        stream: &mut Stream,
        request: &PreparedRequest,
        most: usize,
        timer: &Timer,
    ) -> Result<(usize, Option<bool>), RunFailure> {
        if self.input.capacity() > 0 && self.input.len() == self.input.capacity() {
            self.input.reserve(HEAD_MAX);
        }
        let read = poll_fn(|cx| match stream.poll_read_most(cx, &mut self.input, most) {
            Poll::Ready(read) => Poll::Ready(read.map_err(|_| RunFailure::Reset)),
            Poll::Pending => timer.poll(cx).map(|()| Err(RunFailure::Timeout)),
        });
        let read = read.await?;
        if read == 0 {
            // A reply may end with its connection.
            let is_complete = self.replies.end().is_some();
            return if is_complete { Ok((0, Some(false))) } else { Err(RunFailure::Closed) };
        }
        let found = self.replies.take(&self.input, request.to_head);
        match found.map_err(|_| RunFailure::Invalid)? {
            BufferSearch::More(taken) => {
                self.input.drain(..taken);
                Ok((read, None))
            }
            BufferSearch::Reply(taken, reply) => {
                self.input.drain(..taken);
                Ok((read, Some(reply.keep)))
            }
        }
    }
}
