//! The request of a health check: sent once to one server. Only the needed part of the reply is
//! read.
//!
//! Judging the reply is left to the caller. A failure is returned, not logged, since it may have no
//! effect.

use std::cell::Cell;
use std::fmt;
use std::future::poll_fn;
use std::task::{Context, Poll, Waker, ready};

use ::tls::backend::SecuredConnections;
use ::upstream::pool::PooledConnection;
use net::{Address, Connect, Timer, buffers};
use observe::{Errno, Level};
use session::health::CheckFailure;
use wire::reply::ReplyHead;

use super::Timeouts;
use super::call::{Answered, UpstreamRequest, timed_out};
use super::caller::Caller;
use super::carrier::{
    BackendCarrier, CarrierConnection, CarrierError, CarrierFactory, RequestSource, SendProgress,
};
use super::connect::{self, CONNECTING};
use super::protocol::ReplyReader;
use super::request::BackendRequestBody;
use crate::exchange::Fields;

const READ_SIZE: usize = 16 * 1024;

const READING_BODY: &str = "reading upstream";

pub(crate) struct CheckRequest {
    head: Vec<u8>,
    body: BackendRequestBody,
    carrier: Box<dyn Fn(PooledConnection, RequestSource) -> Box<CheckCarrier>>,
    /// The application protocols (ALPN) that servers are offered, best first.
    protocols: &'static [&'static [u8]],
}

type CheckCarrier = dyn BackendCarrier<Reply = dyn ReplyReader>;

impl CheckRequest {
    /// `head` precedes the body, in the protocol's own form.
    pub(crate) fn new<C: CarrierFactory<Carrier: BackendCarrier<Reply: Sized>>>(
        head: Vec<u8>,
        body: BackendRequestBody,
        start: C,
    ) -> Self {
        let carrier = move |connection, body| -> Box<CheckCarrier> {
            Box::new(AnyCarrier(start.carrier(C::Connection::alone(connection), body)))
        };
        Self { head, body, carrier: Box::new(carrier), protocols: C::Connection::PROTOCOLS }
    }
}

/// A carrier behind a trait object.
struct AnyCarrier<C>(C);

impl<C: BackendCarrier<Reply: Sized>> BackendCarrier for AnyCarrier<C> {
    type Reply = dyn ReplyReader;

    fn reply(&self) -> &Self::Reply {
        self.0.reply()
    }

    fn reply_mut(&mut self) -> &mut Self::Reply {
        self.0.reply_mut()
    }

    fn poll_send(&mut self, cx: &mut Context<'_>, head: &[u8]) -> Poll<Result<(), CarrierError>> {
        self.0.poll_send(cx, head)
    }

    fn progress(&self) -> &SendProgress {
        self.0.progress()
    }

    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut Vec<u8>,
        most: usize,
    ) -> Poll<Result<usize, CarrierError>> {
        self.0.poll_read(cx, buffer, most)
    }

    fn is_cut(&self) -> bool {
        self.0.is_cut()
    }

    fn take_connection(&mut self) -> Option<PooledConnection> {
        self.0.take_connection()
    }
}

pub(crate) struct CheckCall<'a> {
    pub(crate) to: Address,
    /// The server's name in log lines.
    pub(crate) name: &'a [u8],
    pub(crate) options: Connect,
    /// How the connection is secured, if it is.
    pub(crate) secured: Option<&'a SecuredConnections<'a>>,
    pub(crate) request: &'a CheckRequest,
    pub(crate) times: CheckTimes,
    /// The largest head of a reply.
    pub(crate) head_max: u64,
    /// How many bytes of the body the caller needs; `None`: none.
    pub(crate) body_max: Option<usize>,
    /// Whether the connection may serve another check.
    pub(crate) keeps: bool,
}

/// The time limits of a check.
#[derive(Clone, Copy)]
pub(crate) enum CheckTimes {
    Steps(Timeouts),
    /// All of it, in milliseconds.
    Whole(u64),
}

pub(crate) struct CheckReply {
    pub(crate) head: ReplyHead,
    /// The text that the head points into.
    pub(crate) text: Vec<u8>,
    /// The part of the body that was read, without framing.
    pub(crate) body: Vec<u8>,
    /// The fields after the body, if it was read to its end.
    pub(crate) trailers: Option<Fields>,
    pub(crate) kept: Option<KeptConnection>,
}

