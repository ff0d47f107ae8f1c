//! One direction of a relay.
//!
//! It reads more only after everything was written, so that a slow reader slows down the sender.
//! Without bytes to write, it holds no memory.
//!
//! A direction with large pieces uses a pipe: the kernel moves pages and copies nothing. For small
//! pieces, copying is cheaper. Streams with TLS always copy.

use std::io::{self, IoSlice};
use std::task::{Context, Poll, ready};

use ::session::rate::{Allowance, Rate};
use net::{SplicePipe, Stream, Timer, buffers, clock};

/// The most pieces of a direction before others get their turn.
const PIECES_PER_TURN: u32 = 16;
/// How many more full than partial pieces a direction must have had before it uses a pipe. A piece
/// is full if it fills a lent buffer; with a smaller `proxy_buffer_size`, none is.
const FULL_TO_SPLICE: u32 = 16;
/// The limit of that count.
const FULL_MAX: u32 = 32;

/// One direction.
pub(super) struct RelayWay {
    /// Bytes to write; no memory if there are none.
    buffer: Vec<u8>,
    written: usize,
    /// Bytes to write that are inside the kernel; `None` if there are none.
    pipe: Option<SplicePipe>,
    /// The number of full pieces minus that of partial ones.
    full_pieces: u32,
    /// The most bytes to read at a time.
    piece_max: usize,
    /// Bytes read.
    pub(super) received: u64,
    /// Bytes written.
    pub(super) sent: u64,
    /// Whether the sender has ended.
    pub(super) ended: bool,
    /// Whether its stream was cut off: by a reset, or without close_notify in TLS.
    pub(super) is_cut: bool,
    /// Whether sending to the receiver was shut down.
    shut: bool,
    pace: Option<Box<RateTimer>>,
}

struct RateTimer {
    rate: Rate,
    timer: Timer,
    /// Whether reading waits for the timer.
    is_delayed: bool,
}

/// The state of a direction after it was polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WayState {
    WaitsForMore,
    /// It waits for room to write.
    WaitsForRoom,
    /// The rate delays it.
    Delayed,
    /// Its turn is over; it can continue.
    MayGoOn,
    /// The sender has ended, and all data is delivered.
    Ended,
}

pub(super) enum WayError {
    Read(io::Error),
    Write(io::Error),
}

impl RelayWay {
    /// Begins with these bytes. `received` is the number of bytes that were read before.
    pub(super) fn new(first: Vec<u8>, received: u64, piece_max: usize) -> Self {
        Self {
            buffer: first,
            written: 0,
            pipe: None,
            full_pieces: 0,
            piece_max,
            received,
            sent: 0,
            ended: false,
            is_cut: false,
            shut: false,
            pace: None,
        }
    }

    /// Limits reading to bytes per second; 0: no limit.
    pub(super) fn paced(mut self, per_second: u64, begun_s: u64) -> Self {
        self.pace = (per_second > 0).then(|| {
            let rate = Rate::new(per_second, 0, begun_s);
            Box::new(RateTimer { rate, timer: Timer::new(), is_delayed: false })
        });
        self
    }

    /// Whether bytes wait to be written.
    pub(super) fn has_pending(&self) -> bool {
        self.written < self.buffer.len() || self.pipe.is_some()
    }

    /// The memory of bytes to write.
    #[cfg(test)]
    pub(super) fn memory(&self) -> usize {
        self.buffer.capacity() + self.pipe.as_ref().map_or(0, |_| net::PIPE_SIZE)
    }

    /// Whether it uses a pipe.
    #[cfg(test)]
    pub(super) fn is_bulk(&self) -> bool {
        self.full_pieces >= FULL_TO_SPLICE
    }

    /// Copies until it has to wait for one of the ends. An error of reading ends the direction
    /// after earlier data was written.
    pub(super) fn copy(
        &mut self,
        cx: &mut Context<'_>,
        from: &mut Stream,
        to: &mut Stream,
    ) -> Result<WayState, WayError> {
        for _ in 0..PIECES_PER_TURN {
            if self.poll_write(cx, to).map_err(WayError::Write)?.is_pending() {
                return Ok(WayState::WaitsForRoom);
            }
            if self.ended {
                return Ok(WayState::Ended);
            }
            let most = match self.allowance(cx) {
                Some(most) => most,
                None => return Ok(WayState::Delayed),
            };
            let is_bulk = self.full_pieces >= FULL_TO_SPLICE && self.pace.is_none();
            let read = match is_bulk && from.can_splice() && to.can_splice() {
                true => self.poll_splice(cx, from, most),
                false => self.poll_read(cx, from, most),
            };
            match read {
                Poll::Pending => return Ok(WayState::WaitsForMore),
                Poll::Ready(Ok(0)) => (self.ended, self.is_cut) = (true, from.is_cut()),
                Poll::Ready(Ok(read)) => self.note_read(read),
                Poll::Ready(Err(error)) => {
                    (self.ended, self.is_cut) = (true, true);
                    return Err(WayError::Read(error));
                }
            }
        }
        Ok(WayState::MayGoOn)
    }

