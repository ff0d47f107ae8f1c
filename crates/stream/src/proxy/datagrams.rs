//! `proxy_pass` over UDP: relays datagrams between a client and a server.
//!
//! Every datagram is sent on immediately and whole, or is dropped; none is kept. Each side is
//! called when its datagrams arrive; the session's task only waits for the end.
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

/// The status of a session that ended normally.
const OK: u16 = 200;
/// The most datagrams to receive from a server's socket in one call. A few are enough, because the
/// kernel tries one more than there are.
const RECEIVED_AT_ONCE: usize = 4;
/// The most datagrams of a server to relay before others get their turn.
const DATAGRAMS_PER_TURN: usize = 64;

pub(crate) struct DatagramRelay {
    server: OnceCell<WatchedDatagram>,
    flow: Rc<ClientFlow>,
    /// The number of the client's datagrams in the session; 0: no limit.
    requests_max: u64,
    /// The number of the server's datagrams for each of the client's; `None`: no limit.
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

/// Counts of relayed datagrams and bytes.
#[derive(Default)]
struct RelayCounts {
    requests: Cell<u64>,
    responses: Cell<u64>,
    from_client: Cell<u64>,
    to_server: Cell<u64>,
    from_server: Cell<u64>,
    to_client: Cell<u64>,
    /// When the first datagram of the server was received.
    answered_ms: Cell<Option<u64>>,
}

struct RelayFailure {
    action: &'static str,
    call: &'static str,
    error: io::Error,
}

enum DatagramEnd {
    /// All expected datagrams were relayed.
    Done,
    TimedOut,
    Failed(RelayFailure),
}

/// Sets the counts of variables and log lines when the relay is over or cut.
struct CountedSession<'a> {
    x: &'a mut StreamSession,
    relay: &'a DatagramRelay,
    attempt: &'a UpstreamAttempt,
}

/// Limits the rate of datagrams from one side, if a rate is set.
struct DatagramPace {
    rate: Option<Rate>,
    not_before_ms: u64,
    timer: Option<Timer>,
}

/// Relays the session until it is over. Returns its status.
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
    // Set only here.
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
        // The first datagram was counted when the session began.
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

    /// Relays the datagrams that the client has sent so far, with a PROXY header before the first.
    fn begin(self: &Rc<Self>, plan: &ProxyPlan, x: &StreamSession) {
        self.timer.set(self.timeout_ms);
        let sink: Rc<dyn DatagramSink> = self.clone();
        let mut waiting = self.flow.attach(Rc::downgrade(&sink)).into_iter();
        if let Some(first) = waiting.next() {
            match plan.header {
                SentHeader::Off => self.to_server(&first),
                _ => {
                    // As in nginx, the header and the first datagram are sent as one.
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
        self.flow.note_received(self.counts.requests.get());
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

    /// Relays datagrams of the server, as far as the rate and this turn allow.
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
        // The task continues after others had their turn.
        self.flow.wake();
    }

    fn fail(&self, action: &'static str, call: &'static str, error: io::Error) {
        self.failed.borrow_mut().get_or_insert(RelayFailure { action, call, error });
        self.flow.wake();
    }

    /// Whether the server has sent `responses` datagrams for each of the client's.
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
        if let Some(answered_ms) = counts.answered_ms.get() {
            attempt.answered_after(answered_ms.saturating_sub(attempt.begun_ms));
        }
    }
}

impl DatagramSink for DatagramRelay {
    fn datagram(&self, payload: &[u8]) {
        let mut up = self.up.borrow_mut();
        // As in nginx, datagrams above the rate are dropped.
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

    /// Whether a datagram may be taken now, after `passed` bytes.
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

    /// The delay after bytes were taken.
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

    /// Ready when the delay is over.
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
            log_end(x, relay, "done");
            OK
        }
        DatagramEnd::TimedOut if enough => {
            log_end(x, relay, "timed out");
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

/// Logs the end. As in nginx, the line has no context.
fn log_end(x: &StreamSession, relay: &DatagramRelay, how: &str) {
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
