//! Compresses a body in pieces.
//!
//! ```text
//! gathers --end of body--> compressed as a whole --> ended
//!    |                                                ^
//!    '--too much, or a flush--> streams --end of body-'
//! ```
//!
//! While it streams, there is only one piece of output at a time, however much was pushed.

use std::sync::Arc;
use std::task::{Context, Poll};

use net::buffers::{self, BUFFER_SIZE, LentPart};
use zlib_rs::{DeflateFlush, Status};

use super::levels;
use super::pool::{self, StreamKind};
use super::settings::{GzipSettings, Ratio, WINDOW_BITS_MAX};
use super::whole::{self, WHOLE_MAX};
use crate::exchange::{BodyError, BodyFilter, Bytes, Chunk, Exchange, PieceQueue};

/// The most bytes to gather of a body of unknown length, in case it ends.
const GATHERED_MAX: usize = 64 * 1024;

/// The cost of compressing a byte, relative to reading it.
const COST_OF_BYTE: usize = 8;

/// The least room for output. A flush ends with a marker of five bytes. If the room ends with the
/// marker, zlib writes another one, which in a smaller room would never end.
const PIECE_MIN: usize = 64;

impl GzipSettings {
    /// The most bytes to gather before compression begins.
    fn gather_max(&self, length: Option<u64>) -> usize {
        // libdeflate has no smaller window.
        let window = if self.window_bits == WINDOW_BITS_MAX { WHOLE_MAX } else { self.window() };
        let most = match length {
            Some(length) if length <= window as u64 => window,
            Some(_) => 0,
            None => GATHERED_MAX.min(window),
        };
        most.max(self.postpone)
    }

    fn window(&self) -> usize {
        1 << self.window_bits
    }

    fn compress(&self, body: &[u8]) -> Option<Bytes> {
        if body.len() > WHOLE_MAX {
            return None;
        }
        whole::compress(body, levels::of_whole(self.level, body.len()))
    }
}

pub(super) struct Gzip {
    state: GzipState,
    gather_max: usize,
    settings: Arc<GzipSettings>,
    flushes_at_pauses: bool,
}

enum GzipState {
    /// The received bytes may be the whole body.
    Gathers(Bytes),
    Streams(Streaming),
    Ended,
}

impl Gzip {
    /// `length` is that of the body, if it is known.
    pub(super) fn new(
        settings: Arc<GzipSettings>,
        length: Option<u64>,
        flushes_at_pauses: bool,
    ) -> Self {
        let gather_max = settings.gather_max(length);
        let state = match gather_max {
            0 => GzipState::Streams(Streaming::begin(&settings, Bytes::Static(b""))),
            _ => GzipState::Gathers(Bytes::Static(b"")),
        };
        Self { state, gather_max, settings, flushes_at_pauses }
    }

    /// The stream; begins it with the gathered bytes if necessary.
    fn streaming(&mut self) -> &mut Streaming {
        if let GzipState::Gathers(gathered) = &mut self.state {
            let gathered = std::mem::replace(gathered, Bytes::Static(b""));
            self.state = GzipState::Streams(Streaming::begin(&self.settings, gathered));
        }
        match &mut self.state {
            GzipState::Streams(streaming) => streaming,
            GzipState::Gathers(_) | GzipState::Ended => unreachable!("nothing follows the end"),
        }
    }

    fn bytes(&mut self, bytes: Bytes) {
        let GzipState::Gathers(gathered) = &mut self.state else {
            return self.streaming().feed(bytes);
        };
        *gathered = joined(std::mem::replace(gathered, Bytes::Static(b"")), bytes);
        if gathered.len() > self.gather_max {
            self.streaming();
        }
    }

    fn end(&mut self, x: &mut Exchange, out: &mut PieceQueue) {
        if let GzipState::Gathers(gathered) = &self.state
            && let Some(compressed) = self.settings.compress(gathered.as_ref())
        {
            *x.states.of::<Ratio>() =
                Ratio { before: gathered.len() as u64, after: compressed.len() as u64 };
            out.put(Chunk::Bytes(compressed));
            self.state = GzipState::Ended;
        } else {
            self.streaming().ends_with(DeflateFlush::Finish);
        }
    }
}

fn joined(bytes: Bytes, more: Bytes) -> Bytes {
    if bytes.is_empty() {
        return more;
    }
    let mut all = match bytes {
        Bytes::Owned(bytes) => bytes,
        other => other.as_ref().to_vec(),
    };
    all.extend_from_slice(more.as_ref());
    Bytes::Owned(all)
}

impl BodyFilter for Gzip {
    fn push(
        &mut self,
        x: &mut Exchange,
        piece: Option<Chunk>,
        out: &mut PieceQueue,
    ) -> Result<(), BodyError> {
        match piece {
            Some(Chunk::Bytes(bytes)) => self.bytes(bytes),
            Some(Chunk::Flush) => self.streaming().ends_with(DeflateFlush::SyncFlush),
            Some(Chunk::Pause) if self.flushes_at_pauses => {
                self.streaming().ends_with(DeflateFlush::SyncFlush);
            }
            Some(Chunk::Pause) => {
                self.idle(out);
                if matches!(self.state, GzipState::Streams(_)) {
                    out.put(Chunk::Pause);
                }
            }
            Some(other) => out.put(other),
            None => self.end(x, out),
        }
        Ok(())
    }

