//! Filters of a reply's body. PieceQueue are pushed through them, with the exchange.
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

/// A filter of a body.
pub trait BodyFilter {
    /// Takes the next piece; `None` is the end of the body. What goes on is put into `out`. A piece
    /// comes only after [`poll_rest`](Self::poll_rest) has put nothing.
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

    /// The next piece is still to come: puts what need not wait for it.
    fn idle(&mut self, _out: &mut PieceQueue) {}

    /// Whether it looks at bytes: files are read for it then.
    fn reads_bytes(&self) -> bool {
        true
    }
}

/// What a filter has put.
#[derive(Default)]
pub struct PieceQueue {
    queue: VecDeque<Piece>,
    is_over: bool,
}

enum Piece {
    Chunk(Chunk),
    Body(Box<dyn LiveBody>),
}

/// A source that is given the exchange whose reply it is a part of, such as the body of a
/// subrequest. Content that is made while it is sent is a filter of an empty body.
pub trait LiveBody {
    /// The next piece; `None` is the end.
    fn poll_chunk(
        &mut self,
        x: &mut Exchange,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Chunk>, BodyError>>;
}

impl PieceQueue {
    /// Puts a piece.
    pub fn put(&mut self, chunk: Chunk) {
        if !matches!(&chunk, Chunk::Bytes(bytes) if bytes.is_empty()) {
            self.queue.push_back(Piece::Chunk(chunk));
        }
    }

    /// Puts a piece that goes on as it is; `None`, the end, follows by itself.
    pub fn pass(&mut self, piece: Option<Chunk>) {
        piece.into_iter().for_each(|chunk| self.put(chunk));
    }

    /// Puts all of another body, such as that of a subrequest. The filter is not given it.
    pub fn insert(&mut self, body: impl LiveBody + 'static) {
        self.queue.push_back(Piece::Body(Box::new(body)));
    }

    /// Ends the body here; the source is not read any further.
    pub fn end(&mut self) {
        self.is_over = true;
    }
}

/// A filter in its place.
pub(super) struct FilterLink {
    filter: Box<dyn BodyFilter>,
    out: PieceQueue,
    /// The part of a file that has not been read for it yet.
    file: Option<FileSlice>,
    /// The error that ends the body after the queued pieces.
    failed: Option<BodyError>,
}

impl Reply {
    /// Has the body pass a filter on its way, behind those that were added before.
    pub fn filter_body(&mut self, filter: impl BodyFilter + 'static) {
        self.filters.push(FilterLink::new(filter));
    }

    /// Has the body pass a filter before all others.
    pub fn filter_body_first(&mut self, filter: impl BodyFilter + 'static) {
        self.filters.insert(0, FilterLink::new(filter));
    }

    /// Whether the body passes any.
    pub(crate) fn has_filters(&self) -> bool {
        !self.filters.is_empty()
    }
}

/// A body on its way: its source, and the filters that it passes.
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

    /// Gives both back.
    pub(crate) fn give_back(self, reply: &mut Reply) {
        (reply.body, reply.filters) = (self.source, self.filters);
    }

    /// Whether there is neither a body nor a filter.
    pub(crate) fn is_empty(&self) -> bool {
        self.source.is_empty() && self.filters.is_empty()
    }

    /// The next piece of what the last filter gives; `None` is the end.
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

    /// While the client takes nothing: the source may read ahead.
    pub(crate) fn fill(&mut self, x: &mut Exchange, cx: &mut Context<'_>) {
        if let Body::Stream(source) = &mut self.source {
            source.fill(cx, x);
        }
    }

    /// All of a body that is there in full, if one piece is what becomes of it. `Err`: the body,
    /// with nothing lost.
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

/// The next piece behind the last of some filters.
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
    /// The next piece; `None`: nothing is put.
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

    /// The next piece of what comes before it, files read if it wants that.
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

/// Reads some bytes off the beginning of a range.
fn read(slice: &mut FileSlice) -> Result<Chunk, BodyError> {
    let mut piece = vec![0; slice.len().min(READ_SIZE) as usize];
    slice.file.read_exact_at(&mut piece, slice.start).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => BodyError::Truncated,
        _ => BodyError::Io(error),
    })?;
    slice.start += piece.len() as u64;
    Ok(Chunk::Bytes(Bytes::Owned(piece)))
}
