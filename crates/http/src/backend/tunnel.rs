//! A connection that a server has switched to another protocol: bytes go both ways as they come.
//!
//! It is over when one side has ended and all that it sent is delivered, as in nginx: the other
//! side is not waited for. While nothing flows, nothing is held but the two sockets.

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

/// Pieces that go through in one direction before others get their turn.
const PIECES_PER_TURN: u32 = 16;

/// A server's connection that speaks another protocol now.
pub(super) struct Switched {
    server: ServerEnd,
    down: Way,
    up: Way,
    timer: Timer,
    read_timeout_ms: u64,
    send_timeout_ms: u64,
    is_timed: bool,
}

/// The server's end. What passes through it is counted.
struct ServerEnd {
    connection: PooledConnection,
    /// There until the tunnel ends.
    server: Option<BusyServer>,
}

/// One direction.
#[derive(Default)]
struct Way {
    /// What is on its way; no memory while there is nothing.
    buffer: Vec<u8>,
    written: usize,
    /// Whether nothing more comes.
    ended: bool,
}

/// Where a direction stands after it was polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stands {
    /// Nothing comes at the moment.
    WaitsForMore,
    /// What came finds no room.
    WaitsForRoom,
    /// It had its turn.
    MayGoOn,
    Ended,
}

/// Which call of a direction failed.
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

    /// As in nginx, whatever happens on either side gives the server its time anew; while the
    /// client takes nothing, no time of the server's runs.
    fn poll_timeout(
        &mut self,
        cx: &mut Context<'_>,
        moved: bool,
        down: Stands,
        up: Stands,
    ) -> Poll<()> {
        let timeout_ms = match (down, up) {
            (Stands::WaitsForRoom, Stands::WaitsForRoom) => self.send_timeout_ms,
            (Stands::WaitsForRoom, _) => {
                self.is_timed = false;
                return Poll::Pending;
            }
            (_, Stands::WaitsForRoom) => self.send_timeout_ms.min(self.read_timeout_ms),
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
        if down == Stands::Ended || up == Stands::Ended || (self.down.ended && self.up.ended) {
            return Poll::Ready(Ok(()));
        }
        if down == Stands::MayGoOn || up == Stands::MayGoOn {
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
    /// Copies until one of the ends has to be waited for. Where that leaves it, and whether
    /// anything was moved.
    fn copy(
        &mut self,
        cx: &mut Context<'_>,
        from: &mut dyn TunnelEnd,
        to: &mut dyn TunnelEnd,
    ) -> Result<(Stands, bool), DirectionError> {
        let mut moved = false;
        for _ in 0..PIECES_PER_TURN {
            while self.written < self.buffer.len() {
                match to.poll_write(cx, &self.buffer[self.written..]) {
                    Poll::Pending => return Ok((Stands::WaitsForRoom, moved)),
                    Poll::Ready(written) => {
                        self.written += written.map_err(DirectionError::Write)?
                    }
                }
                moved = true;
            }
            if self.ended {
                return Ok((Stands::Ended, moved));
            }
            match self.poll_read(cx, from) {
                Poll::Pending => return Ok((Stands::WaitsForMore, moved)),
                Poll::Ready(read) => self.ended = read.map_err(DirectionError::Read)? == 0,
            }
            moved = true;
        }
        Ok((Stands::MayGoOn, moved))
    }

    /// Reads the next piece; without one, no buffer is kept.
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

/// However a tunnel ends, its server has done what it was asked for.
impl Drop for ServerEnd {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            server.end_with(None);
        }
    }
}