/// A connection that serves another check.
pub(crate) struct KeptConnection {
    pub(crate) connection: PooledConnection,
    to: Address,
}

/// The state of a running check.
struct Checker {
    action: &'static str,
    /// The last message.
    message: String,
    head: ReplyHead,
    text: Vec<u8>,
}

impl Caller for Checker {
    fn set_action(&mut self, action: &'static str) {
        self.action = action;
    }

    fn log(&mut self, _level: Level, message: fmt::Arguments<'_>) {
        self.message = message.to_string();
    }

    fn reply_head(&mut self) -> &mut ReplyHead {
        &mut self.head
    }

    fn note_text(&mut self, text: &[u8]) {
        self.text.clear();
        self.text.extend_from_slice(text);
    }
}

impl Checker {
    fn new() -> Self {
        let (head, text) = (ReplyHead::default(), Vec::new());
        Self { action: CONNECTING, message: String::new(), head, text }
    }

    fn failure(&mut self) -> CheckFailure {
        CheckFailure::new(self.action, std::mem::take(&mut self.message))
    }

    fn fail(&mut self, message: fmt::Arguments<'_>) -> CheckFailure {
        self.log(Level::Error, message);
        self.failure()
    }
}

/// Checks that a server accepts a connection.
pub(crate) async fn check_connection(
    to: &Address,
    name: &[u8],
    timeout_ms: u64,
) -> Result<&'static str, CheckFailure> {
    let (timer, mut checker) = (Timer::new(), Checker::new());
    timer.set(timeout_ms);
    let opened = open(&mut checker, to, name, &Connect::default(), None, &timer).await;
    opened.map(|_| CONNECTING)
}

/// Sends the check, on the kept connection if that is still usable.
pub(crate) async fn check(
    check: &CheckCall<'_>,
    kept: Option<KeptConnection>,
) -> Result<CheckReply, CheckFailure> {
    let timer = Timer::new();
    if let CheckTimes::Whole(time_ms) = check.times {
        timer.set(time_ms);
    }
    if let Some(kept) = kept.filter(|kept| kept.to == check.to).and_then(KeptConnection::if_usable)
    {
        let received = Cell::new(0);
        let reply = check.send(&timer, kept.connection, &received).await;
        // A kept connection that was closed meanwhile is no failure of the server.
        if reply.is_ok() || received.get() > 0 {
            return reply;
        }
    }
    if let CheckTimes::Steps(Timeouts { connect_ms, .. }) = check.times {
        timer.set(connect_ms);
    }
    let mut checker = Checker::new();
    let mut options = check.options.clone();
    if let Some(secured) = check.secured {
        let transport =
            connect::transport(&mut checker, secured, &check.to, check.request.protocols, &timer);
        options.transport = Some(transport.await.map_err(|_| checker.failure())?);
    }
    let connection =
        open(&mut checker, &check.to, check.name, &options, check.secured, &timer).await?;
    check.send(&timer, connection, &Cell::new(0)).await
}

/// Opens a connection before the timer expires.
async fn open(
    checker: &mut Checker,
    to: &Address,
    name: &[u8],
    options: &Connect,
    secured: Option<&SecuredConnections<'_>>,
    timer: &Timer,
) -> Result<PooledConnection, CheckFailure> {
    let connecting = connect::begin(checker, to, name, options);
    let connecting = connecting.map_err(|_| checker.failure())?;
    let connected = connect::finish(checker, connecting, secured, timer).await;
    connected.map(PooledConnection::new).map_err(|_| checker.failure())
}

