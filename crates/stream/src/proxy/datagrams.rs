//! `proxy_pass` over UDP: a client's datagrams go to a server, and the server's to the client.
//!
//! Every datagram is passed on at once and whole, or is lost: none is kept. Each side is called
//! when its datagrams arrive; the session's task waits for the end alone.
//!
//! ```text
//! client -> UdpPort -> ClientFlow -> DatagramRelay::datagram -> server
//! server -> DatagramSet -> DatagramRelay::readable -> ClientFlow -> client
//! ```

use std::cell::{Cell, OnceCell, RefCell};
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll};

use ::session::Session as _;
use ::session::backend::UpstreamAttempt;
use ::session::rate::{Allowance, Rate};
use ::upstream::{Lease, Until};
use net::{DatagramReader, ReceivedBatch, Timer, WatchedDatagram, clock};
use observe::{Errno, Level};

use super::connect::{BAD_GATEWAY, INTERNAL_SERVER_ERROR, ServerSearch, ServerSocket};
use super::plan::{ProxyPlan, SentHeader, rate};
use super::relay::level;
use crate::flow::{ClientFlow, DatagramSink};
use crate::session::StreamSession;

/// The status of a session that ended as it should.
const OK: u16 = 200;
/// Datagrams that a server's socket is asked for at once. The kernel looks for one more than there
/// are, so a few are enough.
const RECEIVED_AT_ONCE: usize = 4;
/// Datagrams of one server that go through before others get their turn.
const DATAGRAMS_PER_TURN: usize = 64;

/// Datagrams going both ways.
pub(crate) struct DatagramRelay {
    server: OnceCell<WatchedDatagram>,
    flow: Rc<ClientFlow>,
    /// How many datagrams of the client belong to the session; 0: any number.
    requests_max: u64,
    /// How many datagrams of the server follow one of the client; `None`: any number.
    responses: Option<u64>,
    timeout_ms: u64,
    timer: Timer,
    up: RefCell<DatagramPace>,
    down: RefCell<DatagramPace>,
    counts: RelayCounts,
    failed: RefCell<Option<RelayFailure>>,
    /// Whether datagrams of the server may be left unread.
    is_unread: Cell<bool>,
}

/// What has gone through.
#[derive(Default)]
struct RelayCounts {
    requests: Cell<u64>,
    responses: Cell<u64>,
    from_client: Cell<u64>,
    to_server: Cell<u64>,
    from_server: Cell<u64>,
    to_client: Cell<u64>,
    /// When the first datagram of the server came.
    answered_ms: Cell<Option<u64>>,
}

/// Why a relay is over before its time.
struct RelayFailure {
    action: &'static str,
    call: &'static str,
    error: io::Error,
}

/// How a relay ends.
enum DatagramEnd {
    /// Everything that was expected has come.
    Done,
    TimedOut,
    Failed(RelayFailure),
}

/// Tells variables and log lines what has gone through when the relay is over, or cut.
struct CountedSession<'a> {
    x: &'a mut StreamSession,
    relay: &'a DatagramRelay,
    attempt: &'a UpstreamAttempt,
}

/// How fast datagrams are taken from one side, where a rate is set.
struct DatagramPace {
    rate: Option<Rate>,
    not_before_ms: u64,
    timer: Option<Timer>,
}

/// Passes the session on until it is over. Returns its status.
pub(crate) async fn proxy_datagrams(
    plan: &ProxyPlan,
    x: &mut StreamSession,
    flow: &Rc<ClientFlow>,
) -> u16 {
    x.upstream.is_proxied = true;
    x.debug(format_args!("proxy connection handler"));
    let begun_s = clock::unix_ms() / 1000;
    let Ok(group) = plan.target.group(x, &plan.names).await else { return INTERNAL_SERVER_ERROR };
    x.upstream.limited = group.limit().map(|_| group.clone());
    let relay = Rc::new(DatagramRelay::new(plan, x, flow.clone(), begun_s));
    let reader: Rc<dyn DatagramReader> = relay.clone();
    let search = ServerSearch::new(plan, x, &group, None);
    let opened = search.connect_datagrams(x, flow.resources(), Rc::downgrade(&reader)).await;
    let ServerSocket { socket, lease, attempt } = match opened {
        Ok(opened) => opened,
        Err(status) => return status,
    };
    drop(reader);
    // It was empty until now.
    let _ = relay.server.set(socket);
    x.action = "proxying connection";
    relay.begin(plan, x);
    let counted = CountedSession { x, relay: &relay, attempt: &attempt };
    let end = poll_fn(|cx| relay.poll(cx)).await;
    drop(counted);
    finish(x, &relay, (lease, &attempt), end)
}

