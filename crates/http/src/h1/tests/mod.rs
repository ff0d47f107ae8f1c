//! Tests of the driver over a socket pair: bytes from a client, and the replies.
//!
//! The server runs on a thread of its own, so the client may block. Its clock is stopped; tests
//! advance it.

mod bodies;
mod closing;
pub(crate) mod filters;
mod follow_up;
mod header_text;
mod heads;
mod keepalive;
mod logs;
mod replies;
mod waits;

use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use net::testing::{RelaySide, relay};
use net::{Arrival, LentFuture, Stream};
use zones::Zones;

use crate::exchange::{Exchange, Flow};
use crate::features::control_jobs;
use crate::site::{Generation, Site};
use crate::testing::{TestSite, handle, site_with, transport};
use crate::worker::Worker;

/// How long a test waits for expected bytes or events.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// The most times that a test advances the clock while it waits for an event.
const STEPS_MAX: usize = 500;

/// A worker that serves a site.
pub(crate) struct Server {
    orders: net::MailboxSender<Order>,
    /// Status and bytes sent of every finished exchange.
    logged: Receiver<(u16, u64)>,
    /// Declared after `orders`: the thread ends once `orders` is dropped.
    _thread: JoinedThread,
}

/// A thread that is joined on drop, so that its site's folder is removed before the test ends.
struct JoinedThread(Option<JoinHandle<()>>);

impl Drop for JoinedThread {
    fn drop(&mut self) {
        // A panic of the thread makes the test fail anyway.
        let _ = self.0.take().map(JoinHandle::join);
    }
}

enum Order {
    Serve(OwnedFd),
    /// Reports the number of parked connections.
    CountParked(Sender<usize>),
    /// Reports the most work of a task in one poll.
    LongestPoll(Sender<u64>),
    /// Reports the contents of the site's `e.log`.
    ReadLog(Sender<String>),
    Drain,
    SetDraining(bool),
    StartClock,
    /// Advances the clock by milliseconds.
    Advance(u64, Sender<()>),
    /// Serves the same site as a new generation.
    Reload,
    /// Ends exchanges of generations before this one.
    CutBefore(u64),
}

impl Server {
    pub(crate) fn start(http: impl Into<String>) -> Self {
        Self::with(http, |_| {}, |_| {})
    }

    /// A server whose compiled site is modified by `change`, and whose files are created first.
    pub(crate) fn with(
        http: impl Into<String>,
        change: impl FnOnce(&mut Site) + Send + 'static,
        files: impl FnOnce(&TestSite) + Send + 'static,
    ) -> Self {
        let (orders, mut mailbox) = net::mailbox();
        let (log, logged) = channel();
        let http = http.into();
        let thread = thread::spawn(move || {
            net::run(async {
                net::testing::stop_clock();
                let site = site_with(&http, |site| {
                    change(site);
                    log_all(site, log);
                    if let Some(transport) = transport(RelaySide::Server) {
                        for listen in &mut site.listens {
                            listen.transport.get_or_insert(transport.clone());
                        }
                    }
                });
                files(&site);
                let mut jobs = control_jobs();
                let zones = Zones::default();
                jobs.iter_mut().for_each(|job| job.adopt(site.generation.configuration(), &zones));
                let worker = Worker::new(site.generation.clone());
                let mut number = site.generation.number;
                let (balancer, _handed) = net::balancer_handles(1).remove(0).begin();
                while let Some(order) = mailbox.next().await {
                    match order {
                        Order::Serve(fd) => {
                            let arrival = Arrival { fd, peer: None, slot: 0 };
                            let permit = balancer.assign(arrival).ok().flatten();
                            worker.start(permit.expect("room for all"), false);
                        }
                        Order::CountParked(answer) => {
                            let _ = answer.send(worker.parked());
                        }
                        Order::LongestPoll(answer) => {
                            let _ = answer.send(net::testing::longest_poll());
                        }
                        Order::ReadLog(answer) => {
                            let _ = answer.send(site.log("e.log"));
                        }
                        Order::StartClock => net::testing::start_clock(),
                        Order::Advance(delay_ms, done) => {
                            if transport(RelaySide::Server).is_some() {
                                // `settle` does not wait for the threads of relays.
                                net::testing::pause_for_relays().await;
                            }
                            net::testing::advance(delay_ms).await;
                            let _ = done.send(());
                        }
                        Order::Reload => {
                            number += 1;
                            let site = site.generation.configuration().clone();
                            worker.replace(Generation::new(site, number));
                        }
                        Order::CutBefore(number) => worker.cut_before(number),
                        Order::SetDraining(is_draining) => worker.set_draining(is_draining),
                        Order::Drain => {
                            let worker = worker.clone();
                            net::spawn(async move { worker.leave().await });
                        }
                    }
                }
            })
            .unwrap();
        });
        Self { orders, logged, _thread: JoinedThread(Some(thread)) }
    }

