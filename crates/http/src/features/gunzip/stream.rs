//! Expands a body in pieces.
//!
//! There is only one piece of output at a time, so a small body that expands to a huge one costs no
//! memory. As in nginx and gzip, all of several gzip members in a row are expanded.

use std::task::{Context, Poll, ready};

use net::buffers::{self, BUFFER_SIZE, LentPart};
use zlib_rs::{Inflate, InflateError, InflateFlush, Status};

use crate::exchange::{BodyError, BodyFilter, Bytes, Chunk, Exchange, PieceQueue};

/// zlib's number for a gzip header and trailer, plus the bits of its largest window.
const GZIP_WINDOW_BITS: u8 = 16 + 15;

/// The most members to begin before other tasks get their turn.
const MEMBERS_PER_RUN: usize = 32;

/// The cost of a gzip member in addition to its bytes (a new window), counted as bytes read.
const COST_OF_MEMBER: usize = 4096;

/// zlib's number for input that ends too early.
const BUF_ERROR: i32 = -5;

pub(super) struct Gunzip(Expansion);

impl Gunzip {
    /// Produces pieces of at most this length.
    pub(super) fn new(piece_max: usize) -> Self {
        Self(Expansion::new(piece_max))
    }
}

impl BodyFilter for Gunzip {
    fn push(
        &mut self,
        _: &mut Exchange,
        piece: Option<Chunk>,
        out: &mut PieceQueue,
    ) -> Result<(), BodyError> {
        match piece {
            Some(Chunk::Bytes(bytes)) => {
                net::spend(bytes.len());
                self.0.feed(bytes);
            }
            Some(other) => {
                self.idle(out);
                out.put(other);
            }
            None => {
                self.idle(out);
                return self.0.end();
            }
        }
        Ok(())
    }

    /// Little input may expand to more output than a turn's share.
    fn poll_rest(
        &mut self,
        _: &mut Exchange,
        cx: &mut Context<'_>,
        out: &mut PieceQueue,
    ) -> Poll<Result<(), BodyError>> {
        loop {
            self.0.run()?;
            if self.0.is_full() {
                self.idle(out);
            } else if self.0.has_input() {
                ready!(net::poll_share(cx));
                continue;
            }
            return Poll::Ready(Ok(()));
        }
    }

    fn idle(&mut self, out: &mut PieceQueue) {
        out.pass(self.0.take_output().map(Chunk::Bytes));
    }
}

pub(crate) struct Expansion {
    inflate: Inflate,
    /// Whether the last member has ended.
    is_between_members: bool,
    input: Bytes,
    /// The length of the consumed input.
    taken: usize,
    output: Vec<u8>,
    piece_max: usize,
    /// Whether the last call may have produced more output with more room.
    has_more: bool,
}

impl Expansion {
    pub(crate) fn new(piece_max: usize) -> Self {
        Self {
            inflate: Inflate::new(true, GZIP_WINDOW_BITS),
            is_between_members: false,
            input: Bytes::Static(b""),
            taken: 0,
            output: Vec::new(),
            piece_max: piece_max.clamp(1, BUFFER_SIZE),
            has_more: false,
        }
    }

    pub(crate) fn feed(&mut self, input: Bytes) {
        (self.input, self.taken) = (input, 0);
    }

    pub(crate) fn is_full(&self) -> bool {
        self.output.len() >= self.piece_max
    }

    pub(crate) fn take_output(&mut self) -> Option<Bytes> {
        let output = std::mem::take(&mut self.output);
        let length = output.len();
        (length > 0).then(|| Bytes::Lent(LentPart::new(output, 0..length)))
    }

    /// Whether some of the input is not consumed.
    pub(crate) fn has_input(&self) -> bool {
        self.taken < self.input.len()
    }

    /// Expands until the input is consumed, the output is full, or many members have begun.
    pub(crate) fn run(&mut self) -> Result<(), BodyError> {
        let mut members = 0;
        while !self.is_full() && (self.has_more || self.has_input()) {
            if self.is_between_members && self.has_input() {
                members += 1;
                if members > MEMBERS_PER_RUN {
                    break;
                }
                self.inflate = Inflate::new(true, GZIP_WINDOW_BITS);
                net::spend(COST_OF_MEMBER);
                self.is_between_members = false;
            }
            self.inflate_some()?;
        }
        Ok(())
    }

    fn inflate_some(&mut self) -> Result<(), BodyError> {
        if self.output.capacity() == 0 {
            self.output = buffers::lend();
        }
        let (start, input) = (self.output.len(), &self.input.as_ref()[self.taken..]);
        self.output.resize(self.piece_max, 0);
        let (before_in, before_out) = (self.inflate.total_in(), self.inflate.total_out());
        let output = &mut self.output[start..];
        let status = self.inflate.decompress(input, output, InflateFlush::NoFlush);
        self.taken += (self.inflate.total_in() - before_in) as usize;
        self.output.truncate(start + (self.inflate.total_out() - before_out) as usize);
        let status = status.map_err(failed)?;
        self.is_between_members = matches!(status, Status::StreamEnd);
        self.has_more = self.is_full() && !self.is_between_members;
        Ok(())
    }

    /// Ends the input. `Err` if it ends within a member.
    pub(crate) fn end(&self) -> Result<(), BodyError> {
        if self.is_between_members {
            return Ok(());
        }
        let message = format!("inflate() returned {BUF_ERROR} on response end");
        Err(BodyError::Coding(message.into()))
    }
}

fn failed(error: InflateError) -> BodyError {
    let code = match error {
        InflateError::NeedDict { .. } => 2,
        InflateError::StreamError => -2,
        InflateError::DataError => -3,
        InflateError::MemError => -4,
    };
    let flush = InflateFlush::NoFlush as i32;
    BodyError::Coding(format!("inflate() failed: {flush}, {code}").into())
}
