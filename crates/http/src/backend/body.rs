//! The body of a reply as the server sends it, pulled by whoever writes to the client.
//!
//! Bytes stay in the buffer they were read into. While the client takes nothing, a buffered reply
//! is read ahead, to memory and then to a file. When the body has ended, connection and place are
//! given back at once, however slowly the client reads what is left.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use ::upstream::pool::Connection;
use ::upstream::{Group, Lease};
use net::buffers::{self, Lent};
use net::{Probe, Timer, clock};
use observe::Level;
use wire::http1::response::ReplyBody;

use super::Conf;
use super::ask::Answered;
use super::bound::Session;
use super::coding::{Coding, Taken};
use super::head::Passed;
use super::spool::{FileError, Spool};
use crate::exchange::Try;
use crate::exchange::{Body, BodyError, BodyStream, Bytes, Chunk, Exchange, Fields, Remark};
use crate::files::TempPath;
use crate::rate::{Allowance, Rate};

/// Reads ahead before others get their turn.
const READS_PER_TURN: u32 = 16;

/// What is to be done with a connection and a place once a reply has ended.
pub(super) struct Held {
    pub(super) connection: Connection,
    pub(super) lease: Lease,
    pub(super) group: Arc<Group>,
    /// The local address that the connection was made from, if one was asked for.
    pub(super) from: Option<SocketAddr>,
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
        self.keepalive &=
            matches!(answered.body, ReplyBody::None | ReplyBody::Length(0)) && !unread;
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
            self.lease.end_with(&self.group, self.from, self.connection);
        }
    }
}

/// What a location does with the bodies of replies.
pub(crate) struct Rules {
    memory_max: usize,
    /// The same of a reply that is not buffered.
    unbuffered_max: usize,
    file_max: u64,
    pub(super) temp_path: TempPath,
    read_timeout_ms: u64,
    /// Which fields after a body are passed on; `None`: they are not looked at.
    trailers: Option<Arc<Passed>>,
    trailers_max: usize,
}

impl Rules {
    pub(crate) fn new(conf: &Conf, temp_path: &TempPath, trailers: Option<Arc<Passed>>) -> Self {
        Self {
            memory_max: conf.memory_max(),
            unbuffered_max: usize::try_from(conf.buffer_size.0).unwrap_or(usize::MAX).max(1),
            file_max: conf.file_max(),
            temp_path: temp_path.clone(),
            read_timeout_ms: conf.read_timeout.0,
            trailers,
            trailers_max: usize::try_from(conf.buffer_size.0).unwrap_or(usize::MAX),
        }
    }
}

/// How the body of one reply is taken.
pub(super) struct Manner<'a> {
    pub(super) rules: &'a Arc<Rules>,
    pub(super) buffering: bool,
    pub(super) rate: Rate,
}

/// The body of the reply: what has come of it, and the rest as it comes.
pub(super) fn receive(
    x: &mut Exchange,
    mut held: Held,
    answered: Answered,
    manner: Manner<'_>,
) -> Body {
    let Answered { body, head_bytes, mut input, .. } = answered;
    let received = input.len() - head_bytes;
    if body == ReplyBody::None {
        held.keepalive &= received == 0;
        held.end();
        buffers::give_back(input);
        return Body::Empty;
    }
    let rules = manner.rules;
    held.asked.response_length.set(received as u64);
    let mut coding = Coding::of(body, rules.trailers.is_some());
    let taken = coding.take(&mut input, head_bytes, rules.trailers_max);
    match taken {
        Ok(taken) if coding.is_ended() => whole(x, held, input, head_bytes, taken, rules),
        taken => {
            let mut incoming = Incoming::new(x, held, coding, manner);
            incoming.keep(input, head_bytes, head_bytes, taken, false);
            incoming.note_read(received as u64);
            let is_head_alone = incoming.spool.is_empty() && incoming.failed.is_none();
            incoming.flush_due = !incoming.buffering && is_head_alone;
            Body::Stream(Box::new(incoming))
        }
    }
}

/// All of the body came with the head.
fn whole(
    x: &mut Exchange,
    mut held: Held,
    input: Vec<u8>,
    start: usize,
    taken: Taken,
    rules: &Rules,
) -> Body {
    if let Some(message) = taken.surplus {
        held.keepalive = false;
        Remark { level: Level::Warn, text: message.into() }.log(x);
    }
    held.end();
    if let Some(fields) = taken.trailers {
        x.reply.trailers = passed(&fields, rules);
        *x.backends.trailers.borrow_mut() = fields;
    }
    if taken.end == start {
        buffers::give_back(input);
        return Body::Empty;
    }
    Body::Bytes(Bytes::Lent(Lent::new(input, start..taken.end)))
}

/// The fields after a body that the client may see.
fn passed(fields: &Fields, rules: &Rules) -> Fields {
    let mut passed = Fields::default();
    let shown = |name: &[u8]| rules.trailers.as_ref().is_some_and(|rules| rules.shows(name));
    for (name, value) in fields.iter().filter(|(name, _)| shown(name)) {
        passed.append(name, value);
    }
    passed
}

