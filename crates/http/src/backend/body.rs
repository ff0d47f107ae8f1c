//! The body of a server's reply, pulled by the writer to the client.
//!
//! Bytes stay in the buffer they were read into. While the client takes nothing, a buffered reply
//! is read ahead, to memory and then to a file. When the body has ended, connection and lease are
//! released at once, even if the client has not read everything.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use ::upstream::pool::{GroupPool, PoolOrigin, PooledConnection};
use ::upstream::{Group, Lease};
use net::buffers::{self, LentPart};
use net::{SocketProbe, Timer, clock, memory};
use observe::Level;

use super::call::{Answered, TimedStep};
use super::carrier::{BackendCarrier, CarrierError};
use super::head::HeaderFilter;
use super::protocol::{DecodedBody, ReplyLength, ReplyReader};
use super::spool::{ReadBuffer, Spool};
use super::sticky::StickySession;
use super::{Conf, Timeouts};
use crate::exchange::{
    Body, BodyError, BodyLog, BodyStream, Bytes, Chunk, Exchange, Fields, RequestTiming,
    TimedPhase, UpstreamAttempt,
};
use crate::files::TempPath;
use crate::rate::{Allowance, Rate};

/// The cost of a byte of framing in a task's share of work. Replies in tiny pieces consist mostly
/// of framing, and every piece is parsed.
const COST_OF_FRAMING: usize = 4;

/// A server in use: its lease, which is returned at the end of the reply.
pub(super) struct BusyServer {
    pub(super) lease: Lease,
    /// The origin of its connections in the pool; `None` for plain ones.
    pub(super) origin: Option<Arc<PoolOrigin>>,
    pub(super) attempt: Rc<UpstreamAttempt>,
    /// The session that the server is recorded for at the end of the reply.
    pub(super) session: Option<Box<StickySession>>,
    /// Whether the whole request was sent.
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

    /// Ends a reply whose body is not needed. The connection is kept if there is no body.
    pub(super) fn end_unread(
        self,
        carrier: &mut Option<impl BackendCarrier>,
        pool: &GroupPool,
        answered: &Answered,
    ) {
        let may_reuse = carrier.as_ref().is_some_and(|carrier| {
            let reply = carrier.reply();
            reply.is_ended() && answered.input.len() == answered.head_bytes && reply.may_reuse()
        });
        self.end(carrier, may_reuse.then_some(pool));
    }

    /// Ends a complete reply. Its connection returns to the pool, if it has one of its own and the
    /// whole request was sent.
    fn end(self, carrier: &mut Option<impl BackendCarrier>, pool: Option<&GroupPool>) {
        let pool = pool.filter(|_| self.sent);
        self.end_with(pool.and_then(|pool| {
            Some((pool, carrier.as_mut().and_then(BackendCarrier::take_connection)?))
        }));
    }

    /// Ends the request, and returns the connection to the pool.
    pub(super) fn end_with(mut self, kept: Option<(&GroupPool, PooledConnection)>) {
        self.attempt.end();
        self.lease.succeeded(clock::now_ms());
        self.lease.last_byte(self.attempt.age_ms());
        if let Some(session) = &self.session {
            session.end(self.lease.server());
        }
        if let Some((pool, connection)) = kept {
            self.lease.end_with(pool, self.origin, connection);
        }
    }
}

/// A location's settings for the bodies of replies.
pub(crate) struct BodyPolicy {
    memory_max: usize,
    /// The same for a reply that is not buffered.
    unbuffered_max: usize,
    file_max: u64,
    pub(super) temp_path: TempPath,
    pub(super) timeouts: Timeouts,
    /// Which fields after a body the client gets; `None`: none.
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
            timeouts: conf.timeouts(),
            trailers,
        }
    }
}