    /// Shuts down sending to the receiver, once.
    pub(super) fn poll_shutdown(
        &mut self,
        cx: &mut Context<'_>,
        to: &mut Stream,
    ) -> Poll<io::Result<()>> {
        if !self.shut {
            ready!(to.poll_shutdown(cx))?;
            self.shut = true;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, to: &mut Stream) -> io::Result<Poll<()>> {
        while self.written < self.buffer.len() {
            match to.poll_write(cx, &[IoSlice::new(&self.buffer[self.written..])]) {
                Poll::Pending => return Ok(Poll::Pending),
                Poll::Ready(written) => {
                    let written = written?;
                    self.written += written;
                    self.sent += written as u64;
                }
            }
        }
        self.written = 0;
        self.buffer.clear();
        self.drain(cx, to)
    }

    /// Writes the contents of the pipe; gives an empty one back.
    fn drain(&mut self, cx: &mut Context<'_>, to: &mut Stream) -> io::Result<Poll<()>> {
        let Some(pipe) = &mut self.pipe else { return Ok(Poll::Ready(())) };
        while pipe.held() > 0 {
            match to.poll_splice_out(cx, pipe) {
                Poll::Pending => return Ok(Poll::Pending),
                Poll::Ready(written) => self.sent += written? as u64,
            }
        }
        self.pipe = None;
        Ok(Poll::Ready(()))
    }

    /// Moves the next piece into a pipe. If none can be opened, the piece is copied.
    fn poll_splice(
        &mut self,
        cx: &mut Context<'_>,
        from: &mut Stream,
        most: usize,
    ) -> Poll<io::Result<usize>> {
        let Some(mut pipe) = SplicePipe::lend() else { return self.poll_read(cx, from, most) };
        self.release_buffer();
        let read = ready!(from.poll_splice_in(cx, &mut pipe))?;
        self.pipe = (read > 0).then_some(pipe);
        Poll::Ready(Ok(read))
    }

    /// Reads the next piece. Gives the buffer back if no bytes have arrived.
    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        from: &mut Stream,
        most: usize,
    ) -> Poll<io::Result<usize>> {
        let read = from.poll_read_most(cx, &mut self.buffer, most);
        if self.buffer.is_empty() {
            self.release_buffer();
        }
        read
    }

    fn release_buffer(&mut self) {
        if self.buffer.capacity() > 0 {
            buffers::give_back(std::mem::take(&mut self.buffer));
        }
    }

    /// The most bytes to read now; `None` if the timer has to wake the task first.
    fn allowance(&mut self, cx: &mut Context<'_>) -> Option<usize> {
        let Some(pace) = &mut self.pace else { return Some(self.piece_max) };
        if pace.is_delayed {
            if pace.timer.poll(cx).is_pending() {
                return None;
            }
            pace.is_delayed = false;
        }
        match pace.rate.allowance(clock::unix_ms() / 1000, self.received) {
            Allowance::Unlimited => Some(self.piece_max),
            Allowance::Bytes(bytes) => Some(
                usize::try_from(bytes).map_or(self.piece_max, |bytes| bytes.min(self.piece_max)),
            ),
            Allowance::NotBefore(delay_ms) => {
                pace.delay(delay_ms);
                // Registers the task.
                let _ = pace.timer.poll(cx);
                None
            }
        }
    }

    fn note_read(&mut self, read: usize) {
        let before = self.received;
        self.received += read as u64;
        self.full_pieces = match read >= buffers::BUFFER_SIZE {
            true => (self.full_pieces + 1).min(FULL_MAX),
            false => self.full_pieces.saturating_sub(1),
        };
        if let Some(pace) = &mut self.pace {
            let delay_ms = pace.rate.delay_ms(before, self.received);
            if delay_ms > 0 {
                pace.delay(delay_ms);
            }
        }
    }
}

impl RateTimer {
    fn delay(&mut self, delay_ms: u64) {
        self.timer.set(delay_ms);
        self.is_delayed = true;
    }
}

impl Drop for RelayWay {
    fn drop(&mut self) {
        self.release_buffer();
    }
}
