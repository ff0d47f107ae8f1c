//! One range of a body that comes piece by piece.

use std::ops::Range;

use crate::exchange::{BodyError, BodyFilter, Chunk, Exchange, PieceQueue};

/// Lets a range of the body pass. What follows it is not asked for.
pub(super) struct RangeCut {
    /// Bytes before the range.
    skip: u64,
    /// Bytes of the range that are still to come.
    left: u64,
}

impl RangeCut {
    /// A range of a body that is at least as long.
    pub(super) fn new(range: Range<u64>) -> Self {
        Self { skip: range.start, left: range.end - range.start }
    }

    /// What of a piece of that length is within the range.
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
