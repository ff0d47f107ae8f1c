//! The task of a connection: the PROXY header, nginx's phases in their order, content, and the log.
//!
//! ```text
//! accepted -> PROXY header -> postaccept (realip) -> preaccess (set, limit_conn)
//!   -> access (allow, deny) -> handshake of TLS -> preread (ssl_preread) -> content
//!   -> log -> closed
//!   -> passed on (pass)
//! ```
//!
//! A session that is cut is logged as well, because dropping it logs it.

use std::future::poll_fn;
use std::io;
use std::ops::{Deref, DerefMut};
use std::rc::{Rc, Weak};
use std::task::{Poll, ready};

use ::session::{Client, Hook, PassTargets, PassedConnection, Session as _};
use conf::FeatureName;
use metrics::OpenConnection;
use net::accept::{self, ProxyRefusal, TLS_PASSED_TO_SSL};
use net::{Address, ConnectionPermit, Stream, Timer};
use observe::{Errno, Level};
use wire::proxy_protocol::HeaderError;

use crate::preread::{PrereadEnded, preread};
use crate::secure::{self, HandshakeFailed};
use crate::session::StreamSession;
use crate::site::{Decision, PhaseHandler, StreamGeneration, StreamServerId};

/// Held while a connection is open.
pub(crate) struct HeldConnection {
    pub(crate) open: OpenConnection,
    pub(crate) permit: ConnectionPermit,
}

/// A session that is logged when it is dropped.
pub(crate) struct SessionLogGuard(StreamSession);

/// The status of a session that ended before content.
pub(crate) struct FinishedSession(pub(crate) u16);

/// nginx's `NGX_STREAM_OK`.
pub(crate) const OK: u16 = 200;
const BAD_REQUEST: u16 = 400;
const INTERNAL_SERVER_ERROR: u16 = 500;

/// Serves a connection until it is closed or passed to another listening socket. `received` was
/// read from it before.
///
/// The future is most of the memory of an idle session. It is not an `async fn`, because arguments
/// that are used after an await would be stored twice; futures that only some sessions need are
/// boxed.
pub(crate) fn serve(
    generation: Rc<StreamGeneration>,
    server: StreamServerId,
    client: Rc<Client>,
    mut stream: Stream,
    received: Vec<u8>,
    held: HeldConnection,
    targets: Weak<dyn PassTargets>,
) -> impl Future<Output = ()> {
    let mut x = SessionLogGuard::new(StreamSession::new(generation, server, client));
    x.preread = received;
    async move {
        log_connected(&x);
        x.status = match run(&mut x, &mut stream).await {
            Ok(status) | Err(FinishedSession(status)) => status,
        };
        if x.passed_to.is_some() {
            return pass_on(x, stream, held, targets.upgrade());
        }
        drop(x);
        stream.close_session();
        drop((stream, held));
    }
}

/// Passes the connection to another listening socket. The session is logged only if there is none.
fn pass_on(
    mut x: SessionLogGuard,
    mut stream: Stream,
    held: HeldConnection,
    targets: Option<Rc<dyn PassTargets>>,
) {
    let Some(to) = x.passed_to.as_deref() else { return };
    let found = targets.and_then(|targets| Some((targets.slot_at(to)?, targets)));
    let Some((slot, targets)) = found else {
        x.log(Level::Error, format_args!("port not found for \"{to}\""));
        x.passed_to = None;
        drop(x);
        return stream.close_session();
    };
    let local = match to {
        Address::Ip(local) | Address::Udp(local) => Some(*local),
        Address::Unix(_) => None,
    };
    let client = x.client.passed_on(slot, local);
    let received = std::mem::take(&mut x.preread);
    let HeldConnection { open, permit } = held;
    targets.take_over(PassedConnection { client, stream, received, open, permit });
}

/// Runs the phases.
async fn run(x: &mut StreamSession, stream: &mut Stream) -> Result<u16, FinishedSession> {
    let generation = x.generation.clone();
    let mut received = std::mem::take(&mut x.preread);
    if generation.listen(x.client.listen).is_some_and(|listen| listen.proxy_protocol) {
        received = Box::pin(read_proxy_header(x, stream, received)).await?;
    }
    let server = generation.server(x.server);
    phase("postaccept", &server.postaccept, x)?;
    phase("preaccess", &server.preaccess, x)?;
    phase("access", &server.access, x)?;
    if server.tcp_nodelay {
        stream.set_nodelay();
    }
    if generation.listen(x.client.listen).is_some_and(|listen| listen.ssl) {
        if x.client.is_secure.get() {
            x.log(Level::Error, format_args!("{TLS_PASSED_TO_SSL}"));
            return Err(FinishedSession(INTERNAL_SERVER_ERROR));
        }
        let secured = Box::pin(secure::handshake(x, stream, received)).await;
        x.begin_to_count();
        if let Some(counted) = &x.counted {
            let fault = secured.as_ref().err().map(|HandshakeFailed(fault)| *fault);
            counted.handshake(&x.client, fault);
        }
        secured.map_err(|_| FinishedSession(INTERNAL_SERVER_ERROR))?;
    } else {
        x.bytes_received = received.len() as u64;
        x.preread = received;
    }
    if x.server().preread.is_on {
        let read = Box::pin(preread(x, stream)).await;
        read.map_err(|PrereadEnded(status)| FinishedSession(status))?;
    }
    x.begin_to_count();
    match &generation.server(x.server).content {
        Some(content) => {
            log_content(x, content.feature);
            Ok(content(x, stream).await)
        }
        None => Err(FinishedSession(INTERNAL_SERVER_ERROR)),
    }
}

