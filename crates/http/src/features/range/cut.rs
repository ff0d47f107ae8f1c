//! One range of a body.

use std::ops::Range;
use std::task::{Context, Poll, ready};

use crate::exchange::{Body, BodyError, BodyMessage, BodyStream, Chunk};

/// The range of a body that is at least as long.
pub(super) fn cut(body: Body, range: Range<u64>) -> Body {
    match body {
        Body::Empty => Body::Empty,
        Body::Bytes(bytes) => Body::Bytes(bytes.part(range.start as usize..range.end as usize)),
        Body::File(slice) => Body::File(slice.part(range)),
        Body::Stream(stream) => {
            let (skip, left) = (range.start, range.end - range.start);
            Body::Stream(Box::new(RangeCut { stream, skip, left }))
        }
    }
}

/// The range of a body that comes piece by piece. What follows the range is not asked for.
struct RangeCut {
    stream: Box<dyn BodyStream>,
    /// Bytes before the range.
    skip: u64,
    /// Bytes of the range that are still to come.
    left: u64,
}

impl BodyStream for RangeCut {
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Chunk>, BodyError>> {
        while self.left > 0 {
            let Some(chunk) = ready!(self.stream.poll_chunk(cx))? else { break };
            let chunk = match chunk {
                Chunk::Bytes(bytes) => self.take(bytes.len() as u64).map(|range| {
                    Chunk::Bytes(bytes.part(range.start as usize..range.end as usize))
                }),
                Chunk::File(slice) => {
                    self.take(slice.len()).map(|range| Chunk::File(slice.part(range)))
                }
                other => Some(other),
            };
            if chunk.is_some() {
                return Poll::Ready(Ok(chunk));
            }
        }
        Poll::Ready(Ok(None))
    }

    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Option<BodyMessage> {
        if self.left > 0 { self.stream.poll_fill(cx) } else { None }
    }
}

impl RangeCut {
    /// What of a piece of that length is within the range.
    fn take(&mut self, length: u64) -> Option<Range<u64>> {
        let start = self.skip.min(length);
        self.skip -= start;
        let end = start + self.left.min(length - start);
        self.left -= end - start;
        (start < end).then_some(start..end)
    }
}
