//! Compressing a body as it comes.
//!
//! ```text
//! gathers --all of it came--> compressed in one go --> ended
//!    |                                                   ^
//!    '--too much, or a flush--> streams --end of body----'
//! ```
//!
//! While it streams, the source is asked only when what came before has been compressed and given:
//! one piece of output is all there is at a time, whatever the input expands to.

use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use net::buffers::{self, BUFFER_SIZE, LentPart};
use zlib_rs::{DeflateFlush, Status};

use super::levels;
use super::pool::{self, StreamKind};
use super::settings::{GzipSettings, Totals, WINDOW_BITS_MAX};
use super::whole::{self, WHOLE_MAX};
use crate::exchange::{Body, BodyError, BodyMessage, BodyStream, Bytes, Chunk, Fields};

/// Bytes gathered of a body of unknown length, in the hope that it ends.
const GATHERED_MAX: usize = 64 * 1024;

/// How many times longer a byte takes than reading it.
const COST_OF_BYTE: usize = 8;

/// Least room for output. A flush ends with a mark of five bytes, and zlib writes another one
/// wherever the room ends with it: it would do so for ever in too small a room.
const PIECE_MIN: usize = 64;

/// A compressed body. `length`: of the body, if it is known.
pub(super) fn wrap(
    body: Body,
    settings: Arc<GzipSettings>,
    length: Option<u64>,
    flushes_at_pauses: bool,
    totals: Rc<Totals>,
) -> Body {
    let gather_max = settings.gather_max(length);
    if let Body::Bytes(bytes) = &body
        && bytes.len() <= gather_max
        && let Some(compressed) = settings.compress(bytes.as_ref(), &totals)
    {
        return Body::Bytes(compressed);
    }
    Body::Stream(Box::new(Gzipped {
        source: body.in_memory(),
        state: match gather_max {
            0 => GzipState::Streams(Streaming::begin(&settings, Bytes::Static(b""))),
            _ => GzipState::Gathers(Vec::new()),
        },
        gather_max,
        settings,
        flushes_at_pauses,
        totals,
        trailers: None,
    }))
}

impl GzipSettings {
    /// How much is gathered at most before compression begins.
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

    /// Compresses a whole body.
    fn compress(&self, body: &[u8], totals: &Totals) -> Option<Bytes> {
        if body.len() > WHOLE_MAX {
            return None;
        }
        let compressed = whole::compress(body, levels::of_whole(self.level, body.len()))?;
        totals.set(body.len() as u64, compressed.len() as u64);
        Some(compressed)
    }
}

struct Gzipped {
    source: Box<dyn BodyStream>,
    state: GzipState,
    gather_max: usize,
    settings: Arc<GzipSettings>,
    flushes_at_pauses: bool,
    totals: Rc<Totals>,
    /// What follows the body.
    trailers: Option<Fields>,
}

enum GzipState {
    /// What has come may turn out to be all.
    Gathers(Vec<u8>),
    Streams(Streaming),
    Ended,
}

/// What the source is asked for came to.
enum Came {
    Bytes(Bytes),
    Flush,
    /// All of it has come.
    End,
    /// What is passed on as it is.
    Other(Chunk),
}

impl BodyStream for Gzipped {
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Chunk>, BodyError>> {
        loop {
            let chunk = match &mut self.state {
                GzipState::Gathers(_) => ready!(self.poll_gather(cx))?,
                GzipState::Streams(streaming) => match streaming.step()? {
                    GzipStep::Piece(bytes) => Some(Chunk::Bytes(bytes)),
                    GzipStep::Flushed => Some(Chunk::Flush),
                    GzipStep::Ended => {
                        streaming.tell(&self.totals);
                        self.state = GzipState::Ended;
                        None
                    }
                    GzipStep::Hungry => {
                        ready!(net::poll_share(cx));
                        ready!(self.poll_feed(cx))?
                    }
                },
                GzipState::Ended => {
                    return Poll::Ready(Ok(self.trailers.take().map(Chunk::Trailers)));
                }
            };
            if chunk.is_some() {
                return Poll::Ready(Ok(chunk));
            }
        }
    }

    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Option<BodyMessage> {
        match self.state {
            GzipState::Ended => None,
            _ => self.source.poll_fill(cx),
        }
    }
}