/// The reply's body, for which `carrier` is taken unless all of it has arrived. `buffered_rate`
/// limits the reading of a buffered reply; `None`: the reply is not buffered.
pub(super) fn receive<C: BackendCarrier>(
    x: &mut Exchange,
    server: BusyServer,
    carrier: &mut Option<C>,
    answered: Answered,
    policy: &Arc<BodyPolicy>,
    group: &Arc<Group>,
    buffered_rate: Option<Rate>,
) -> Body {
    let Answered { body, head_bytes, mut input, .. } = answered;
    let received = input.len() - head_bytes;
    let Some(reply) = carrier.as_mut().map(C::reply_mut) else { return Body::Empty };
    let response_length = received - reply.envelope_bytes();
    let decoded = reply.body(&mut input, head_bytes);
    let (is_ended, reuse) = (reply.is_ended(), reply.may_reuse());
    if body == ReplyLength::None {
        // Bytes after the head matter for the connection only; they are not waited for.
        server.end(carrier, (decoded.error.is_none() && reuse).then(|| group.pool()));
        decoded.messages.iter().for_each(|message| message.write(x));
        buffers::give_back(input);
        return Body::Empty;
    }
    server.attempt.response_length.set(response_length as u64);
    if is_ended {
        server.end(carrier, reuse.then(|| group.pool()));
        return whole(x, input, head_bytes, decoded, policy);
    }
    let Some(carrier) = carrier.take() else { return Body::Empty };
    let mut incoming = BackendBody::new(x, server, carrier, policy, group, buffered_rate);
    let buffer = ReadBuffer { bytes: input, start: head_bytes, to_file: false };
    incoming.keep(buffer, decoded, x);
    incoming.note_read(received as u64);
    let is_head_alone = incoming.spool.is_empty() && incoming.failed.is_none();
    incoming.flush_due = !incoming.buffering && is_head_alone;
    Body::Stream(Box::new(incoming))
}