impl DatagramRelay {
    fn new(plan: &ProxyPlan, x: &mut StreamSession, flow: Rc<ClientFlow>, begun_s: u64) -> Self {
        let counts = RelayCounts::default();
        // The first datagram is counted with the session.
        counts.from_client.set(x.bytes_received);
        Self {
            server: OnceCell::new(),
            flow,
            requests_max: plan.datagrams.requests,
            responses: plan.datagrams.responses,
            timeout_ms: plan.timeout_ms,
            timer: Timer::new(),
            up: RefCell::new(DatagramPace::new(rate(&plan.upload_rate, x), begun_s)),
            down: RefCell::new(DatagramPace::new(rate(&plan.download_rate, x), begun_s)),
            counts,
            failed: RefCell::default(),
            is_unread: Cell::new(false),
        }
    }

    /// Sends what the client has sent so far, a PROXY header in front.
    fn begin(self: &Rc<Self>, plan: &ProxyPlan, x: &StreamSession) {
        self.timer.set(self.timeout_ms);
        let sink: Rc<dyn DatagramSink> = self.clone();
        let mut waiting = self.flow.attach(Rc::downgrade(&sink)).into_iter();
        if let Some(first) = waiting.next() {
            match plan.header {
                SentHeader::Off => self.to_server(&first),
                _ => {
                    // As in nginx, the header and the datagram are one.
                    let mut whole = Vec::new();
                    plan.write_header(x, &mut whole);
                    whole.extend_from_slice(&first);
                    self.to_server(&whole);
                }
            }
            self.client_sent_one();
        }
        waiting.for_each(|datagram| self.datagram(&datagram));
    }

    fn to_server(&self, payload: &[u8]) {
        let Some(server) = self.server.get() else { return };
        match server.send(payload) {
            Ok(()) => add(&self.counts.to_server, payload.len() as u64),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => self.fail("proxying and sending to upstream", "send()", error),
        }
    }

    fn client_sent_one(&self) {
        add(&self.counts.requests, 1);
        self.flow.took(self.counts.requests.get());
        self.wake_if_over();
    }

    fn to_client(&self, payload: &[u8]) {
        if self.counts.answered_ms.get().is_none() {
            self.counts.answered_ms.set(Some(clock::now_ms()));
        }
        add(&self.counts.responses, 1);
        add(&self.counts.from_server, payload.len() as u64);
        if self.flow.send(payload) {
            add(&self.counts.to_client, payload.len() as u64);
        }
    }

    /// Passes on what the server has sent, as far as the rate and this turn allow.
    fn read(&self, batch: &mut ReceivedBatch) {
        let Some(server) = self.server.get() else { return };
        let mut down = self.down.borrow_mut();
        let wanted = if down.rate.is_some() { 1 } else { RECEIVED_AT_ONCE };
        for _ in 0..DATAGRAMS_PER_TURN / RECEIVED_AT_ONCE {
            if !down.allows(self.counts.from_server.get()) {
                return self.flow.wake();
            }
            match server.receive(batch, wanted) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    self.is_unread.set(false);
                    if error.kind() != io::ErrorKind::WouldBlock {
                        self.fail("proxying and reading from upstream", "recv()", error);
                    }
                    return;
                }
            }
            let before = self.counts.from_server.get();
            batch.payloads().for_each(|payload| self.to_client(payload));
            let delay_ms = down.passed(before, self.counts.from_server.get());
            self.timer.set(self.timeout_ms.saturating_add(delay_ms));
            if wanted > 1 && batch.len() < wanted {
                return self.is_unread.set(false);
            }
        }
        // The task goes on after the others.
        self.flow.wake();
    }

    fn fail(&self, action: &'static str, call: &'static str, error: io::Error) {
        self.failed.borrow_mut().get_or_insert(RelayFailure { action, call, error });
        self.flow.wake();
    }

    /// Whether as many datagrams of the server have come as those of the client call for.
    fn has_responses(&self, responses: u64) -> bool {
        self.counts.responses.get() >= responses.saturating_mul(self.counts.requests.get())
    }

    fn is_done(&self) -> bool {
        let has_requests = self.counts.requests.get() >= self.requests_max;
        has_requests && self.responses.is_some_and(|responses| self.has_responses(responses))
    }

    fn wake_if_over(&self) {
        if self.is_done() {
            self.flow.wake();
        }
    }

    /// Ready once it is over.
    fn poll(&self, cx: &mut Context<'_>) -> Poll<DatagramEnd> {
        if self.is_unread.get() && self.down.borrow_mut().poll(cx).is_ready() {
            self.read(&mut self.flow.resources().batch.borrow_mut());
        }
        if let Some(failure) = self.failed.borrow_mut().take() {
            return Poll::Ready(DatagramEnd::Failed(failure));
        }
        if self.is_done() {
            return Poll::Ready(DatagramEnd::Done);
        }
        self.timer.poll(cx).map(|()| DatagramEnd::TimedOut)
    }
}

