//! The slices after the first, one subrequest after the other.

use std::ops::Range;
use std::task::{Context, Poll, ready};

use super::state::SliceState;
use crate::exchange::{BodyError, Chunk, Exchange, LiveBody};

pub(super) struct SliceRest {
    /// What the next slice must be.
    state: SliceState,
    /// The length of all slices.
    complete: u64,
    /// What the client gets of all slices.
    wanted: Range<u64>,
    /// Where the next byte of the current slice is in the whole.
    at: u64,
    current: Option<Box<dyn LiveBody>>,
}

impl SliceRest {
    pub(super) fn new(state: SliceState, complete: u64, wanted: Range<u64>) -> Self {
        Self { at: state.start, state, complete, wanted, current: None }
    }

    /// Begins the subrequest for the next slice.
    fn begin(&mut self, x: &mut Exchange) -> Result<Box<dyn LiveBody>, BodyError> {
        let mut copy = x.copy_of_request().ok_or(BodyError::Subrequest)?;
        copy.x.request.header_only = false;
        *copy.x.states.of::<SliceState>() = self.state.clone();
        let mut expected = self.state.clone();
        let complete = self.complete;
        self.at = expected.start;
        self.state.start = complete.min(expected.start.saturating_add(expected.size));
        Ok(Box::new(copy.into_backend_body(move |x| {
            expected.check(x).is_some_and(|range| range.complete == complete)
        })))
    }

    /// The part of a piece that the client gets.
    fn cut(&mut self, chunk: Chunk) -> Chunk {
        let length = match &chunk {
            Chunk::Bytes(bytes) => bytes.len() as u64,
            Chunk::File(slice) => slice.len(),
            Chunk::Flush | Chunk::Pause | Chunk::Trailers(_) => return chunk,
        };
        let at = self.at;
        self.at += length;
        let start = self.wanted.start.saturating_sub(at).min(length);
        let end = self.wanted.end.saturating_sub(at).clamp(start, length);
        match chunk {
            _ if end - start == length => chunk,
            Chunk::Bytes(bytes) => Chunk::Bytes(bytes.part(start as usize..end as usize)),
            Chunk::File(slice) => Chunk::File(slice.part(start..end)),
            other => other,
        }
    }
}

impl LiveBody for SliceRest {
    fn poll_chunk(
        &mut self,
        x: &mut Exchange,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Chunk>, BodyError>> {
        loop {
            if let Some(current) = &mut self.current {
                match ready!(current.poll_chunk(x, cx))? {
                    Some(Chunk::Trailers(_)) => {}
                    Some(chunk) => return Poll::Ready(Ok(Some(self.cut(chunk)))),
                    None => self.current = None,
                }
                continue;
            }
            if self.state.start >= self.wanted.end {
                return Poll::Ready(Ok(None));
            }
            self.current = Some(self.begin(x)?);
        }
    }
}