/// The body of a reply that arrived completely with the head.
fn whole(
    x: &mut Exchange,
    input: Vec<u8>,
    start: usize,
    decoded: DecodedBody,
    policy: &BodyPolicy,
) -> Body {
    decoded.messages.iter().for_each(|message| message.write(x));
    if let Some(fields) = decoded.trailers {
        x.reply.trailers = shown(&fields, policy);
        *x.backends.trailers.borrow_mut() = fields;
    }
    if decoded.end == start {
        buffers::give_back(input);
        return Body::Empty;
    }
    Body::Bytes(Bytes::Lent(LentPart::new(input, start..decoded.end)))
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

/// A body of which some is still to be read.
struct BackendBody<C: BackendCarrier> {
    /// The server, until the body has ended.
    server: Option<BusyServer>,
    /// The carrier, until the body has ended.
    carrier: Option<C>,
    /// Whether the rest of the request is sent meanwhile.
    sends: bool,
    group: Arc<Group>,
    client: SocketProbe,
    policy: Arc<BodyPolicy>,
    buffering: bool,
    spool: Spool,
    /// Why the body ended early: reported after the pieces before.
    failed: Option<BodyError>,
    trailers: Option<Fields>,
    /// The exchange's record of all trailers.
    seen: Rc<RefCell<Fields>>,
    timer: Timer,
    /// The step that the timer limits now.
    timed: Option<TimedStep>,
    rate: Rate,
    /// Bytes received, framing included.
    received: u64,
    flush_due: bool,
    /// Whether pieces were given after the last flush.
    unflushed: bool,
    /// The timing of its request.
    timing: Option<Rc<RequestTiming>>,
}

impl<C: BackendCarrier> BackendBody<C> {
    fn new(
        x: &Exchange,
        server: BusyServer,
        mut carrier: C,
        policy: &Arc<BodyPolicy>,
        group: &Arc<Group>,
        buffered_rate: Option<Rate>,
    ) -> Self {
        Self {
            sends: !server.sent && carrier.continue_beside_reply(),
            server: Some(server),
            carrier: Some(carrier),
            group: group.clone(),
            client: x.client.socket,
            policy: policy.clone(),
            buffering: buffered_rate.is_some(),
            spool: Spool::default(),
            failed: None,
            trailers: None,
            seen: x.backends.trailers.clone(),
            timer: Timer::new(),
            timed: None,
            rate: buffered_rate.unwrap_or_default(),
            received: 0,
            flush_due: false,
            unflushed: false,
            timing: x.timing.clone(),
        }
    }

    /// Sends more of the request. A failure does not end the reply, unless the client's body is
    /// missing.
    fn send(&mut self, cx: &mut Context<'_>) {
        if !self.sends {
            return;
        }
        let (Some(server), Some(carrier)) = (&mut self.server, &mut self.carrier) else { return };
        let sent = carrier.poll_send(cx, &[]);
        server.attempt.bytes_sent.set(carrier.progress().written);
        match sent {
            Poll::Pending => {}
            Poll::Ready(Ok(())) => (self.sends, server.sent) = (false, true),
            Poll::Ready(Err(error @ CarrierError::Client(_))) => self.fail(error.into()),
            Poll::Ready(Err(_)) => self.sends = false,
        }
    }

    /// Reads once. `ahead`: before the client needs it.
    fn poll_read(&mut self, cx: &mut Context<'_>, ahead: bool, log: &mut dyn BodyLog) -> Poll<()> {
        let allowed = ready!(self.poll_allowance(cx));
        let Some((mut buffer, most)) = self.buffer(ahead) else {
            self.timed = None;
            return Poll::Pending;
        };
        let (Some(server), Some(carrier)) = (&self.server, &mut self.carrier) else {
            return Poll::Ready(());
        };
        let before = buffer.bytes.len();
        let read = carrier.poll_read(cx, &mut buffer.bytes, allowed.min(most));
        match read {
            Poll::Ready(Ok(count)) if count > 0 || carrier.reply().is_ended() => {
                let attempt = &server.attempt;
                attempt.bytes_received.set(attempt.bytes_received.get() + count as u64);
                attempt.response_length.set(attempt.response_length.get() + count as u64);
                let decoded = carrier.reply_mut().body(&mut buffer.bytes, before);
                let found = decoded.end.saturating_sub(before);
                net::spend(count.saturating_sub(found) * COST_OF_FRAMING);
                self.keep(buffer, decoded, log);
                self.note_read(count as u64);
            }
            read => {
                self.spool.push(buffer);
                match read {
                    Poll::Ready(Ok(_)) => self.closed(),
                    Poll::Ready(Err(error)) => self.fail(error.into()),
                    Poll::Pending => {
                        ready!(self.poll_timeout(cx));
                        self.fail(BodyError::UpstreamTimedOut);
                    }
                }
            }
        }
        Poll::Ready(())
    }

    /// The number of bytes that the rate allows to be read now. Pending while it is 0.
    fn poll_allowance(&mut self, cx: &mut Context<'_>) -> Poll<usize> {
        loop {
            if self.timed == Some(TimedStep::Rate) {
                ready!(self.timer.poll(cx));
                self.timed = None;
            }
            match self.rate.allowance(clock::unix_ms() / 1000, self.received) {
                Allowance::Unlimited => return Poll::Ready(usize::MAX),
                Allowance::Bytes(bytes) => {
                    return Poll::Ready(usize::try_from(bytes).unwrap_or(usize::MAX));
                }
                Allowance::NotBefore(delay_ms) => self.limit(TimedStep::Rate, delay_ms),
            }
        }
    }

    /// Tells the request's timing that the client waits for this body.
    fn note_wait(&self) {
        let Some(timing) = &self.timing else { return };
        timing.waits_for(match self.timed {
            Some(TimedStep::Rate) => TimedPhase::LimitRate,
            _ => TimedPhase::BackendBody,
        });
    }

    fn limit(&mut self, step: TimedStep, delay_ms: u64) {
        self.timed = Some(step);
        self.timer.set(delay_ms);
    }

    fn poll_timeout(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.timed != Some(TimedStep::Read) {
            self.limit(TimedStep::Read, self.policy.timeouts.read_ms);
        }
        self.timer.poll(cx)
    }

    /// Counts the bytes of a read.
    fn note_read(&mut self, count: u64) {
        self.timed = None;
        self.received += count;
        match self.rate.delay_ms(0, count) {
            0 => {}
            delay_ms => self.limit(TimedStep::Rate, delay_ms),
        }
    }

    /// A buffer for the next read, and how much to read; `None`: no more may be read ahead.
    fn buffer(&mut self, ahead: bool) -> Option<(ReadBuffer, usize)> {
        if ahead && let Some(buffer) = self.spool.reopen() {
            return Some((buffer, usize::MAX));
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
        // A read may exceed the limit if its bytes leave at once: to a client that has taken
        // everything so far, or to the file.
        let most = match (in_memory, size < usual) {
            (true, true) if !ahead && self.client.is_drained() => usual,
            (true, _) => size,
            (false, _) => usual,
        };
        let bytes = match if most > size { usual } else { size } {
            buffers::LARGE_SIZE => buffers::lend_large(),
            buffers::BUFFER_SIZE => buffers::lend(),
            other => Vec::with_capacity(other),
        };
        Some((ReadBuffer { bytes, start: 0, to_file: !in_memory }, most))
    }

    /// The size of a read if memory is not short.
    fn usual_size(&self) -> usize {
        let left = self.carrier.as_ref().map_or(0, |carrier| carrier.reply().body_left());
        let expected = left.max(self.received);
        match expected >= buffers::LARGE_SIZE as u64 {
            true if self.policy.memory_max >= buffers::LARGE_SIZE => buffers::LARGE_SIZE,
            _ => buffers::BUFFER_SIZE,
        }
    }

    /// Keeps the part of the body that was found in a buffer.
    fn keep(&mut self, mut buffer: ReadBuffer, decoded: DecodedBody, log: &mut dyn BodyLog) {
        buffer.bytes.truncate(decoded.end);
        if buffer.to_file && !buffer.bytes.is_empty() {
            self.write_to_file(&buffer.bytes, log);
            buffers::give_back(buffer.bytes);
        } else {
            self.spool.push(buffer);
        }
        if let Some(fields) = decoded.trailers {
            self.trailers = Some(shown(&fields, &self.policy));
            *self.seen.borrow_mut() = fields;
        }
        decoded.messages.iter().for_each(|message| message.write(log));
        if let Some(error) = decoded.error {
            self.fail(match decoded.is_cut_short {
                true => BodyError::UpstreamCutShort(error),
                false => BodyError::Upstream(error),
            });
        } else if let Some(reply) = self.carrier.as_ref().map(C::reply)
            && reply.is_ended()
        {
            self.end(reply.may_reuse());
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
            Err(error) => self.fail(error),
        }
    }

    /// The server has closed the connection. If that ends the reply, TLS must confirm it, unless
    /// the server is known not to: anyone on the path can send a FIN.
    fn closed(&mut self) {
        let ends = |carrier: &C| carrier.reply().ends_at_close() && !carrier.is_cut();
        match self.carrier.as_ref().is_some_and(ends) {
            true => self.end(false),
            false => self.fail(BodyError::UpstreamClosed),
        }
    }

    fn end(&mut self, reuse: bool) {
        if let Some(server) = self.server.take() {
            server.end(&mut self.carrier, reuse.then(|| self.group.pool()));
            self.carrier = None;
        }
    }

    fn fail(&mut self, error: BodyError) {
        if let Some(server) = self.server.take() {
            self.carrier = None;
            server.attempt.end();
            self.failed = Some(error);
        }
    }
}

impl From<CarrierError> for BodyError {
    fn from(error: CarrierError) -> Self {
        match error {
            CarrierError::Call(_, error) => Self::UpstreamRead(error),
            CarrierError::Refused | CarrierError::Leaving => Self::UpstreamClosed,
            CarrierError::Peer(message) => Self::Upstream(message),
            CarrierError::Client(error) => Self::Request(Box::new(error)),
        }
    }
}

impl<C: BackendCarrier> BodyStream for BackendBody<C> {
    fn is_better_flushed(&self) -> bool {
        self.server.is_some() || !self.spool.is_empty()
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
            if self.server.is_none() {
                return Poll::Ready(Ok(self.trailers.take().map(Chunk::Trailers)));
            }
            if self.poll_read(cx, false, log).is_pending() {
                let is_between = |carrier: &C| carrier.reply().is_between_pieces();
                if !self.unflushed || !self.carrier.as_ref().is_some_and(is_between) {
                    self.note_wait();
                    return Poll::Pending;
                }
                // The next chunk may take long: an event may be complete.
                self.flush_due = true;
            }
        }
    }

    fn fill(&mut self, cx: &mut Context<'_>, log: &mut dyn BodyLog) {
        self.send(cx);
        while self.buffering && self.server.is_some() && self.poll_read(cx, true, log).is_ready() {}
    }
}

impl<C: BackendCarrier> Drop for BackendBody<C> {
    fn drop(&mut self) {
        if let Some(server) = &self.server {
            server.attempt.end();
        }
    }
}
