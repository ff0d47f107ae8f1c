//! A backend's reply that goes to a file as well as to the client, and continues without the
//! client.
//!
//! Each piece of the body goes to the [`ReplySink`] before the client's exchange gets it. The
//! exchange owns the reading end ([`FetchReader`]); when it drops that early, the rest is fetched
//! in the background. A reply without a sink needs no `Fetch`: its body is the carrier's.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use observe::Level;

use crate::exchange::{
    BackgroundTasks, Body, BodyError, BodyLog, BodyStream, Chunk, DetachedLog, Exchange, FileSlice,
};
use crate::site::Generation;

/// Bytes of a file that go to the sink before the client is sent them.
const FILE_PIECE_MAX: u64 = 256 * 1024;

/// The destination of a stored reply.
pub(crate) trait ReplySink: 'static {
    /// Adds a piece. An error has been logged; the sink is dropped then.
    fn put(&mut self, piece: &Chunk) -> Result<(), SinkFailed>;
    /// The reply is complete.
    fn end(self: Box<Self>);
    /// The reply has ended before it was complete.
    fn cut(self: Box<Self>) {}
    /// The file with the body, as far as it was written, if others wait for the reply: then a slow
    /// client reads from it what it could not take yet.
    fn file(&self) -> Option<FileSlice> {
        None
    }
    /// Writes all pieces so far to the file. An error has been logged; the sink is dropped then.
    fn flush(&mut self) -> Result<(), SinkFailed> {
        Ok(())
    }
    /// The log for messages after the end of the exchange.
    fn log(&self) -> &Rc<DetachedLog>;
}

pub(crate) struct SinkFailed;

/// The body for the client, whose pieces go to the sink first.
pub(super) fn keep(x: &Exchange, mut sink: Box<dyn ReplySink>, body: Body) -> Body {
    match body {
        Body::Stream(source) => {
            let generation = x.generation.clone();
            let fetch = Fetch { source, sink: Some(sink), rest: None, generation };
            Body::Stream(Box::new(FetchReader::new(fetch)))
        }
        Body::Bytes(bytes) => {
            let piece = Chunk::Bytes(bytes);
            if sink.put(&piece).is_ok() {
                sink.end();
            }
            let Chunk::Bytes(bytes) = piece else { return Body::Empty };
            Body::Bytes(bytes)
        }
        other => {
            sink.end();
            other
        }
    }
}

/// A reply on its way to a sink.
struct Fetch {
    source: Box<dyn BodyStream>,
    /// `None` once it is complete or has failed.
    sink: Option<Box<dyn ReplySink>>,
    /// The rest of a file of which the sink has a piece.
    rest: Option<FileSlice>,
    generation: Rc<Generation>,
}

impl Fetch {
    fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
        log: &mut dyn BodyLog,
    ) -> Poll<Result<Option<Chunk>, BodyError>> {
        let pulled = match self.rest.take() {
            Some(rest) => Ok(Some(Chunk::File(rest))),
            None => ready!(self.source.poll_chunk(cx, log)),
        };
        let pulled = pulled.map(|chunk| chunk.map(|chunk| self.cut(chunk)));
        match (self.sink.take(), &pulled) {
            (Some(mut sink), Ok(Some(piece))) => {
                self.sink = sink.put(piece).is_ok().then_some(sink)
            }
            (Some(sink), Ok(None)) => sink.end(),
            (Some(sink), Err(_)) => sink.cut(),
            (None, _) => {}
        }
        Poll::Ready(pulled)
    }

    /// A piece that the sink can take at once: the beginning of a long one.
    fn cut(&mut self, chunk: Chunk) -> Chunk {
        match chunk {
            Chunk::File(slice) if slice.len() > FILE_PIECE_MAX => {
                self.rest = Some(slice.part(FILE_PIECE_MAX..slice.len()));
                Chunk::File(slice.part(0..FILE_PIECE_MAX))
            }
            chunk => chunk,
        }
    }

    /// Fetches the rest for the sink alone, if there is one.
    fn continue_alone(mut self) {
        let Some(log) = self.sink.as_ref().map(|sink| sink.log().clone()) else { return };
        let (generation, mut body_log) = (self.generation.clone(), log.clone());
        let started = BackgroundTasks::start(&generation, async move {
            while self.sink.is_some() {
                let pulled = poll_fn(|cx| {
                    ready!(net::poll_share(cx));
                    self.poll_chunk(cx, &mut body_log)
                });
                if !matches!(pulled.await, Ok(Some(_))) {
                    break;
                }
            }
        });
        if started.is_err() {
            let dropped = "too many background tasks, the rest of the response is dropped";
            log.write(Level::Error, format_args!("{dropped}"));
        }
    }
}