    pub(crate) fn connect(&self) -> Client {
        let (near, far) = UnixStream::pair().unwrap();
        far.set_nonblocking(true).unwrap();
        near.set_read_timeout(Some(PATIENCE)).unwrap();
        near.set_write_timeout(Some(PATIENCE)).unwrap();
        self.orders.send(Order::Serve(secured(far.into(), RelaySide::Client, unix_pair)));
        Client(near)
    }

    pub(crate) fn connect_plain(&self) -> Client {
        let (near, far) = UnixStream::pair().unwrap();
        far.set_nonblocking(true).unwrap();
        near.set_read_timeout(Some(PATIENCE)).unwrap();
        self.orders.send(Order::Serve(far.into()));
        Client(near)
    }

    /// A connection that uses TLS after this text.
    pub(crate) fn connect_secured_after(&self, text: &str) -> Client {
        let mut before = self.connect_plain();
        before.send(text);
        before.0.set_nonblocking(true).unwrap();
        let [near, far] = unix_pair();
        relay(far, before.0.into(), RelaySide::Client);
        let near = UnixStream::from(near);
        near.set_nonblocking(false).unwrap();
        near.set_read_timeout(Some(PATIENCE)).unwrap();
        Client(near)
    }

    /// A connection over TCP, where the client notices resets.
    pub(crate) fn connect_tcp(&self) -> Client {
        let [near, far] = tcp_pair();
        self.orders.send(Order::Serve(secured(far, RelaySide::Client, tcp_pair)));
        // Reading, writing and timeouts work on a socket of any family.
        let client = UnixStream::from(near);
        client.set_nonblocking(false).unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        client.set_write_timeout(Some(PATIENCE)).unwrap();
        Client(client)
    }

    /// Sends a request on a new connection and reads until it is closed.
    pub(crate) fn ask(&self, request: &str) -> String {
        let mut client = self.connect();
        client.send(request);
        client.rest()
    }

    /// Makes the worker leave: idle connections end, active requests continue.
    pub(crate) fn drain(&self) {
        self.orders.send(Order::Drain);
    }

    /// Has the worker send clients elsewhere, while it serves them as before, or stop that.
    pub(crate) fn set_draining(&self, is_draining: bool) {
        self.orders.send(Order::SetDraining(is_draining));
    }

    /// Advances the server's clock, after everything received before was handled.
    pub(crate) fn advance(&self, delay_ms: u64) {
        let (done, answer) = channel();
        self.orders.send(Order::Advance(delay_ms, done));
        answer.recv_timeout(PATIENCE).unwrap();
    }

    /// Lets the server's clock run, for tests that depend on other threads.
    pub(crate) fn start_clock(&self) {
        self.orders.send(Order::StartClock);
    }

    /// Advances the clock until the next exchange is over. Returns the number of steps, and the
    /// logged exchange.
    pub(crate) fn steps_until_logged(&self, step_ms: u64) -> (usize, (u16, u64)) {
        let step = |_| {
            self.advance(step_ms);
            self.logged.recv_timeout(Duration::from_millis(10)).ok()
        };
        let logged = (1..=STEPS_MAX).find_map(|count| Some((count, step(count)?)));
        logged.expect("it is over some time")
    }

    /// Serves the same site as a new generation.
    pub(crate) fn reload(&self) {
        self.orders.send(Order::Reload);
    }

    /// Ends all exchanges.
    pub(crate) fn cut(&self) {
        self.cut_before(u64::MAX);
    }

    /// Ends exchanges of generations before this one.
    pub(crate) fn cut_before(&self, generation: u64) {
        self.orders.send(Order::CutBefore(generation));
    }

    pub(crate) fn parked(&self) -> usize {
        let (sender, answer) = channel();
        self.orders.send(Order::CountParked(sender));
        answer.recv_timeout(PATIENCE).unwrap()
    }

