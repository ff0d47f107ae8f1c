//! The body of a reply as the server sends it, pulled by whoever writes to the client.
//!
//! Bytes stay in the buffer they were read into. While the client takes nothing, a buffered reply
//! is read ahead, to memory and then to a file. When the body has ended, connection and place are
//! given back at once, however slowly the client reads what is left.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use ::upstream::pool::{GroupPool, PoolOrigin, PooledConnection};
use ::upstream::{Group, Lease};
use net::buffers::{self, LentPart};
use net::{SocketProbe, Timer, clock, memory};
use observe::Level;

use super::Conf;
use super::bound::SessionToLearn;
use super::call::Answered;
use super::carrier::{BackendCarrier, ReadFailure, Unsent};
use super::head::HeaderFilter;
use super::protocol::{MalformedBody, ReplyLength, ReplyReader, Taken};
use super::spool::{Spool, SpoolError};
use crate::exchange::{
    Body, BodyError, BodyLog, BodyStream, Bytes, Chunk, Exchange, Fields, UpstreamAttempt,
};
use crate::files::TempPath;
use crate::rate::{Allowance, Rate};

/// The cost of a byte of framing in a task's share of work. Replies in tiny pieces consist mostly
/// of framing, and every piece is parsed.
const COST_OF_FRAMING: usize = 4;

/// A server that is asked: the right to use it, which is given back when the reply ends.
pub(super) struct BusyServer {
    pub(super) lease: Lease,
    /// How and for whom connections to it are made; `None` for plain ones.
    pub(super) origin: Option<Arc<PoolOrigin>>,
    pub(super) attempt: Rc<UpstreamAttempt>,
    /// What is to be learned once the reply has ended.
    pub(super) session: Option<Box<SessionToLearn>>,
    /// Whether all of the request was sent.
    pub(super) sent: bool,
}

impl BusyServer {
    pub(super) fn new(
        lease: Lease,
        attempt: Rc<UpstreamAttempt>,
        origin: Option<Arc<PoolOrigin>>,
    ) -> Self {
        Self { lease, origin, attempt, session: None, sent: false }
    }

    /// Nobody wants the body: if there is none, the connection may go on.
    pub(super) fn end_unread(
        self,
        carrier: &mut Option<impl BackendCarrier>,
        pool: &GroupPool,
        answered: &Answered,
    ) {
        let may_go_on = carrier.as_ref().is_some_and(|carrier| {
            let reply = carrier.reply();
            reply.is_ended() && answered.input.len() == answered.head_bytes && reply.may_reuse()
        });
        self.end(carrier, may_go_on.then_some(pool));
    }

    /// The reply has ended as it should. In the pool, its connection waits for another request, if
    /// it has one and all of this one was sent.
    fn end(self, carrier: &mut Option<impl BackendCarrier>, pool: Option<&GroupPool>) {
        let pool = pool.filter(|_| self.sent);
        self.end_with(pool.and_then(|pool| {
            Some((pool, carrier.as_mut().and_then(BackendCarrier::take_connection)?))
        }));
    }

    /// It has ended, and this connection goes to that pool.
    pub(super) fn end_with(mut self, kept: Option<(&GroupPool, PooledConnection)>) {
        self.attempt.end();
        self.lease.succeeded(clock::now_ms());
        self.lease.last_byte(self.attempt.age_ms());
        if let Some(session) = &self.session {
            session.learn(self.lease.server());
        }
        if let Some((pool, connection)) = kept {
            self.lease.end_with(pool, self.origin, connection);
        }
    }
}

/// What a location does with the bodies of replies.
pub(crate) struct BodyPolicy {
    memory_max: usize,
    /// The same of a reply that is not buffered.
    unbuffered_max: usize,
    file_max: u64,
    pub(super) temp_path: TempPath,
    read_timeout_ms: u64,
    /// Which fields after a body are passed on; `None`: they are not looked at.
    trailers: Option<Arc<HeaderFilter>>,
}

impl BodyPolicy {
    pub(crate) fn new(
        conf: &Conf,
        temp_path: &TempPath,
        trailers: Option<Arc<HeaderFilter>>,
    ) -> Self {
        Self {
            memory_max: conf.memory_max(),
            unbuffered_max: usize::try_from(conf.buffer_size.0).unwrap_or(usize::MAX).max(1),
            file_max: conf.file_max(),
            temp_path: temp_path.clone(),
            read_timeout_ms: conf.read_timeout.0,
            trailers,
        }
    }
}

