//! One direction of a relay: what one end sends is written to the other.
//!
//! It reads no more while what it read finds no room, so a reader that stops is felt at the sender.
//! Without bytes on their way it holds no memory.
//!
//! A direction in which much comes at a time goes through a pipe: the kernel then passes its pages
//! on and copies nothing. For little, copying is cheaper. Streams with TLS always copy.

use std::io::{self, IoSlice};
use std::task::{Context, Poll, ready};

use ::session::rate::{Allowance, Rate};
use net::{SplicePipe, Stream, Timer, buffers, clock};

/// Pieces that go through in one direction before others get their turn.
const PIECES_PER_TURN: u32 = 16;
/// How many more full pieces than others must have come until a direction goes through a pipe. A
/// piece is full if it fills a lent buffer: with a smaller `proxy_buffer_size`, none is.
const FULL_TO_SPLICE: u32 = 16;
/// How many are counted.
const FULL_MAX: u32 = 32;

/// One direction.
pub(super) struct RelayWay {
    /// What is on its way; no memory while there is nothing.
    buffer: Vec<u8>,
    written: usize,
    /// What is on its way inside the kernel; none while there is nothing.
    pipe: Option<SplicePipe>,
    /// Full pieces, less those that were not.
    full_pieces: u32,
    /// How much is read at a time.
    piece_max: usize,
    /// Bytes read.
    pub(super) received: u64,
    /// Bytes written.
    pub(super) sent: u64,
    /// Whether the sender has ended.
    pub(super) ended: bool,
    /// Whether it ended without saying so: it was reset, or cut off within TLS.
    pub(super) is_cut: bool,
    /// Whether the receiver has been told so.
    shut: bool,
    pace: Option<Box<RateTimer>>,
}

/// How fast bytes are read, where a rate is set.
struct RateTimer {
    rate: Rate,
    timer: Timer,
    /// Whether nothing is read until the timer's time has come.
    is_delayed: bool,
}

/// Where a direction stands after it was polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WayState {
    /// Nothing comes at the moment.
    WaitsForMore,
    /// What came finds no room.
    WaitsForRoom,
    /// The rate lets nothing through at the moment.
    Delayed,
    /// It had its turn.
    MayGoOn,
    /// Everything is delivered.
    Ended,
}

/// Why a direction is broken.
pub(super) enum WayError {
    Read(io::Error),
    Write(io::Error),
}

impl RelayWay {
    /// Begins with these bytes. `received` counts what was read before.
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

    /// Reads at most so many bytes a second; 0: any number.
    pub(super) fn paced(mut self, per_second: u64, begun_s: u64) -> Self {
        self.pace = (per_second > 0).then(|| {
            let rate = Rate::new(per_second, 0, begun_s);
            Box::new(RateTimer { rate, timer: Timer::new(), is_delayed: false })
        });
        self
    }

    /// Whether bytes wait for room.
    pub(super) fn has_pending(&self) -> bool {
        self.written < self.buffer.len() || self.pipe.is_some()
    }

    /// The memory that bytes on their way take.
    #[cfg(test)]
    pub(super) fn memory(&self) -> usize {
        self.buffer.capacity() + self.pipe.as_ref().map_or(0, |_| net::PIPE_SIZE)
    }

    /// Whether it goes through a pipe.
    #[cfg(test)]
    pub(super) fn is_bulk(&self) -> bool {
        self.full_pieces >= FULL_TO_SPLICE
    }

    /// Copies until one of the ends has to be waited for. An error of reading ends the direction
    /// after what came before it.
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

    /// Says to the receiver that nothing more comes, once.
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

    /// Writes what the pipe has; an empty one is given back.
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

    /// Takes the next piece into a pipe. Where none can be opened, it is read as any other.
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

    /// Reads the next piece; without one, no buffer is kept.
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

    /// How much may be read now; `None`: nothing before the timer wakes the task.
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
                // The task is woken by the timer from now on.
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