/// A stored reply as its exchange reads it: one piece behind the sink where possible, so that the
/// file is complete before the client has seen the end.
///
/// While the client takes nothing and others wait for the reply, pieces go to the sink's file only.
/// The client reads them from there later.
struct FetchReader {
    /// `None` once it has ended.
    fetch: Option<Fetch>,
    next: Option<Result<Option<Chunk>, BodyError>>,
    /// What the client has to read from the sink's file before anything else but `next`.
    behind: Option<FileSlice>,
    /// Bytes of the body that the client has been given, or has in `next`.
    given: u64,
    /// What follows `behind`.
    last: Option<Result<Option<Chunk>, BodyError>>,
}

/// The bytes of a body in a piece.
fn length_of(piece: &Chunk) -> u64 {
    match piece {
        Chunk::Bytes(bytes) => bytes.as_ref().len() as u64,
        Chunk::File(slice) => slice.len(),
        Chunk::Flush | Chunk::Pause | Chunk::Trailers(_) => 0,
    }
}

impl FetchReader {
    fn new(fetch: Fetch) -> Self {
        Self { fetch: Some(fetch), next: None, behind: None, given: 0, last: None }
    }

    /// Fetches on for the sink alone, while the client takes nothing.
    fn fill_sink(&mut self, cx: &mut Context<'_>, log: &mut dyn BodyLog) {
        while self.last.is_none() && net::poll_share(cx).is_ready() {
            let Some(fetch) = &mut self.fetch else { return };
            let Some(file) = fetch.sink.as_ref().and_then(|sink| sink.file()) else { return };
            let Poll::Ready(pulled) = fetch.poll_chunk(cx, log) else { return };
            let length = pulled.as_ref().map_or(0, |piece| piece.as_ref().map_or(0, length_of));
            let is_written = match &mut fetch.sink {
                Some(sink) => sink.flush().is_ok(),
                // It has the whole body.
                None => matches!(pulled, Ok(None)),
            };
            if !is_written {
                fetch.sink = None;
            }
            if is_written && length > 0 {
                let start = file.start + self.given;
                let behind = self.behind.get_or_insert(FileSlice { start, end: start, ..file });
                behind.end += length;
                self.given += length;
            } else if length > 0 || !matches!(pulled, Ok(Some(Chunk::Flush | Chunk::Pause))) {
                self.last = Some(pulled);
            }
        }
    }

    /// The next piece of what the client has to read from the sink's file.
    fn next_behind(&mut self) -> Option<Chunk> {
        let behind = self.behind.as_mut()?;
        let piece = behind.part(0..behind.len().min(FILE_PIECE_MAX));
        behind.start = piece.end;
        if behind.start == behind.end {
            self.behind = None;
        }
        Some(Chunk::File(piece))
    }

    fn poll_fetch(
        &mut self,
        cx: &mut Context<'_>,
        log: &mut dyn BodyLog,
    ) -> Poll<Result<Option<Chunk>, BodyError>> {
        let Some(fetch) = &mut self.fetch else { return Poll::Ready(Ok(None)) };
        let pulled = ready!(fetch.poll_chunk(cx, log));
        match &pulled {
            Ok(Some(piece)) => self.given += length_of(piece),
            _ => self.fetch = None,
        }
        Poll::Ready(pulled)
    }
}

impl BodyStream for FetchReader {
    fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
        log: &mut dyn BodyLog,
    ) -> Poll<Result<Option<Chunk>, BodyError>> {
        let pulled = match self.next.take() {
            Some(next) => next,
            None => match (self.next_behind(), self.last.take()) {
                (Some(piece), last) => {
                    self.last = last;
                    return Poll::Ready(Ok(Some(piece)));
                }
                (None, Some(last)) => {
                    if let Ok(Some(piece)) = &last {
                        self.given += length_of(piece);
                    } else {
                        self.fetch = None;
                    }
                    return Poll::Ready(last);
                }
                (None, None) => ready!(self.poll_fetch(cx, log)),
            },
        };
        if matches!(pulled, Ok(Some(_)))
            && self.behind.is_none()
            && self.last.is_none()
            && let Poll::Ready(next) = self.poll_fetch(cx, log)
        {
            self.next = Some(next);
        }
        Poll::Ready(pulled)
    }

    fn fill(&mut self, cx: &mut Context<'_>, log: &mut dyn BodyLog) {
        let Some(fetch) = &mut self.fetch else { return };
        match fetch.sink.as_ref().and_then(|sink| sink.file()) {
            Some(_) if !matches!(self.next, Some(Ok(None) | Err(_))) => self.fill_sink(cx, log),
            _ => fetch.source.fill(cx, log),
        }
    }
}

impl Drop for FetchReader {
    fn drop(&mut self) {
        if let Some(fetch) = self.fetch.take() {
            fetch.continue_alone();
        }
    }
}