/// How the body of one reply is taken.
pub(super) struct Receive<'a> {
    pub(super) policy: &'a Arc<BodyPolicy>,
    pub(super) group: &'a Arc<Group>,
    pub(super) buffering: bool,
    pub(super) rate: Rate,
}

/// The body of the reply: what has come of it, and the rest as it comes, for which `carrier` is
/// taken.
pub(super) fn receive<C: BackendCarrier>(
    x: &mut Exchange,
    server: BusyServer,
    carrier: &mut Option<C>,
    answered: Answered,
    how: Receive<'_>,
) -> Body {
    let Answered { body, head_bytes, mut input, .. } = answered;
    let received = input.len() - head_bytes;
    let Some(reply) = carrier.as_mut().map(C::reply_mut) else { return Body::Empty };
    let response_length = received - reply.envelope_bytes();
    let taken = reply.body(&mut input, head_bytes);
    let (is_ended, reuse) = (reply.is_ended(), reply.may_reuse());
    if body == ReplyLength::None {
        // What follows the head is of interest to the connection only; it is not waited for.
        server.end(carrier, (taken.is_ok() && reuse).then(|| how.group.pool()));
        let messages = taken.map_or_else(|error| error.messages, |taken| taken.messages);
        messages.iter().for_each(|message| message.write(x));
        buffers::give_back(input);
        return Body::Empty;
    }
    server.attempt.response_length.set(response_length as u64);
    match taken {
        Ok(taken) if is_ended => {
            server.end(carrier, reuse.then(|| how.group.pool()));
            whole(x, input, head_bytes, taken, how.policy)
        }
        taken => {
            let Some(carrier) = carrier.take() else { return Body::Empty };
            let mut incoming = BackendBody::new(x, CarriedReply { server, carrier }, how);
            incoming.keep(input, head_bytes, head_bytes, taken, false, x);
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
    input: Vec<u8>,
    start: usize,
    taken: Taken,
    policy: &BodyPolicy,
) -> Body {
    taken.messages.iter().for_each(|message| message.write(x));
    if let Some(fields) = taken.trailers {
        x.reply.trailers = shown(&fields, policy);
        *x.backends.trailers.borrow_mut() = fields;
    }
    if taken.end == start {
        buffers::give_back(input);
        return Body::Empty;
    }
    Body::Bytes(Bytes::Lent(LentPart::new(input, start..taken.end)))
}

/// The fields after a body that the client may see.
fn shown(fields: &Fields, policy: &BodyPolicy) -> Fields {
    let mut shown = Fields::default();
    let is_shown = |name: &[u8]| policy.trailers.as_ref().is_some_and(|filter| filter.shows(name));
    for (name, value) in fields.iter().filter(|(name, _)| is_shown(name)) {
        shown.append(name, value);
    }
    shown
}

/// A reply on its way: the server it comes from, and what carries it.
struct CarriedReply<C> {
    server: BusyServer,
    carrier: C,
}

/// A body that is still to come, in part at least.
struct BackendBody<C: BackendCarrier> {
    /// There until the body has ended.
    held: Option<CarriedReply<C>>,
    /// Whether the request goes on beside it.
    sends: bool,
    group: Arc<Group>,
    /// The client's socket.
    client: SocketProbe,
    policy: Arc<BodyPolicy>,
    buffering: bool,
    spool: Spool,
    /// Why it broke off: said once everything before that is given.
    failed: Option<BodyError>,
    trailers: Option<Fields>,
    /// Where all trailers are noted for the exchange.
    seen: Rc<RefCell<Fields>>,
    timer: Timer,
    waits: BodyTimer,
    rate: Rate,
    /// Bytes that came, framing included.
    received: u64,
    flush_due: bool,
    /// Whether pieces were given since the client was last to get what there is.
    unflushed: bool,
}

/// What the timer is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BodyTimer {
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

impl<C: BackendCarrier> BackendBody<C> {
    fn new(x: &Exchange, mut held: CarriedReply<C>, how: Receive<'_>) -> Self {
        Self {
            sends: !held.server.sent && held.carrier.go_on_beside_reply(),
            held: Some(held),
            group: how.group.clone(),
            client: x.client.socket,
            policy: how.policy.clone(),
            buffering: how.buffering,
            spool: Spool::default(),
            failed: None,
            trailers: None,
            seen: x.backends.trailers.clone(),
            timer: Timer::new(),
            waits: BodyTimer::Nothing,
            rate: how.rate,
            received: 0,
            flush_due: false,
            unflushed: false,
        }
    }

    /// Goes on with the request. That it fails is no end of the reply, unless the client's part of
    /// it does not come.
    fn send(&mut self, cx: &mut Context<'_>) {
        let Some(held) = self.held.as_mut().filter(|_| self.sends) else { return };
        let sent = held.carrier.poll_send(cx, &[]);
        held.server.attempt.bytes_sent.set(held.carrier.progress().written);
        match sent {
            Poll::Pending => {}
            Poll::Ready(Ok(())) => (self.sends, held.server.sent) = (false, true),
            Poll::Ready(Err(Unsent::Call(..) | Unsent::Refused)) => self.sends = false,
            Poll::Ready(Err(Unsent::Client(error))) => {
                self.fail(BodyError::Request(Box::new(error)));
            }
        }
    }

    /// Reads once. `ahead`: nobody has asked for it yet.
    fn poll_read(&mut self, cx: &mut Context<'_>, ahead: bool, log: &mut dyn BodyLog) -> Poll<()> {
        let most = ready!(self.poll_allowance(cx));
        let Some(room) = self.room(ahead) else {
            self.waits = BodyTimer::Nothing;
            return Poll::Pending;
        };
        let Some(held) = &mut self.held else { return Poll::Ready(()) };
        let Room { mut buffer, start, to_file, most: room } = room;
        let before = buffer.len();
        let read = held.carrier.poll_read(cx, &mut buffer, most.min(room));
        match read {
            Poll::Ready(Ok(count)) if count > 0 || held.carrier.reply().is_ended() => {
                let attempt = &held.server.attempt;
                attempt.bytes_received.set(attempt.bytes_received.get() + count as u64);
                attempt.response_length.set(attempt.response_length.get() + count as u64);
                let taken = held.carrier.reply_mut().body(&mut buffer, before);
                let found = taken.as_ref().map_or(0, |taken| taken.end.saturating_sub(before));
                net::spend(count.saturating_sub(found) * COST_OF_FRAMING);
                self.keep(buffer, start, before, taken, to_file, log);
                self.note_read(count as u64);
            }
            read => {
                self.spool.push(buffer, start);
                match read {
                    Poll::Ready(Ok(_)) => self.closed(),
                    Poll::Ready(Err(failure)) => self.fail(failure.into()),
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
            if self.waits == BodyTimer::Rate {
                ready!(self.timer.poll(cx));
                self.waits = BodyTimer::Nothing;
            }
            match self.rate.allowance(clock::unix_ms() / 1000, self.received) {
                Allowance::Unlimited => return Poll::Ready(usize::MAX),
                Allowance::Bytes(bytes) => {
                    return Poll::Ready(usize::try_from(bytes).unwrap_or(usize::MAX));
                }
                Allowance::NotBefore(delay_ms) => self.wait(BodyTimer::Rate, delay_ms),
            }
        }
    }

    fn wait(&mut self, waits: BodyTimer, delay_ms: u64) {
        self.waits = waits;
        self.timer.set(delay_ms);
    }

    fn poll_timeout(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.waits != BodyTimer::ToRead {
            self.wait(BodyTimer::ToRead, self.policy.read_timeout_ms);
        }
        self.timer.poll(cx)
    }

    /// A read of so many bytes is done.
    fn note_read(&mut self, count: u64) {
        self.waits = BodyTimer::Nothing;
        self.received += count;
        match self.rate.delay_ms(0, count) {
            0 => {}
            delay_ms => self.wait(BodyTimer::Rate, delay_ms),
        }
    }

    /// Room for the next read. What is asked for now always has some.
    fn room(&mut self, ahead: bool) -> Option<Room> {
        if ahead && let Some((buffer, start)) = self.spool.reopen() {
            return Some(Room { buffer, start, to_file: false, most: usize::MAX });
        }
        let usual = self.usual_size();
        let held_max = match self.buffering {
            true => self.policy.memory_max,
            false => self.policy.unbuffered_max,
        };
        let size = held_max.min(usual);
        let memory_max = if memory::is_short() { 0 } else { self.policy.memory_max };
        let in_memory = !ahead || self.spool.memory() + size <= memory_max;
        if !in_memory && self.spool.in_file() >= self.policy.file_max {
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
        let left = self.held.as_ref().map_or(0, |held| held.carrier.reply().body_left());
        let expected = left.max(self.received);
        match expected >= buffers::LARGE_SIZE as u64 {
            true if self.policy.memory_max >= buffers::LARGE_SIZE => buffers::LARGE_SIZE,
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
        taken: Result<Taken, MalformedBody>,
        to_file: bool,
        log: &mut dyn BodyLog,
    ) {
        let taken = match taken {
            Ok(taken) => taken,
            Err(error) => {
                buffer.truncate(before);
                self.spool.push(buffer, start);
                error.messages.iter().for_each(|message| message.write(log));
                return self.fail(BodyError::Upstream(error.reason));
            }
        };
        buffer.truncate(taken.end);
        if to_file && !buffer.is_empty() {
            self.write_to_file(&buffer, log);
            buffers::give_back(buffer);
        } else {
            self.spool.push(buffer, start);
        }
        if let Some(fields) = taken.trailers {
            self.trailers = Some(shown(&fields, &self.policy));
            *self.seen.borrow_mut() = fields;
        }
        taken.messages.iter().for_each(|message| message.write(log));
        if let Some(error) = taken.cut_short {
            self.fail(BodyError::UpstreamCutShort(error));
        } else if let Some(held) = &self.held
            && held.carrier.reply().is_ended()
        {
            self.end(held.carrier.reply().may_reuse());
        }
    }

    fn write_to_file(&mut self, bytes: &[u8], log: &mut dyn BodyLog) {
        match self.spool.push_to_file(bytes, &self.policy.temp_path) {
            Ok(None) => {}
            Ok(Some(made)) => {
                let made = made.display();
                let what = "an upstream response is buffered to a temporary file";
                log.note(Level::Warn, format_args!("{what} {made}"));
            }
            Err(SpoolError(call, path, error)) => self.fail(BodyError::TempFile(call, path, error)),
        }
    }

    /// The server has closed the connection. Where that is the end of the reply, TLS has to say so,
    /// unless the server is known not to: anybody on the path can send a FIN.
    fn closed(&mut self) {
        let ends = |carrier: &C| carrier.reply().ends_at_close() && !carrier.is_cut();
        match self.held.as_ref().is_some_and(|held| ends(&held.carrier)) {
            true => self.end(false),
            false => self.fail(BodyError::UpstreamClosed),
        }
    }

    fn end(&mut self, reuse: bool) {
        if let Some(CarriedReply { server, carrier }) = self.held.take() {
            server.end(&mut Some(carrier), reuse.then(|| self.group.pool()));
        }
    }

    /// No more will come.
    fn fail(&mut self, error: BodyError) {
        if let Some(held) = self.held.take() {
            held.server.attempt.end();
            self.failed = Some(error);
        }
    }
}

impl From<ReadFailure> for BodyError {
    fn from(failure: ReadFailure) -> Self {
        match failure {
            ReadFailure::Call(error) => Self::UpstreamRead(error),
            ReadFailure::Refused => Self::UpstreamClosed,
            ReadFailure::Peer(message) => Self::Upstream(message),
        }
    }
}

impl<C: BackendCarrier> BodyStream for BackendBody<C> {
    fn is_better_flushed(&self) -> bool {
        self.held.is_some() || !self.spool.is_empty()
    }

    fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
        log: &mut dyn BodyLog,
    ) -> Poll<Result<Option<Chunk>, BodyError>> {
        self.send(cx);
        loop {
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
            if self.poll_read(cx, false, log).is_pending() {
                let is_between = |held: &CarriedReply<C>| held.carrier.reply().is_between_pieces();
                if !self.unflushed || !self.held.as_ref().is_some_and(is_between) {
                    return Poll::Pending;
                }
                // Nobody knows when the next chunk comes: an event may be complete.
                self.flush_due = true;
            }
        }
    }

    fn fill(&mut self, cx: &mut Context<'_>, log: &mut dyn BodyLog) {
        self.send(cx);
        while self.buffering && self.held.is_some() && self.poll_read(cx, true, log).is_ready() {}
    }
}

impl<C: BackendCarrier> Drop for BackendBody<C> {
    fn drop(&mut self) {
        if let Some(held) = &self.held {
            held.server.attempt.end();
        }
    }
}