    /// The most work that a task of the worker has done in one poll, in bytes.
    pub(crate) fn longest_poll(&self) -> u64 {
        let (sender, answer) = channel();
        self.orders.send(Order::LongestPoll(sender));
        answer.recv_timeout(PATIENCE).unwrap()
    }

    /// The lines of `e.log`, from the level on.
    pub(crate) fn lines(&self) -> Vec<String> {
        let from_level = |line: &str| {
            let (start, message) = line.split_once(": ").expect("every line has a beginning");
            let level = start.split(' ').find(|word| word.starts_with('[')).expect("a level");
            format!("{level} {message}")
        };
        self.log_text().lines().map(from_level).collect()
    }

    /// The text of `e.log`.
    pub(crate) fn log_text(&self) -> String {
        let (answer, log) = channel();
        self.orders.send(Order::ReadLog(answer));
        log.recv_timeout(PATIENCE).unwrap()
    }

    /// The lines of `e.log`, from behind the connection's number.
    pub(crate) fn log(&self) -> Vec<String> {
        let log = self.log_text();
        let message = |line: &str| {
            let (_, line) = line.split_once('*').expect("every line is a connection's");
            line.split_once(' ').expect("and says something").1.to_owned()
        };
        log.lines().map(message).collect()
    }

    /// Waits for the end of the next exchange.
    pub(crate) fn logged(&self) -> (u16, u64) {
        self.logged.recv_timeout(PATIENCE).unwrap()
    }
}

/// If the suite runs over TLS, adds a session to a socket and returns the other end; `side` is the
/// socket's. Otherwise returns the socket itself.
pub(crate) fn secured(socket: OwnedFd, side: RelaySide, pair: fn() -> [OwnedFd; 2]) -> OwnedFd {
    if transport(side).is_none() {
        return socket;
    }
    let [near, far] = pair();
    relay(socket, near, side);
    far
}

/// Two ends of a non-blocking TCP connection.
pub(crate) fn tcp_pair() -> [OwnedFd; 2] {
    let (near, far) = ::testing::connected_pair();
    [near, far].map(|end| {
        end.set_nonblocking(true).unwrap();
        end.into()
    })
}

fn unix_pair() -> [OwnedFd; 2] {
    let (near, far) = UnixStream::pair().unwrap();
    [near, far].map(|end| {
        end.set_nonblocking(true).unwrap();
        end.into()
    })
}

fn log_all(site: &mut Site, log: Sender<(u16, u64)>) {
    for location in &mut site.locations {
        let log = std::sync::Mutex::new(log.clone());
        let logger = move |x: &mut Exchange| {
            // Fails if the test has ended, which does not matter.
            let _ = log.lock().unwrap().send((x.status(), x.reply.bytes_sent));
        };
        let mut loggers: Vec<_> = std::mem::take(&mut location.loggers).into();
        loggers.push(Box::new(logger));
        location.loggers = loggers.into();
    }
}

/// A handler's wait for an asynchronous function.
fn wait(future: impl for<'x> FnOnce(&'x mut Exchange) -> LentFuture<'x, Flow> + 'static) -> Flow {
    Flow::wait(future)
}

/// A client's end of a connection.
pub(crate) struct Client(pub(crate) UnixStream);

impl Client {
    pub(crate) fn into_socket(self) -> UnixStream {
        self.0
    }

    pub(crate) fn send(&mut self, text: impl AsRef<[u8]>) {
        self.0.write_all(text.as_ref()).unwrap();
    }

    /// Sends the head of a request whose lines are given with line feeds.
    pub(crate) fn head(&mut self, lines: &str) {
        self.send(format!("{}\r\n", lines.replace('\n', "\r\n")));
    }

    /// A second handle of the same client, to send while the other reads.
    pub(crate) fn twin(&self) -> Self {
        Self(self.0.try_clone().unwrap())
    }

    /// Shuts down sending.
    pub(crate) fn end(&self) {
        self.0.shutdown(std::net::Shutdown::Write).unwrap();
    }

    /// Fails unless exactly this text is received next; dates are masked.
    pub(crate) fn expect(&mut self, expected: &str) {
        let length = expected.len() + expected.matches(DATE).count() * (29 - DATE.len());
        let mut got = vec![0; length];
        let mut read = 0;
        while read < length {
            match self.0.read(&mut got[read..]) {
                Ok(count @ 1..) => read += count,
                end => {
                    let (got, expected) = (shown(&mask(&got[..read])), shown(expected));
                    panic!("{end:?} after {got}\ninstead of {expected}");
                }
            }
        }
        let got = mask(&got);
        assert!(got == expected, "{}\ninstead of {}", shown(&got), shown(expected));
    }