impl CheckCall<'_> {
    /// Sends the check on one connection.
    async fn send(
        &self,
        timer: &Timer,
        connection: PooledConnection,
        received: &Cell<u64>,
    ) -> Result<CheckReply, CheckFailure> {
        let mut checker = Checker::new();
        let mut carrier = (self.request.carrier)(connection, self.request.body.stored_source());
        let timeouts = match &self.times {
            CheckTimes::Steps(timeouts) => Some(timeouts),
            CheckTimes::Whole(_) => None,
        };
        let (head, head_max) = (&self.request.head, self.head_max);
        let mut request =
            UpstreamRequest::new(&mut *carrier, head, timer, timeouts, head_max, received);
        let answered = poll_fn(|cx| request.poll(cx, &mut checker)).await;
        drop(request);
        let Answered { mut input, head_bytes, sent, .. } =
            answered.map_err(|_| checker.failure())?;
        let mut body_bytes = input.split_off(head_bytes);
        buffers::give_back(input);
        let mut trailers = None;
        let is_whole = match self.body_max.is_some() || self.keeps {
            true => {
                let mut reading =
                    CheckBody { check: self, timer, carrier: &mut *carrier, trailers: None };
                let read = reading.body(&mut checker, &mut body_bytes).await;
                trailers = reading.trailers;
                // If only the head matters, a body that fails or takes too long costs the
                // connection.
                if self.body_max.is_some() { read? } else { read.unwrap_or(false) }
            }
            false => false,
        };
        let reusable = self.keeps && is_whole && sent && carrier.reply().may_reuse();
        let connection = carrier.take_connection().filter(|_| reusable);
        let kept = connection.map(|connection| KeptConnection { connection, to: self.to.clone() });
        let Checker { head, text, .. } = checker;
        Ok(CheckReply { head, text, body: body_bytes, trailers, kept })
    }
}

/// The body of a reply being read.
struct CheckBody<'a> {
    check: &'a CheckCall<'a>,
    timer: &'a Timer,
    carrier: &'a mut CheckCarrier,
    trailers: Option<Fields>,
}

impl CheckBody<'_> {
    /// Reads the needed part of the body. Whether that is all of it, with nothing after it.
    async fn body(
        &mut self,
        checker: &mut Checker,
        body: &mut Vec<u8>,
    ) -> Result<bool, CheckFailure> {
        if self.carrier.reply().is_ended() {
            return Ok(body.is_empty());
        }
        checker.set_action(READING_BODY);
        let mut start = 0;
        loop {
            let decoded = self.carrier.reply_mut().body(body, start);
            if let Some(error) = decoded.error {
                return Err(checker.fail(format_args!("{error}")));
            }
            body.truncate(decoded.end);
            self.trailers = decoded.trailers.or(self.trailers.take());
            start = decoded.end;
            if self.carrier.reply().is_ended() {
                return Ok(true);
            }
            let left = self.check.body_max.unwrap_or(BODY_SKIPPED_MAX).saturating_sub(start);
            if left == 0 {
                return Ok(false);
            }
            if self.read(left, checker, body).await? == 0 && !self.carrier.reply().is_ended() {
                return match self.carrier.reply().ends_at_close() {
                    true => Ok(false),
                    false => Err(checker.fail(format_args!("{CLOSED}"))),
                };
            }
        }
    }

    /// Reads once; 0 is the end.
    async fn read(
        &mut self,
        most: usize,
        checker: &mut Checker,
        body: &mut Vec<u8>,
    ) -> Result<usize, CheckFailure> {
        if let CheckTimes::Steps(Timeouts { read_ms, .. }) = self.check.times {
            self.timer.set(read_ms);
        }
        let most = most.clamp(1, READ_SIZE);
        body.reserve(most);
        let read = poll_fn(|cx| match self.carrier.poll_read(cx, body, most) {
            Poll::Ready(read) => Poll::Ready(Some(read)),
            Poll::Pending => {
                ready!(self.timer.poll(cx));
                Poll::Ready(None)
            }
        });
        match read.await {
            Some(Ok(count)) => Ok(count),
            Some(Err(CarrierError::Call(call, error))) => {
                Err(checker.fail(format_args!("{call} failed{}", Errno(&error))))
            }
            Some(Err(CarrierError::Peer(message))) => Err(checker.fail(format_args!("{message}"))),
            // A check's body comes from memory, not from a client.
            Some(Err(_)) => Err(checker.fail(format_args!("{CLOSED}"))),
            None => {
                timed_out(checker);
                Err(checker.failure())
            }
        }
    }
}

const CLOSED: &str = "upstream prematurely closed connection";

/// How much of an unneeded body is read in order to keep the connection.
const BODY_SKIPPED_MAX: usize = 256 * 1024;

impl KeptConnection {
    /// Itself; `None` if the server has closed it or sent bytes without a request.
    fn if_usable(mut self) -> Option<Self> {
        let mut cx = Context::from_waker(Waker::noop());
        self.connection.stream.poll_disturbed(&mut cx).is_pending().then_some(self)
    }
}
