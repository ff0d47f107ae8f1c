//! Filters of a reply's body. Pieces are pushed through them, with the exchange.
//!
//! ```text
//! source --> filter --> pieces --> filter --> pieces --> client
//! ```
//!
//! A filter gets the next piece when all its output for the last one has been taken, so a slow
//! client holds back every filter and the source. A header filter adds it with
//! [`Reply::filter_body`].

use std::collections::VecDeque;
use std::io;
use std::os::unix::fs::FileExt;
use std::task::{Context, Poll, ready};

use super::{Body, BodyError, Bytes, Chunk, Exchange, FileSlice, Reply};

/// Bytes read from a file at once: the size of nginx's `output_buffers`.
const READ_SIZE: u64 = 32 * 1024;

pub trait BodyFilter {
    /// Takes the next piece; `None` is the end of the body. Puts its output into `out`, and passes
    /// on pieces that it does not change, such as [`Chunk::Flush`]. Called only after
    /// [`poll_rest`](Self::poll_rest) has put nothing.
    fn push(
        &mut self,
        x: &mut Exchange,
        piece: Option<Chunk>,
        out: &mut PieceQueue,
    ) -> Result<(), BodyError>;

    /// Continues with the last piece, for filters that wait or produce their output step by step.
    /// `Ready` without output asks for the next piece.
    fn poll_rest(
        &mut self,
        _x: &mut Exchange,
        _cx: &mut Context<'_>,
        _out: &mut PieceQueue,
    ) -> Poll<Result<(), BodyError>> {
        Poll::Ready(Ok(()))
    }

    /// Called when the next piece has not arrived: puts output that need not wait for it.
    fn idle(&mut self, _out: &mut PieceQueue) {}

    /// Whether it needs bytes, so that files are read for it.
    fn reads_bytes(&self) -> bool {
        true
    }
}

/// The output of a filter.
#[derive(Default)]
pub struct PieceQueue {
    queue: VecDeque<Piece>,
    is_over: bool,
}

enum Piece {
    Chunk(Chunk),
    Body(Box<dyn LiveBody>),
}

/// A source that has access to the exchange of its reply, such as the body of a subrequest. Content
/// that is generated while it is sent is a filter of an empty body.
pub trait LiveBody {
    /// The next piece; `None` is the end.
    fn poll_chunk(
        &mut self,
        x: &mut Exchange,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Chunk>, BodyError>>;
}

impl PieceQueue {
    pub fn put(&mut self, chunk: Chunk) {
        if !matches!(&chunk, Chunk::Bytes(bytes) if bytes.is_empty()) {
            self.queue.push_back(Piece::Chunk(chunk));
        }
    }

    /// Puts an unchanged piece; `None`, the end, needs no call.
    pub fn pass(&mut self, piece: Option<Chunk>) {
        piece.into_iter().for_each(|chunk| self.put(chunk));
    }

    /// Puts all of another body, such as a subrequest's. It does not pass this filter.
    pub fn insert(&mut self, body: impl LiveBody + 'static) {
        self.queue.push_back(Piece::Body(Box::new(body)));
    }

    /// Ends the body here; the source is not read further.
    pub fn end(&mut self) {
        self.is_over = true;
    }
}

/// A filter and the state of its input.
pub(super) struct FilterLink {
    filter: Box<dyn BodyFilter>,
    out: PieceQueue,
    /// The part of a file that is not read for it yet.
    file: Option<FileSlice>,
    /// The error that ends the body after the queued pieces.
    failed: Option<BodyError>,
}

impl Reply {
    /// Adds a filter of the body after the others.
    pub fn filter_body(&mut self, filter: impl BodyFilter + 'static) {
        self.filters.push(FilterLink::new(filter));
    }

    /// Adds a filter of the body before the others.
    pub fn filter_body_first(&mut self, filter: impl BodyFilter + 'static) {
        self.filters.insert(0, FilterLink::new(filter));
    }

    pub(crate) fn has_filters(&self) -> bool {
        !self.filters.is_empty()
    }
}

/// A body that is being sent: its source and its filters.
#[derive(Default)]
pub(crate) struct FilteredBody {
    source: Body,
    filters: Vec<FilterLink>,
}

impl FilteredBody {
    /// Takes the body of a reply, and its filters.
    pub(crate) fn take(reply: &mut Reply) -> Self {
        Self { source: reply.body.take(), filters: std::mem::take(&mut reply.filters) }
    }

    /// Returns the body and the filters to the reply.
    pub(crate) fn give_back(self, reply: &mut Reply) {
        (reply.body, reply.filters) = (self.source, self.filters);
    }

    /// Whether there is neither a body nor a filter.
    pub(crate) fn is_empty(&self) -> bool {
        self.source.is_empty() && self.filters.is_empty()
    }