    /// Fails unless exactly these bytes are received next.
    pub(crate) fn expect_raw(&mut self, expected: &str) {
        let mut got = vec![0; expected.len()];
        self.0.read_exact(&mut got).unwrap();
        assert_eq!(String::from_utf8_lossy(&got), expected);
    }

    /// Reads until a reply with this ending was received.
    pub(crate) fn expect_reply_ending(&mut self, ending: &str) {
        let mut got = Vec::new();
        while !got.ends_with(ending.as_bytes()) {
            let mut byte = [0];
            self.0.read_exact(&mut byte).unwrap();
            got.push(byte[0]);
        }
    }

    /// Sends as much as the server accepts; ignores errors.
    pub(crate) fn send_if_wanted(&mut self, text: impl AsRef<[u8]>) {
        let _ = self.0.write_all(text.as_ref());
    }

    /// Reads until the server closes the connection; dates are masked.
    pub(crate) fn rest(&mut self) -> String {
        let mut got = Vec::new();
        self.0.read_to_end(&mut got).unwrap_or_else(|error| panic!("{error} after {}", mask(&got)));
        mask(&got)
    }

    /// Waits until something is received.
    pub(crate) fn expect_some(&mut self) {
        assert!(self.0.read(&mut [0]).unwrap() > 0);
    }

    pub(crate) fn expect_end(&mut self) {
        assert_eq!(self.rest(), "");
    }

    /// Fails if anything is received within a moment.
    pub(crate) fn expect_nothing(&mut self) {
        self.0.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let mut byte = [0];
        let error = self.0.read(&mut byte).expect_err("nothing was to come");
        assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
        self.0.set_read_timeout(Some(PATIENCE)).unwrap();
    }
}

/// The beginning and the end of a text, and its length.
fn shown(text: &str) -> String {
    match (text.get(..600), text.get(text.len().saturating_sub(200)..)) {
        (Some(start), Some(end)) => format!("{start:?} ... {end:?} ({} bytes)", text.len()),
        _ => format!("{text:?}"),
    }
}

/// Replaces the value of `Date`.
const DATE: &str = "(date)";

fn mask(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let mut masked = String::new();
    let mut parts = text.split("\r\nDate: ");
    masked.push_str(parts.next().unwrap_or_default());
    for part in parts {
        masked.push_str("\r\nDate: ");
        masked.push_str(DATE);
        masked.push_str(part.get(29..).unwrap_or_default());
    }
    masked
}

/// A reply as it is sent, given its fields after `Date`, each ended by a line feed, and its body.
pub(crate) fn reply(status: &str, fields: &str, body: &str) -> String {
    let server = crate::identity::token();
    let fields = fields.replace('\n', "\r\n");
    format!("HTTP/1.1 {status}\r\nServer: {server}\r\nDate: {DATE}\r\n{fields}\r\n{body}")
}

/// A reply with a text and its length.
pub(crate) fn text(status: &str, connection: &str, body: &str) -> String {
    let length = body.len();
    let fields =
        format!("Content-Type: text/plain\nContent-Length: {length}\nConnection: {connection}\n");
    reply(status, &fields, body)
}

/// The built-in page of a status, on a connection that is closed.
fn page(status: &str) -> String {
    page_of(status, status, "")
}

/// nginx's page for a head that is too large.
fn too_large_page() -> String {
    let detail = "Request Header Or Cookie Too Large";
    let line = format!("<center>{detail}</center>\r\n");
    page_of("400 Bad Request", &format!("400 {detail}"), &line)
}

fn page_of(status: &str, title: &str, detail: &str) -> String {
    let server = crate::identity::token();
    let body = format!(
        "<html>\r\n<head><title>{title}</title></head>\r\n<body>\r\n\
         <center><h1>{status}</h1></center>\r\n{detail}<hr><center>{server}</center>\r\n\
         </body>\r\n</html>\r\n"
    );
    let length = body.len();
    let fields = format!("Content-Type: text/html\nContent-Length: {length}\nConnection: close\n");
    reply(status, &fields, &body)
}