/// Runs the handlers of a phase. The debug log names the one that decides.
pub(crate) fn phase(
    name: &str,
    handlers: &[Hook<PhaseHandler>],
    x: &mut StreamSession,
) -> Result<(), FinishedSession> {
    for handler in handlers {
        let feature = handler.feature;
        match handler(x) {
            Decision::Next => {}
            Decision::Skip => {
                x.debug(format_args!("{name} phase: \"{feature}\" grants access"));
                break;
            }
            Decision::Finish(status) => {
                x.debug(format_args!("{name} phase: \"{feature}\" refuses with {status}"));
                return Err(FinishedSession(status));
            }
        }
    }
    Ok(())
}

/// Logs the feature that serves the session, for debugging configurations.
pub(crate) fn log_content(x: &StreamSession, feature: FeatureName) {
    x.debug(format_args!("content phase: \"{feature}\" serves the session"));
}

/// Reads the PROXY header, and stores it with the client. Returns the bytes that follow it, for the
/// handshake or the content handler.
async fn read_proxy_header(
    x: &mut StreamSession,
    stream: &mut Stream,
    mut received: Vec<u8>,
) -> Result<Vec<u8>, FinishedSession> {
    x.action = "reading PROXY protocol";
    let timer = Timer::new();
    timer.set(x.server().proxy_protocol_timeout_ms);
    let header = accept::read_proxy_header(stream, &mut received, &timer).await;
    let header = header.map_err(|refusal| refuse(x, refusal, &received));
    if let Some(header) = header? {
        // The client is new, so it has no header yet.
        let _ = x.client.proxy_protocol.set(Rc::new(header));
    }
    x.action = "initializing session";
    Ok(received)
}

/// Logs why there is no header. As in nginx, an incomplete one is a broken one.
fn refuse(x: &StreamSession, refusal: ProxyRefusal, received: &[u8]) -> FinishedSession {
    let (what, error) = match refusal {
        ProxyRefusal::Header(error) => return broken_header(x, error, received),
        ProxyRefusal::Closed => return broken_header(x, HeaderError::Broken, received),
        ProxyRefusal::TimedOut => ("client timed out", net::timed_out()),
        ProxyRefusal::Connection(error) => ("recv() failed", error),
    };
    x.log(Level::Info, format_args!("{what}{}", Errno(&error)));
    FinishedSession(OK)
}

fn broken_header(x: &StreamSession, error: HeaderError, received: &[u8]) -> FinishedSession {
    let mut message = Vec::new();
    error.write_message(received, &mut message);
    x.log(Level::Error, format_args!("{}", observe::Text(&message)));
    FinishedSession(BAD_REQUEST)
}

/// The timeout of a client that reads nothing of a text.
const SEND_TIMEOUT_MS: u64 = 5000;

/// Sends a text. Returns the status of the session.
pub(crate) async fn send(text: &[u8], x: &mut StreamSession, stream: &mut Stream) -> u16 {
    let timer = Timer::new();
    let mut left = text;
    while !left.is_empty() {
        timer.set(SEND_TIMEOUT_MS);
        let written = poll_fn(|cx| match stream.poll_write(cx, &[io::IoSlice::new(left)]) {
            Poll::Pending => {
                ready!(timer.poll(cx));
                Poll::Ready(Err(net::timed_out()))
            }
            ready => ready,
        });
        match written.await {
            Ok(count) => {
                x.bytes_sent += count as u64;
                left = &left[count..];
            }
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                x.log(Level::Info, format_args!("connection timed out{}", Errno(&error)));
                return OK;
            }
            Err(error) => {
                x.log(Level::Info, format_args!("send() failed{}", Errno(&error)));
                return INTERNAL_SERVER_ERROR;
            }
        }
    }
    OK
}

pub(crate) fn log_connected(x: &StreamSession) {
    let Some(listen) = x.generation.listen(x.client.listen) else { return };
    let (log, address) = (&x.server().error_log, &listen.address);
    let source = x.source();
    let how = if x.client.is_udp { "udp " } else { "" };
    match x.client.peer {
        Some(peer) => {
            let message = format_args!("{how}client {peer} connected to {address}");
            log.write(Level::Info, source, message, |_| {});
        }
        None => {
            let message = format_args!("client unix: connected to {address}");
            log.write(Level::Info, source, message, |_| {});
        }
    }
}

impl SessionLogGuard {
    pub(crate) fn new(x: StreamSession) -> Self {
        Self(x)
    }
}

impl Deref for SessionLogGuard {
    type Target = StreamSession;
    fn deref(&self) -> &StreamSession {
        &self.0
    }
}

impl DerefMut for SessionLogGuard {
    fn deref_mut(&mut self) -> &mut StreamSession {
        &mut self.0
    }
}

impl Drop for SessionLogGuard {
    fn drop(&mut self) {
        if self.passed_to.is_some() {
            return;
        }
        let generation = self.generation.clone();
        generation.server(self.server).loggers.iter().for_each(|logger| logger(&mut self.0));
        // A client that sees the connection end may look for its line in the log.
        observe::end_turn();
    }
}