impl Gzipped {
    fn poll_source(&mut self, cx: &mut Context<'_>) -> Poll<Result<Came, BodyError>> {
        Poll::Ready(Ok(match ready!(self.source.poll_chunk(cx))? {
            Some(Chunk::Bytes(bytes)) => Came::Bytes(bytes),
            Some(Chunk::Flush) => Came::Flush,
            Some(Chunk::Pause) if self.flushes_at_pauses => Came::Flush,
            Some(Chunk::Trailers(fields)) => {
                self.trailers = Some(fields);
                Came::End
            }
            None => Came::End,
            Some(other) => Came::Other(other),
        }))
    }

    fn poll_gather(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Chunk>, BodyError>> {
        let came = ready!(self.poll_source(cx))?;
        let GzipState::Gathers(gathered) = &mut self.state else { return Poll::Ready(Ok(None)) };
        match came {
            Came::Bytes(bytes) => {
                gathered.extend_from_slice(bytes.as_ref());
                if gathered.len() > self.gather_max {
                    self.begin_to_stream();
                }
            }
            Came::Flush => self.begin_to_stream().ends_with(DeflateFlush::SyncFlush),
            Came::End => {
                if let Some(compressed) = self.settings.compress(gathered, &self.totals) {
                    self.state = GzipState::Ended;
                    return Poll::Ready(Ok(Some(Chunk::Bytes(compressed))));
                }
                self.begin_to_stream().ends_with(DeflateFlush::Finish);
            }
            Came::Other(Chunk::Pause) => {}
            Came::Other(other) => return Poll::Ready(Ok(Some(other))),
        }
        Poll::Ready(Ok(None))
    }

    fn begin_to_stream(&mut self) -> &mut Streaming {
        let gathered = match &mut self.state {
            GzipState::Gathers(gathered) => std::mem::take(gathered),
            GzipState::Streams(_) | GzipState::Ended => Vec::new(),
        };
        self.state = GzipState::Streams(Streaming::begin(&self.settings, Bytes::Owned(gathered)));
        match &mut self.state {
            GzipState::Streams(streaming) => streaming,
            GzipState::Gathers(_) | GzipState::Ended => unreachable!("it has just begun to stream"),
        }
    }

    /// Gives the compressor what comes next. While nothing comes, nothing that has been compressed
    /// is given, unless that is asked for: it would be framed in small pieces.
    fn poll_feed(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Chunk>, BodyError>> {
        let came = self.poll_source(cx);
        let GzipState::Streams(streaming) = &mut self.state else { return Poll::Ready(Ok(None)) };
        let waits = matches!(came, Poll::Pending | Poll::Ready(Ok(Came::Other(Chunk::Pause))));
        if waits
            && self.settings.no_buffer
            && let Some(piece) = streaming.take_output()
        {
            return Poll::Ready(Ok(Some(Chunk::Bytes(piece))));
        }
        match ready!(came)? {
            Came::Bytes(bytes) => streaming.feed(bytes),
            Came::Flush => streaming.ends_with(DeflateFlush::SyncFlush),
            Came::End => streaming.ends_with(DeflateFlush::Finish),
            Came::Other(other) => return Poll::Ready(Ok(Some(other))),
        }
        Poll::Ready(Ok(None))
    }
}

/// A compression under way.
struct Streaming {
    deflate: pool::Lent,
    input: Bytes,
    /// How much of the input has been taken.
    taken: usize,
    /// What is to be done once it has all been taken.
    flush: DeflateFlush,
    output: Vec<u8>,
    piece_max: usize,
    /// Whether what has been given is to reach the client, once all output is given.
    owes_flush: bool,
    /// Whether all has been compressed.
    is_ended: bool,
}

enum GzipStep {
    /// A piece of output.
    Piece(Bytes),
    /// All that came has been given.
    Flushed,
    /// More input is needed.
    Hungry,
    /// The last piece has been given.
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

    fn tell(&self, totals: &Totals) {
        totals.set(self.deflate.total_in(), self.deflate.total_out());
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

    /// What has been compressed so far, if anything has.
    fn take_output(&mut self) -> Option<Bytes> {
        let output = std::mem::take(&mut self.output);
        let length = output.len();
        (length > 0).then(|| Bytes::Lent(LentPart::new(output, 0..length)))
    }

    /// Compresses until the input has been taken, or the output is full.
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
            // There was room for more, so all is done that could be.
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
