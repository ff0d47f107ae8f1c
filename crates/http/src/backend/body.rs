//! The body of a reply as the server sends it, pulled by whoever writes to the client.
//!
//! Bytes stay in the buffer they were read into. When the body has ended, connection and place are
//! given back at once, however slowly the client reads what is left.

use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use ::upstream::pool::{self, Connection, Key};
use ::upstream::{Group, Lease};
use net::buffers::{self, Lent};
use net::{Timer, clock};
use wire::http1::chunked::{ChunkedDecoder, Decoded};
use wire::http1::response::ReplyBody;

use super::ask::Answered;
use super::bound::Session;
use super::tally::Try;
use crate::exchange::{BodyError, BodyStream, Bytes, Chunk};

/// What is to be done with a connection and a place once a reply has ended.
pub(super) struct Held {
    pub(super) connection: Connection,
    pub(super) lease: Lease,
    pub(super) group: Arc<Group>,
    pub(super) key: Key,
    pub(super) asked: Rc<Try>,
    /// What is to be learned once it has ended.
    pub(super) session: Option<Session>,
    /// Whether the connection may serve another request.
    pub(super) keepalive: bool,
}

impl Held {
    /// Nobody wants the body: where there is none, the connection may go on.
    pub(super) fn end_unread(mut self, answered: &Answered) {
        let unread = answered.input.len() > answered.head_bytes;
        self.keepalive &= Coding::of(answered.body).is_ended() && !unread;
        self.end();
    }

    /// The reply has ended as it should.
    pub(super) fn end(mut self) {
        self.asked.end();
        self.lease.succeeded(clock::now_ms());
        self.lease.last_byte_time(self.asked.age_ms());
        if let Some(session) = &self.session {
            session.learn(self.lease.server());
        }
        if self.keepalive {
            pool::give_back(&self.group, self.key, self.connection);
        }
    }
}

/// How the end of the body is found, and what is left of it.
pub(super) enum Coding {
    Length(u64),
    Chunked(ChunkedDecoder),
    Close,
    Ended,
}

impl Coding {
    pub(super) fn of(body: ReplyBody) -> Self {
        match body {
            ReplyBody::None | ReplyBody::Length(0) => Self::Ended,
            ReplyBody::Length(length) => Self::Length(length),
            ReplyBody::Chunked => Self::Chunked(ChunkedDecoder::default()),
            ReplyBody::Close => Self::Close,
        }
    }

    pub(super) fn is_ended(&self) -> bool {
        matches!(self, Self::Ended)
    }

    /// Finds the body in `buffer` from `start` on, and moves it together there. Where it ends now,
    /// and whether bytes follow that are not the reply's.
    pub(super) fn take(
        &mut self,
        buffer: &mut [u8],
        start: usize,
    ) -> Result<(usize, Surplus), BodyError> {
        let received = buffer.len() - start;
        match self {
            Self::Ended => Ok((start, Surplus(received > 0))),
            Self::Close => Ok((buffer.len(), Surplus(false))),
            Self::Length(left) => {
                let taken = (received as u64).min(*left);
                *left -= taken;
                if *left == 0 {
                    *self = Self::Ended;
                }
                Ok((start + taken as usize, Surplus((taken as usize) < received)))
            }
            Self::Chunked(decoder) => {
                let (mut at, mut end) = (start, start);
                loop {
                    let decoded = decoder.decode(&buffer[at..]);
                    match decoded.map_err(|_| BodyError::Upstream(INVALID_CHUNKED))? {
                        Decoded::More => return Ok((end, Surplus(false))),
                        Decoded::Data(data) => {
                            let from = at + data.start..at + data.end;
                            at = from.end;
                            let length = from.len();
                            buffer.copy_within(from, end);
                            end += length;
                        }
                        Decoded::Trailers(used) | Decoded::End(used) => {
                            *self = Self::Ended;
                            return Ok((end, Surplus(at + used < buffer.len())));
                        }
                    }
                }
            }
        }
    }
}

