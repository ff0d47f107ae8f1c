//! A connection that a server has switched to another protocol: bytes are copied both ways.
//!
//! It ends when one side has ended and all its bytes are delivered, as in nginx, without waiting
//! for the other side. While idle, it holds only the two sockets.

#[cfg(test)]
mod tests;

use std::io::{self, IoSlice};
use std::task::{Context, Poll, ready};

use ::upstream::pool::PooledConnection;
use net::{Timer, buffers};

use super::Conf;
use super::body::BusyServer;
use super::call::Answered;
use crate::exchange::{Tunnel, TunnelEnd, TunnelError};

/// Pieces copied in one direction before other tasks run.
const PIECES_PER_TURN: u32 = 16;

/// A server's connection that now speaks another protocol.
pub(super) struct Switched {
    server: ServerEnd,
    down: Way,
    up: Way,
    timer: Timer,
    read_timeout_ms: u64,
    send_timeout_ms: u64,
    is_timed: bool,
}

/// The server's end, which counts bytes.
struct ServerEnd {
    connection: PooledConnection,
    /// `None` once the tunnel has ended.
    server: Option<BusyServer>,
}

/// One direction.
#[derive(Default)]
struct Way {
    /// Bytes to be written; holds no memory while empty.
    buffer: Vec<u8>,
    written: usize,
    /// Whether its source has ended.
    ended: bool,
}

/// The state of a direction after a poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DirectionState {
    /// Its source has no bytes.
    WaitsForMore,
    /// Its destination takes no bytes.
    WaitsForRoom,
    /// It has used its turn, and can continue.
    MayContinue,
    Ended,
}

/// The call of a direction that failed.
enum DirectionError {
    Read(io::Error),
    Write(io::Error),
}

impl Switched {
    pub(super) fn new(
        server: BusyServer,
        connection: PooledConnection,
        answered: Answered,
        conf: &Conf,
    ) -> Self {
        let Answered { head_bytes, input, .. } = answered;
        Self {
            server: ServerEnd { connection, server: Some(server) },
            down: Way { buffer: input, written: head_bytes, ended: false },
            up: Way::default(),
            timer: Timer::new(),
            read_timeout_ms: conf.read_timeout.0,
            send_timeout_ms: conf.send_timeout.0,
            is_timed: false,
        }
    }

    /// As in nginx, any progress on either side restarts the server's time; while the client takes
    /// nothing, the server's time is stopped.
    fn poll_timeout(
        &mut self,
        cx: &mut Context<'_>,
        moved: bool,
        down: DirectionState,
        up: DirectionState,
    ) -> Poll<()> {
        let timeout_ms = match (down, up) {
            (DirectionState::WaitsForRoom, DirectionState::WaitsForRoom) => self.send_timeout_ms,
            (DirectionState::WaitsForRoom, _) => {
                self.is_timed = false;
                return Poll::Pending;
            }
            (_, DirectionState::WaitsForRoom) => self.send_timeout_ms.min(self.read_timeout_ms),
            _ => self.read_timeout_ms,
        };
        if !std::mem::replace(&mut self.is_timed, true) || moved {
            self.timer.set(timeout_ms);
        }
        self.timer.poll(cx)
    }
}

impl Tunnel for Switched {
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        client: &mut dyn TunnelEnd,
    ) -> Poll<Result<(), TunnelError>> {
        let (down, down_moved) = self.down.copy(cx, &mut self.server, client).map_err(of_down)?;
        let (up, up_moved) = self.up.copy(cx, client, &mut self.server).map_err(of_up)?;
        if down == DirectionState::Ended
            || up == DirectionState::Ended
            || (self.down.ended && self.up.ended)
        {
            return Poll::Ready(Ok(()));
        }
        if down == DirectionState::MayContinue || up == DirectionState::MayContinue {
            net::defer(cx.waker());
        }
        ready!(self.poll_timeout(cx, down_moved || up_moved, down, up));
        Poll::Ready(Err(TunnelError::UpstreamTimedOut))
    }
}

fn of_down(failed: DirectionError) -> TunnelError {
    match failed {
        DirectionError::Read(error) => TunnelError::Upstream("recv()", error),
        DirectionError::Write(error) => TunnelError::Client("send()", error),
    }
}

fn of_up(failed: DirectionError) -> TunnelError {
    match failed {
        DirectionError::Read(error) => TunnelError::Client("recv()", error),
        DirectionError::Write(error) => TunnelError::Upstream("send()", error),
    }
}

impl Way {
    /// Copies until one end is not ready. Returns the state, and whether bytes were copied.
    fn copy(
        &mut self,
        cx: &mut Context<'_>,
        from: &mut dyn TunnelEnd,
        to: &mut dyn TunnelEnd,
    ) -> Result<(DirectionState, bool), DirectionError> {
        let mut moved = false;
        for _ in 0..PIECES_PER_TURN {
            while self.written < self.buffer.len() {
                match to.poll_write(cx, &self.buffer[self.written..]) {
                    Poll::Pending => return Ok((DirectionState::WaitsForRoom, moved)),
                    Poll::Ready(written) => {
                        self.written += written.map_err(DirectionError::Write)?
                    }
                }
                moved = true;
            }
            if self.ended {
                return Ok((DirectionState::Ended, moved));
            }
            match self.poll_read(cx, from) {
                Poll::Pending => return Ok((DirectionState::WaitsForMore, moved)),
                Poll::Ready(read) => self.ended = read.map_err(DirectionError::Read)? == 0,
            }
            moved = true;
        }
        Ok((DirectionState::MayContinue, moved))
    }

    /// Reads the next piece. Gives the buffer back if no bytes have arrived.
    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        from: &mut dyn TunnelEnd,
    ) -> Poll<io::Result<usize>> {
        self.written = 0;
        self.buffer.clear();
        if self.buffer.capacity() == 0 {
            self.buffer = buffers::lend();
        }
        let read = from.poll_read(cx, &mut self.buffer);
        if self.buffer.is_empty() {
            buffers::give_back(std::mem::take(&mut self.buffer));
        }
        read
    }
}

impl Drop for Way {
    fn drop(&mut self) {
        buffers::give_back(std::mem::take(&mut self.buffer));
    }
}

impl TunnelEnd for ServerEnd {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut Vec<u8>) -> Poll<io::Result<usize>> {
        let read = ready!(self.connection.stream.poll_read(cx, buffer))?;
        if let Some(BusyServer { attempt, .. }) = &self.server {
            attempt.bytes_received.set(attempt.bytes_received.get() + read as u64);
        }
        Poll::Ready(Ok(read))
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = ready!(self.connection.stream.poll_write(cx, &[IoSlice::new(bytes)]))?;
        if let Some(BusyServer { attempt, .. }) = &self.server {
            attempt.bytes_sent.set(attempt.bytes_sent.get() + written as u64);
        }
        Poll::Ready(Ok(written))
    }
}

/// Any end of a tunnel counts as a success of its server.
impl Drop for ServerEnd {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            server.end_with(None);
        }
    }
}