impl Drop for CountedSession<'_> {
    fn drop(&mut self) {
        let (counts, attempt) = (&self.relay.counts, self.attempt);
        self.x.bytes_received = counts.from_client.get();
        self.x.bytes_sent = counts.to_client.get();
        attempt.bytes_sent.set(counts.to_server.get());
        attempt.bytes_received.set(counts.from_server.get());
        let answered_ms = counts.answered_ms.get();
        attempt.header_ms.set(answered_ms.map(|ms| ms.saturating_sub(attempt.begun_ms)));
    }
}

impl DatagramSink for DatagramRelay {
    fn datagram(&self, payload: &[u8]) {
        let mut up = self.up.borrow_mut();
        // As in nginx, what comes faster than the rate allows is lost.
        if !up.allows(self.counts.from_client.get()) {
            return;
        }
        let before = self.counts.from_client.get();
        add(&self.counts.from_client, payload.len() as u64);
        let delay_ms = up.passed(before, self.counts.from_client.get());
        self.timer.set(self.timeout_ms.saturating_add(delay_ms));
        self.to_server(payload);
        self.client_sent_one();
    }
}

impl DatagramReader for DatagramRelay {
    fn readable(&self, batch: &mut ReceivedBatch) {
        self.is_unread.set(true);
        self.read(batch);
        self.wake_if_over();
    }
}

impl DatagramPace {
    fn new(per_second: u64, begun_s: u64) -> Self {
        let rate = (per_second > 0).then(|| Rate::new(per_second, 0, begun_s));
        Self { rate, not_before_ms: 0, timer: None }
    }

    /// Whether a datagram may be taken now, after so many bytes.
    fn allows(&mut self, passed: u64) -> bool {
        let Some(rate) = self.rate else { return true };
        if clock::now_ms() < self.not_before_ms {
            return false;
        }
        match rate.allowance(clock::unix_ms() / 1000, passed) {
            Allowance::NotBefore(delay_ms) => {
                self.delay(delay_ms);
                false
            }
            Allowance::Unlimited | Allowance::Bytes(_) => true,
        }
    }

    /// How long to wait after bytes were taken.
    fn passed(&mut self, before: u64, now: u64) -> u64 {
        let delay_ms = self.rate.map_or(0, |rate| rate.delay_ms(before, now));
        self.delay(delay_ms);
        delay_ms
    }

    fn delay(&mut self, delay_ms: u64) {
        if delay_ms > 0 {
            self.not_before_ms = clock::now_ms().saturating_add(delay_ms);
        }
    }

    /// Ready when the time has come.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let left_ms = self.not_before_ms.saturating_sub(clock::now_ms());
        if left_ms == 0 {
            return Poll::Ready(());
        }
        let timer = self.timer.get_or_insert_default();
        timer.set(left_ms);
        timer.poll(cx)
    }
}

fn add(count: &Cell<u64>, more: u64) {
    count.set(count.get() + more);
}

fn finish(
    x: &mut StreamSession,
    relay: &DatagramRelay,
    (mut lease, attempt): (Lease, &UpstreamAttempt),
    end: DatagramEnd,
) -> u16 {
    let enough = relay.responses.is_none_or(|responses| relay.has_responses(responses));
    let status = match end {
        DatagramEnd::Done => {
            tell_end(x, relay, "done");
            OK
        }
        DatagramEnd::TimedOut if enough => {
            tell_end(x, relay, "timed out");
            OK
        }
        DatagramEnd::TimedOut => {
            x.log(Level::Error, format_args!("upstream timed out{}", Errno(&net::timed_out())));
            BAD_GATEWAY
        }
        DatagramEnd::Failed(RelayFailure { action, call, error }) => {
            x.action = action;
            let level = level(&error, Level::Error);
            x.log(level, format_args!("{call} failed{}", Errno(&error)));
            BAD_GATEWAY
        }
    };
    match status {
        OK => lease.succeeded(clock::now_ms()),
        _ => {
            if let Some(event) = lease.failed(clock::now_ms()) {
                x.log(Level::Warn, format_args!("{event}"));
            }
        }
    }
    if let Some(first_byte_ms) = attempt.header_ms.get() {
        lease.reached(Until::FirstByte, first_byte_ms);
        lease.last_byte(attempt.age_ms());
    }
    attempt.end();
    status
}

/// As nginx, without the context of a session.
fn tell_end(x: &StreamSession, relay: &DatagramRelay, how: &str) {
    if !x.logs(Level::Info) {
        return;
    }
    let RelayCounts { requests, responses, from_client, to_client, from_server, to_server, .. } =
        &relay.counts;
    x.log_bare(format_args!(
        "udp {how}, packets from/to client:{}/{}, bytes from/to client:{}/{}, bytes from/to \
         upstream:{}/{}",
        requests.get(),
        responses.get(),
        from_client.get(),
        to_client.get(),
        from_server.get(),
        to_server.get(),
    ));
}
