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
            Body::Stream(Box::new(FetchReader { fetch: Some(fetch), next: None }))
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
struct FetchReader {
    /// `None` once it has ended.
    fetch: Option<Fetch>,
    next: Option<Result<Option<Chunk>, BodyError>>,
}

impl FetchReader {
    fn poll_fetch(
        &mut self,
        cx: &mut Context<'_>,
        log: &mut dyn BodyLog,
    ) -> Poll<Result<Option<Chunk>, BodyError>> {
        let Some(fetch) = &mut self.fetch else { return Poll::Ready(Ok(None)) };
        let pulled = ready!(fetch.poll_chunk(cx, log));
        if !matches!(pulled, Ok(Some(_))) {
            self.fetch = None;
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
            None => ready!(self.poll_fetch(cx, log)),
        };
        if matches!(pulled, Ok(Some(_)))
            && let Poll::Ready(next) = self.poll_fetch(cx, log)
        {
            self.next = Some(next);
        }
        Poll::Ready(pulled)
    }

    fn fill(&mut self, cx: &mut Context<'_>, log: &mut dyn BodyLog) {
        if let Some(fetch) = &mut self.fetch {
            fetch.source.fill(cx, log);
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