/// A body that is still to come, in part at least.
struct Incoming {
    /// There until the body has ended.
    held: Option<Held>,
    /// The client's socket.
    client: Probe,
    coding: Coding,
    rules: Arc<Rules>,
    buffering: bool,
    spool: Spool,
    /// Why it broke off: said once everything before that is given.
    failed: Option<BodyError>,
    remarks: Vec<Remark>,
    trailers: Option<Fields>,
    /// Where all trailers are noted for the exchange.
    seen: Rc<RefCell<Fields>>,
    timer: Timer,
    waits: Waits,
    rate: Rate,
    /// Bytes that came, framing included.
    received: u64,
    flush_due: bool,
    /// Whether pieces were given since the client was last to get what there is.
    unflushed: bool,
}

/// What the timer is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waits {
    Nothing,
    ToRead,
    /// For the time when more may be read.
    Rate,
}

/// Where bytes are read to: a buffer, which belongs to a piece from `start` on.
struct Room {
    buffer: Vec<u8>,
    start: usize,
    to_file: bool,
    /// Bytes at most.
    most: usize,
}

impl Incoming {
    fn new(x: &Exchange, held: Held, coding: Coding, manner: Manner<'_>) -> Self {
        Self {
            held: Some(held),
            client: x.client.socket,
            coding,
            rules: manner.rules.clone(),
            buffering: manner.buffering,
            spool: Spool::default(),
            failed: None,
            remarks: Vec::new(),
            trailers: None,
            seen: x.backends.trailers.clone(),
            timer: Timer::new(),
            waits: Waits::Nothing,
            rate: manner.rate,
            received: 0,
            flush_due: false,
            unflushed: false,
        }
    }

    /// Reads once. `ahead`: nobody has asked for it yet.
    fn poll_read(&mut self, cx: &mut Context<'_>, ahead: bool) -> Poll<()> {
        let most = ready!(self.poll_allowance(cx));
        let Some(room) = self.room(ahead) else {
            self.waits = Waits::Nothing;
            return Poll::Pending;
        };
        let Some(held) = &mut self.held else { return Poll::Ready(()) };
        let Room { mut buffer, start, to_file, most: room } = room;
        let before = buffer.len();
        let read = held.connection.stream.poll_read_most(cx, &mut buffer, most.min(room));
        match read {
            Poll::Ready(Ok(count @ 1..)) => {
                let asked = &held.asked;
                asked.bytes_received.set(asked.bytes_received.get() + count as u64);
                asked.response_length.set(asked.response_length.get() + count as u64);
                let taken = self.coding.take(&mut buffer, before, self.rules.trailers_max);
                self.keep(buffer, start, before, taken, to_file);
                self.note_read(count as u64);
            }
            read => {
                self.spool.push(buffer, start);
                match read {
                    Poll::Ready(Ok(_)) => self.closed(),
                    Poll::Ready(Err(error)) => self.fail(BodyError::UpstreamRead(error)),
                    Poll::Pending => {
                        ready!(self.poll_timeout(cx));
                        self.fail(BodyError::UpstreamTimedOut);
                    }
                }
            }
        }
        Poll::Ready(())
    }

    /// How much may be read now; ready when that is more than nothing.
    fn poll_allowance(&mut self, cx: &mut Context<'_>) -> Poll<usize> {
        loop {
            if self.waits == Waits::Rate {
                ready!(self.timer.poll(cx));
                self.waits = Waits::Nothing;
            }
            match self.rate.allowance(clock::unix_ms() / 1000, self.received) {
                Allowance::Unlimited => return Poll::Ready(usize::MAX),
                Allowance::Bytes(bytes) => {
                    return Poll::Ready(usize::try_from(bytes).unwrap_or(usize::MAX));
                }
                Allowance::NotBefore(delay_ms) => self.wait(Waits::Rate, delay_ms),
            }
        }
    }

    fn wait(&mut self, waits: Waits, delay_ms: u64) {
        self.waits = waits;
        self.timer.set(delay_ms);
    }

    fn poll_timeout(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.waits != Waits::ToRead {
            self.wait(Waits::ToRead, self.rules.read_timeout_ms);
        }
        self.timer.poll(cx)
    }

    /// A read of so many bytes is done.
    fn note_read(&mut self, count: u64) {
        self.waits = Waits::Nothing;
        self.received += count;
        match self.rate.delay_ms(0, count) {
            0 => {}
            delay_ms => self.wait(Waits::Rate, delay_ms),
        }
    }