    /// The next piece of the last filter's output; `None` is the end.
    pub(crate) fn poll_chunk(
        &mut self,
        x: &mut Exchange,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Chunk>, BodyError>> {
        pull(&mut self.source, &mut self.filters, x, cx)
    }

    /// See [`BodyStream::is_better_flushed`](super::BodyStream::is_better_flushed).
    pub(crate) fn is_better_flushed(&self) -> bool {
        self.filters.is_empty()
            && matches!(&self.source, Body::Stream(source) if source.is_better_flushed())
    }

    /// Has the source read ahead while the client takes nothing.
    pub(crate) fn fill(&mut self, x: &mut Exchange, cx: &mut Context<'_>) {
        if let Body::Stream(source) = &mut self.source {
            source.fill(cx, x);
        }
    }

    /// The filtered body, if it is complete and a single piece; `Err`: the body, unchanged.
    pub(crate) fn whole(mut self, x: &mut Exchange, cx: &mut Context<'_>) -> Result<Body, Self> {
        let first = self.poll_chunk(x, cx);
        if let Poll::Ready(Ok(None)) = first {
            return Ok(Body::Empty);
        }
        let next = match &first {
            Poll::Ready(Ok(Some(Chunk::Bytes(_)))) => self.poll_chunk(x, cx),
            _ => Poll::Pending,
        };
        match (first, next) {
            (Poll::Ready(Ok(Some(Chunk::Bytes(bytes)))), Poll::Ready(Ok(None))) => {
                Ok(Body::Bytes(bytes))
            }
            (first, next) => {
                self.put_back(next);
                self.put_back(first);
                Err(self)
            }
        }
    }

    fn put_back(&mut self, pulled: Poll<Result<Option<Chunk>, BodyError>>) {
        let last = self.filters.last_mut().expect("only filtered bodies are looked at");
        match pulled {
            Poll::Ready(Ok(Some(chunk))) => last.out.queue.push_front(Piece::Chunk(chunk)),
            Poll::Ready(Err(error)) => last.failed = Some(error),
            Poll::Ready(Ok(None)) | Poll::Pending => {}
        }
    }
}

/// The next piece after the last of some filters.
fn pull(
    source: &mut Body,
    filters: &mut [FilterLink],
    x: &mut Exchange,
    cx: &mut Context<'_>,
) -> Poll<Result<Option<Chunk>, BodyError>> {
    let Some((link, before)) = filters.split_last_mut() else { return pull_source(source, x, cx) };
    loop {
        if let Some(chunk) = ready!(link.out.poll_next(x, cx))? {
            return Poll::Ready(Ok(Some(chunk)));
        }
        if let Some(error) = link.failed.take() {
            return Poll::Ready(Err(error));
        }
        ready!(net::poll_share(cx));
        match ready!(link.filter.poll_rest(x, cx, &mut link.out)) {
            Err(error) => link.failed = Some(error),
            Ok(()) if !link.out.queue.is_empty() => {}
            Ok(()) if link.out.is_over => {
                source.take();
                return Poll::Ready(Ok(None));
            }
            Ok(()) => match link.poll_input(source, before, x, cx) {
                Poll::Ready(Ok(piece)) => {
                    link.out.is_over |= piece.is_none();
                    link.failed = link.filter.push(x, piece, &mut link.out).err();
                }
                Poll::Ready(Err(error)) => {
                    link.filter.idle(&mut link.out);
                    link.failed = Some(error);
                }
                Poll::Pending => {
                    link.filter.idle(&mut link.out);
                    if link.out.queue.is_empty() {
                        return Poll::Pending;
                    }
                }
            },
        }
    }
}

/// The next piece of the source, whose trailers go to the reply.
fn pull_source(
    source: &mut Body,
    x: &mut Exchange,
    cx: &mut Context<'_>,
) -> Poll<Result<Option<Chunk>, BodyError>> {
    loop {
        match ready!(source.poll_chunk(cx, x))? {
            Some(Chunk::Trailers(fields)) => {
                fields.iter().for_each(|(name, value)| x.reply.trailers.append(name, value));
            }
            other => return Poll::Ready(Ok(other)),
        }
    }
}

impl PieceQueue {
    /// The next piece of output. `None` if this filter has no more.
    fn poll_next(
        &mut self,
        x: &mut Exchange,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Chunk>, BodyError>> {
        while let Some(piece) = self.queue.front_mut() {
            if let Piece::Body(body) = piece
                && let Some(chunk) = ready!(body.poll_chunk(x, cx))?
            {
                return Poll::Ready(Ok(Some(chunk)));
            }
            if let Some(Piece::Chunk(chunk)) = self.queue.pop_front() {
                return Poll::Ready(Ok(Some(chunk)));
            }
        }
        Poll::Ready(Ok(None))
    }
}

impl FilterLink {
    fn new(filter: impl BodyFilter + 'static) -> Self {
        Self { filter: Box::new(filter), out: PieceQueue::default(), file: None, failed: None }
    }

    /// The next piece of its input. Files are read if it needs bytes.
    fn poll_input(
        &mut self,
        source: &mut Body,
        before: &mut [Self],
        x: &mut Exchange,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Chunk>, BodyError>> {
        if let Some(slice) = self.file.as_mut().filter(|slice| !slice.is_empty()) {
            return Poll::Ready(read(slice).map(Some));
        }
        let piece = ready!(pull(source, before, x, cx))?;
        Poll::Ready(match piece {
            Some(Chunk::File(slice)) if self.filter.reads_bytes() && !slice.is_empty() => {
                read(self.file.insert(slice)).map(Some)
            }
            other => Ok(other),
        })
    }
}

/// Reads some bytes from the beginning of a range.
fn read(slice: &mut FileSlice) -> Result<Chunk, BodyError> {
    let mut piece = vec![0; slice.len().min(READ_SIZE) as usize];
    slice.file.read_exact_at(&mut piece, slice.start).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => BodyError::Truncated,
        _ => BodyError::Io(error),
    })?;
    slice.start += piece.len() as u64;
    Ok(Chunk::Bytes(Bytes::Owned(piece)))
}
