//! One range of a streamed body.

use std::ops::Range;

use crate::exchange::{BodyError, BodyFilter, Chunk, Exchange, PieceQueue};

/// Passes a range of the body, and ends the body after it.
pub(super) struct RangeCut {
    /// Bytes before the range.
    skip: u64,
    /// The remaining bytes of the range.
    left: u64,
}

impl RangeCut {
    /// Requires that the body has the whole range.
    pub(super) fn new(range: Range<u64>) -> Self {
        Self { skip: range.start, left: range.end - range.start }
    }

    /// The part of a piece of that length that is within the range.
    fn take(&mut self, length: u64) -> Range<u64> {
        let start = self.skip.min(length);
        self.skip -= start;
        let end = start + self.left.min(length - start);
        self.left -= end - start;
        start..end
    }
}

impl BodyFilter for RangeCut {
    fn push(
        &mut self,
        _: &mut Exchange,
        piece: Option<Chunk>,
        out: &mut PieceQueue,
    ) -> Result<(), BodyError> {
        match piece {
            Some(Chunk::Bytes(bytes)) => {
                let range = self.take(bytes.len() as u64);
                out.put(Chunk::Bytes(bytes.part(range.start as usize..range.end as usize)));
            }
            Some(Chunk::File(slice)) => {
                let range = self.take(slice.len());
                out.put(Chunk::File(slice.part(range)));
            }
            other => out.pass(other),
        }
        if self.left == 0 {
            out.end();
        }
        Ok(())
    }

    fn reads_bytes(&self) -> bool {
        false
    }
}
