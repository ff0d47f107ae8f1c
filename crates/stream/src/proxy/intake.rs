//! Reads from a client before there is a connection to a server.
//!
//! As in nginx, at most one buffer is read. An end of the client is recorded for the relay. It only
//! ends a session that waits in a queue, and only if there is nothing to deliver.

use std::io;
use std::task::{Context, Poll};

use ::session::Session as _;
use net::{Stream, buffers};
use observe::{Errno, Level};

use super::relay::level;
use crate::session::StreamSession;

/// A client whose session has no server yet.
pub(super) struct ClientIntake<'a> {
    client: &'a mut Stream,
    bytes_max: usize,
    half_close: bool,
    /// Whether the client has shut down its side, or is gone.
    pub(super) ended: bool,
    is_broken: bool,
}

impl<'a> ClientIntake<'a> {
    /// Reads up to `bytes_max` from the client. With `half_close`, the client may wait for an
    /// answer after it has shut down its side.
    pub(super) fn new(client: &'a mut Stream, bytes_max: usize, half_close: bool) -> Self {
        Self { client, bytes_max, half_close, ended: false, is_broken: false }
    }

    /// Reads what was received, and registers `cx` for more.
    pub(super) fn read(&mut self, x: &mut StreamSession, cx: &mut Context<'_>) {
        while !self.ended {
            let left = self.bytes_max.saturating_sub(x.preread.len());
            if left == 0 {
                return;
            }
            match self.poll_read(x, cx, left) {
                Poll::Pending => return,
                Poll::Ready(Ok(0)) => self.ended = true,
                Poll::Ready(Ok(read)) => x.bytes_received += read as u64,
                Poll::Ready(Err(error)) => {
                    (self.ended, self.is_broken) = (true, true);
                    let errno = Errno(&error);
                    x.log(level(&error, Level::Info), format_args!("recv() failed{errno}"));
                }
            }
        }
    }

    /// Reads as well. Ready once waiting for a server is useless: the connection was reset, or the
    /// client has ended without sending anything and expects no answer.
    pub(super) fn poll_left(&mut self, x: &mut StreamSession, cx: &mut Context<'_>) -> Poll<()> {
        self.read(x, cx);
        let has_nothing_to_wait_for = self.ended && x.preread.is_empty() && !self.half_close;
        match self.is_broken || has_nothing_to_wait_for {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }

    /// Reads once; keeps no buffer if nothing was read.
    fn poll_read(
        &mut self,
        x: &mut StreamSession,
        cx: &mut Context<'_>,
        most: usize,
    ) -> Poll<io::Result<usize>> {
        if x.preread.capacity() > 0 {
            x.preread.reserve(most);
        }
        let read = self.client.poll_read_most(cx, &mut x.preread, most);
        if x.preread.is_empty() {
            buffers::give_back(std::mem::take(&mut x.preread));
        }
        read
    }
}