const INVALID_CHUNKED: &str = "upstream sent invalid chunked response";

/// Whether more came than the reply has: the connection is used no more.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Surplus(pub(super) bool);

/// A body that is still to come, in part at least.
pub(super) struct Incoming {
    held: Option<Held>,
    coding: Coding,
    /// What came with the head.
    first: Option<Lent>,
    timer: Timer,
    timeout_ms: u64,
    waits: bool,
    /// Whether the client is to have every piece at once.
    flushes: bool,
    flush_due: bool,
}

impl Incoming {
    pub(super) fn new(
        held: Held,
        coding: Coding,
        first: Option<Lent>,
        timer: Timer,
        timeout_ms: u64,
        flushes: bool,
    ) -> Self {
        let held = Some(held);
        Self { held, coding, first, timer, timeout_ms, waits: false, flushes, flush_due: false }
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Lent>, BodyError>> {
        let Some(held) = &mut self.held else { return Poll::Ready(Ok(None)) };
        let mut buffer = buffers::lend();
        let read = held.connection.stream.poll_read(cx, &mut buffer);
        match read {
            Poll::Pending => {
                buffers::give_back(buffer);
                if !std::mem::replace(&mut self.waits, true) {
                    self.timer.set(self.timeout_ms);
                }
                ready!(self.timer.poll(cx));
                Poll::Ready(Err(BodyError::UpstreamTimedOut))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(BodyError::UpstreamRead(error))),
            Poll::Ready(Ok(0)) => {
                buffers::give_back(buffer);
                Poll::Ready(self.closed().map(|()| None))
            }
            Poll::Ready(Ok(read)) => {
                self.waits = false;
                let asked = &held.asked;
                asked.bytes_received.set(asked.bytes_received.get() + read as u64);
                asked.response_length.set(asked.response_length.get() + read as u64);
                let (end, surplus) = self.coding.take(&mut buffer, 0)?;
                if self.coding.is_ended() {
                    self.end(surplus);
                }
                Poll::Ready(Ok(Some(Lent::new(buffer, 0..end))))
            }
        }
    }

    /// The server has closed the connection.
    fn closed(&mut self) -> Result<(), BodyError> {
        let Some(held) = self.held.take() else { return Ok(()) };
        match self.coding {
            Coding::Close | Coding::Ended => {
                Held { keepalive: false, ..held }.end();
                Ok(())
            }
            Coding::Length(_) | Coding::Chunked(_) => {
                held.asked.end();
                Err(BodyError::Upstream("upstream prematurely closed connection"))
            }
        }
    }

    fn end(&mut self, surplus: Surplus) {
        if let Some(mut held) = self.held.take() {
            held.keepalive &= !surplus.0;
            held.end();
        }
    }
}

impl BodyStream for Incoming {
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Chunk>, BodyError>> {
        if std::mem::take(&mut self.flush_due) {
            return Poll::Ready(Ok(Some(Chunk::Flush)));
        }
        let piece = match self.first.take() {
            Some(first) => Some(first),
            None => loop {
                match ready!(self.poll_read(cx))? {
                    // Only framing so far.
                    Some(piece) if piece.as_ref().is_empty() && self.held.is_some() => {}
                    piece => break piece,
                }
            },
        };
        self.flush_due = self.flushes && piece.is_some();
        Poll::Ready(Ok(piece.map(|piece| Chunk::Bytes(Bytes::Lent(piece)))))
    }
}

/// A body that is none.
pub(super) struct Broken(Option<BodyError>);

impl Broken {
    /// Nothing more is asked of the connection.
    pub(super) fn new(held: Held, error: BodyError) -> Self {
        held.asked.end();
        Self(Some(error))
    }
}

impl BodyStream for Broken {
    fn poll_chunk(&mut self, _: &mut Context<'_>) -> Poll<Result<Option<Chunk>, BodyError>> {
        Poll::Ready(self.0.take().map_or(Ok(None), Err))
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        if let Some(held) = &self.held {
            held.asked.end();
        }
    }
}