    fn poll_rest(
        &mut self,
        x: &mut Exchange,
        _: &mut Context<'_>,
        out: &mut PieceQueue,
    ) -> Poll<Result<(), BodyError>> {
        let GzipState::Streams(streaming) = &mut self.state else { return Poll::Ready(Ok(())) };
        match streaming.step()? {
            GzipStep::Piece(bytes) => out.put(Chunk::Bytes(bytes)),
            GzipStep::Flushed => out.put(Chunk::Flush),
            GzipStep::Hungry => {}
            GzipStep::Ended => {
                *x.states.of::<Ratio>() = streaming.ratio();
                self.state = GzipState::Ended;
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Output waits for more, to avoid small pieces, except with `gzip_no_buffer`.
    fn idle(&mut self, out: &mut PieceQueue) {
        if self.settings.no_buffer
            && let GzipState::Streams(streaming) = &mut self.state
        {
            out.pass(streaming.take_output().map(Chunk::Bytes));
        }
    }
}

struct Streaming {
    deflate: pool::Lent,
    input: Bytes,
    /// The length of the consumed input.
    taken: usize,
    /// The flush that follows the input.
    flush: DeflateFlush,
    output: Vec<u8>,
    piece_max: usize,
    /// Whether a flush is to follow the output.
    owes_flush: bool,
    /// Whether the compressed stream is complete.
    is_ended: bool,
}

enum GzipStep {
    Piece(Bytes),
    /// All input was compressed and returned, and is to reach the client.
    Flushed,
    /// More input is needed.
    Hungry,
    /// The last piece was returned.
    Ended,
}

impl Streaming {
    fn begin(settings: &GzipSettings, input: Bytes) -> Self {
        let kind = StreamKind {
            level: levels::of_stream(settings.level),
            window_bits: settings.window_bits,
            mem_level: settings.mem_level,
        };
        Self {
            deflate: pool::lend(kind),
            input,
            taken: 0,
            flush: DeflateFlush::NoFlush,
            output: Vec::new(),
            piece_max: settings.piece_max.clamp(PIECE_MIN, BUFFER_SIZE),
            owes_flush: false,
            is_ended: false,
        }
    }

    fn feed(&mut self, input: Bytes) {
        (self.input, self.taken) = (input, 0);
    }

    fn ends_with(&mut self, flush: DeflateFlush) {
        self.flush = flush;
    }

    fn ratio(&self) -> Ratio {
        Ratio { before: self.deflate.total_in(), after: self.deflate.total_out() }
    }

    fn step(&mut self) -> Result<GzipStep, BodyError> {
        loop {
            let is_full = self.output.len() >= self.piece_max;
            if (is_full || self.owes_flush || self.is_ended)
                && let Some(piece) = self.take_output()
            {
                return Ok(GzipStep::Piece(piece));
            }
            if std::mem::take(&mut self.owes_flush) {
                return Ok(GzipStep::Flushed);
            }
            if self.is_ended {
                return Ok(GzipStep::Ended);
            }
            let has_input = self.taken < self.input.len();
            if !has_input && self.flush == DeflateFlush::NoFlush {
                return Ok(GzipStep::Hungry);
            }
            self.deflate_some()?;
        }
    }

    /// The output so far, if there is any.
    fn take_output(&mut self) -> Option<Bytes> {
        let output = std::mem::take(&mut self.output);
        let length = output.len();
        (length > 0).then(|| Bytes::Lent(LentPart::new(output, 0..length)))
    }

    /// Compresses until the input is consumed or the output is full.
    fn deflate_some(&mut self) -> Result<(), BodyError> {
        if self.output.capacity() == 0 {
            self.output = buffers::lend();
        }
        let (start, input) = (self.output.len(), &self.input.as_ref()[self.taken..]);
        self.output.resize(self.piece_max, 0);
        let (before_in, before_out) = (self.deflate.total_in(), self.deflate.total_out());
        let status = self.deflate.compress(input, &mut self.output[start..], self.flush);
        let taken = (self.deflate.total_in() - before_in) as usize;
        self.taken += taken;
        net::spend(taken.saturating_mul(COST_OF_BYTE));
        self.output.truncate(start + (self.deflate.total_out() - before_out) as usize);
        match status {
            Ok(Status::StreamEnd) => self.is_ended = true,
            Ok(_) if self.output.len() == self.piece_max => {}
            // The output was not filled, so the flush is complete.
            Ok(_) if self.flush == DeflateFlush::SyncFlush => {
                self.flush = DeflateFlush::NoFlush;
                self.owes_flush = true;
            }
            Ok(_) if self.flush == DeflateFlush::NoFlush && self.taken == self.input.len() => {}
            Ok(status) => return Err(failed(self.flush, status as i32)),
            Err(error) => return Err(failed(self.flush, error as i32)),
        }
        Ok(())
    }
}

fn failed(flush: DeflateFlush, code: i32) -> BodyError {
    BodyError::Coding(format!("deflate() failed: {}, {code}", flush as i32).into())
}