    /// Room for the next read. What is asked for now always has some.
    fn room(&mut self, ahead: bool) -> Option<Room> {
        if ahead && let Some((buffer, start)) = self.spool.reopen() {
            return Some(Room { buffer, start, to_file: false, most: usize::MAX });
        }
        let usual = self.usual_size();
        let held_max = match self.buffering {
            true => self.rules.memory_max,
            false => self.rules.unbuffered_max,
        };
        let size = held_max.min(usual);
        let in_memory = !ahead || self.spool.memory() + size <= self.rules.memory_max;
        if !in_memory && self.spool.in_file() >= self.rules.file_max {
            return None;
        }
        // More than may be held is read where it goes on at once: to a client that has taken
        // everything so far, or to the file.
        let most = match (in_memory, size < usual) {
            (true, true) if !ahead && self.client.is_drained() => usual,
            (true, _) => size,
            (false, _) => usual,
        };
        let buffer = match if most > size { usual } else { size } {
            buffers::LARGE_SIZE => buffers::lend_large(),
            buffers::BUFFER_SIZE => buffers::lend(),
            other => Vec::with_capacity(other),
        };
        Some(Room { buffer, start: 0, to_file: !in_memory, most })
    }

    /// How much is read at once where memory is no concern.
    fn usual_size(&self) -> usize {
        let expected = self.coding.left().max(self.received);
        match expected >= buffers::LARGE_SIZE as u64 {
            true if self.rules.memory_max >= buffers::LARGE_SIZE => buffers::LARGE_SIZE,
            _ => buffers::BUFFER_SIZE,
        }
    }

    /// Keeps what was found in a buffer: a piece from `start` on, of which what stands before
    /// `before` was found earlier.
    fn keep(
        &mut self,
        mut buffer: Vec<u8>,
        start: usize,
        before: usize,
        taken: Result<Taken, BodyError>,
        to_file: bool,
    ) {
        let taken = match taken {
            Ok(taken) => taken,
            Err(error) => {
                buffer.truncate(before);
                self.spool.push(buffer, start);
                return self.fail(error);
            }
        };
        buffer.truncate(taken.end);
        if to_file && !buffer.is_empty() {
            self.write_to_file(&buffer);
            buffers::give_back(buffer);
        } else {
            self.spool.push(buffer, start);
        }
        if let Some(fields) = taken.trailers {
            self.trailers = Some(passed(&fields, &self.rules));
            *self.seen.borrow_mut() = fields;
        }
        if let Some(message) = taken.surplus {
            self.remarks.push(Remark { level: Level::Warn, text: message.into() });
        }
        if self.coding.is_ended() {
            self.end(taken.surplus.is_none());
        }
    }

    fn write_to_file(&mut self, bytes: &[u8]) {
        match self.spool.push_to_file(bytes, &self.rules.temp_path) {
            Ok(None) => {}
            Ok(Some(made)) => {
                let made = made.display();
                let text =
                    format!("an upstream response is buffered to a temporary file {made}").into();
                self.remarks.push(Remark { level: Level::Warn, text });
            }
            Err(FileError(call, path, error)) => self.fail(BodyError::TempFile(call, path, error)),
        }
    }

    /// The server has closed the connection.
    fn closed(&mut self) {
        match self.coding {
            Coding::Close | Coding::Ended => self.end(false),
            Coding::Length(_) | Coding::Chunked(_) | Coding::Trailers(_) => {
                self.fail(BodyError::UpstreamClosed);
            }
        }
    }

    fn end(&mut self, keepalive: bool) {
        if let Some(mut held) = self.held.take() {
            held.keepalive &= keepalive;
            held.end();
        }
    }

    /// No more will come.
    fn fail(&mut self, error: BodyError) {
        if let Some(held) = self.held.take() {
            held.asked.end();
            self.failed = Some(error);
        }
    }
}

impl BodyStream for Incoming {
    fn is_better_flushed(&self) -> bool {
        self.held.is_some() || !self.spool.is_empty()
    }

    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Chunk>, BodyError>> {
        loop {
            if let Some(remark) = self.remarks.pop() {
                return Poll::Ready(Ok(Some(Chunk::Remark(remark))));
            }
            if std::mem::take(&mut self.flush_due) {
                self.unflushed = false;
                let chunk = if self.buffering { Chunk::Pause } else { Chunk::Flush };
                return Poll::Ready(Ok(Some(chunk)));
            }
            if let Some(chunk) = self.spool.pop() {
                self.flush_due = !self.buffering;
                self.unflushed = true;
                return Poll::Ready(Ok(Some(chunk)));
            }
            if let Some(error) = self.failed.take() {
                return Poll::Ready(Err(error));
            }
            if self.held.is_none() {
                return Poll::Ready(Ok(self.trailers.take().map(Chunk::Trailers)));
            }
            if self.poll_read(cx, false).is_pending() {
                if !self.unflushed || !self.coding.is_between_chunks() {
                    return Poll::Pending;
                }
                // Nobody knows when the next chunk comes: an event may be complete.
                self.flush_due = true;
            }
        }
    }

    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Option<Remark> {
        for _ in 0..READS_PER_TURN {
            if !self.buffering || self.held.is_none() || self.poll_read(cx, true).is_pending() {
                return self.remarks.pop();
            }
        }
        cx.waker().wake_by_ref();
        self.remarks.pop()
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        if let Some(held) = &self.held {
            held.asked.end();
        }
    }
}
