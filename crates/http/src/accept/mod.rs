//! From an accepted connection to the driver of its protocol: the PROXY protocol's header comes
//! first, then the handshake of the transport, then a driver is picked.
//!
//! All of it counts into the time for the first head. A connection without a header and without a
//! transport goes to its driver at once, with nothing read.

mod parked;
#[cfg(test)]
mod tests;

use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use ::tls::{OcspChecks, ServerTlsSetup};
use net::accept::{self, ProxyRefusal, TLS_PASSED_TO_SSL, Transport};
use net::tls::{self, Credential, HandshakeFault, RefusedHandshake, TlsDetails};
use net::{SecureSession, Stream, Timer, buffers, clock};
use observe::{Errno, Level};
use wire::client_hello::ClientHello;
use wire::host::Host;
use wire::http2::PREFACE;

use crate::client::Client;
use crate::drive::{Preread, WorkerContext};
use crate::exchange::Captures;
use crate::features::status_zone::{self, HandshakeResult};
use crate::h1::{self, ConnectionState};
use crate::h2::{self, ParkableHttp2};
use crate::site::{Listen, Protocols, Server, ServerId};

pub(crate) use parked::{ParkedConnection, UnusedConnection, resume};

/// Serves a new connection until it is over, or idle. `received` has been read of it already.
pub(crate) async fn serve(
    context: Rc<WorkerContext>,
    client: Rc<Client>,
    stream: Stream,
    received: Vec<u8>,
    held: ConnectionState,
) -> Option<UnusedConnection> {
    let (stream, preread) = match Opening::of(&context, &client) {
        None => (stream, Preread { bytes: received, left_ms: None }),
        // Boxed: a connection that is served later needs no memory for what came before.
        Some(opening) => Box::pin(opening.run(stream, received)).await?,
    };
    let (stream, preread) = match Http2Sign::of(&context, &client) {
        None => (stream, preread),
        // Boxed: other connections need no room for it.
        Some(sign) => {
            let (context, client) = (context.clone(), client.clone());
            match Box::pin(serve_http2(context, client, stream, preread, sign)).await {
                Http2Outcome::Http1(stream, preread) => (stream, preread),
                Http2Outcome::Over => return None,
                Http2Outcome::Unused(unused) => return Some(UnusedConnection::http2(unused, held)),
            }
        }
    };
    h1::serve(context, client, stream, held, preread).await.map(UnusedConnection::http1)
}

/// What came of a connection that might be one of HTTP/2.
enum Http2Outcome {
    /// It does not speak HTTP/2.
    Http1(Stream, Preread),
    Over,
    Unused(ParkableHttp2),
}

/// How a connection shows that it speaks HTTP/2.
enum Http2Sign {
    /// Its session has agreed on it.
    Agreed,
    /// It may begin with the preface, for which there is so much time.
    Preface { timeout_ms: u64 },
}

impl Http2Sign {
    /// `None`: it is one of HTTP/1.
    fn of(context: &WorkerContext, client: &Client) -> Option<Self> {
        if let Some(tls) = client.tls.get() {
            return tls.has_protocol(tls::H2).then_some(Self::Agreed);
        }
        let generation = context.generation();
        let listen = generation.listen(client.listen)?;
        let server = generation.server(listen.names.default);
        let is_plain = !client.is_secure.get() && !listen.protocols.has(Protocols::SSL);
        let timeout_ms = server.reading.client_header_timeout_ms;
        (is_plain && offers_h2(listen, server)).then_some(Self::Preface { timeout_ms })
    }
}

/// Serves a connection if it is one of HTTP/2.
async fn serve_http2(
    context: Rc<WorkerContext>,
    client: Rc<Client>,
    mut stream: Stream,
    mut preread: Preread,
    sign: Http2Sign,
) -> Http2Outcome {
    if let Http2Sign::Preface { timeout_ms } = sign
        && !begins_http2(&context, &mut stream, &mut preread, timeout_ms).await
    {
        return Http2Outcome::Http1(stream, preread);
    }
    let unused = h2::serve(context, client, stream, preread).await;
    unused.map_or(Http2Outcome::Over, Http2Outcome::Unused)
}

/// Whether the first bytes are HTTP/2's preface. They stay in `preread`, whatever they are, and
/// where they do not come, that is left for the driver to find.
async fn begins_http2(
    context: &WorkerContext,
    stream: &mut Stream,
    preread: &mut Preread,
    timeout_ms: u64,
) -> bool {
    let timeout_ms = preread.left_ms.unwrap_or(timeout_ms);
    let _waiting = context.counts.wait();
    let (timer, began_ms) = (Timer::new(), clock::now_ms());
    timer.set(timeout_ms);
    loop {
        let bytes = &preread.bytes;
        let count = bytes.len().min(PREFACE.len());
        if bytes[..count] != PREFACE[..count] || count == PREFACE.len() {
            break;
        }
        let read = poll_fn(|cx| match stream.poll_read(cx, &mut preread.bytes) {
            Poll::Ready(read) => Poll::Ready(read.ok()),
            Poll::Pending => timer.poll(cx).map(|()| None),
        });
        if read.await.is_none_or(|count| count == 0) {
            break;
        }
    }
    let spent_ms = clock::now_ms() - began_ms;
    preread.left_ms = Some(timeout_ms.saturating_sub(spent_ms));
    preread.bytes.starts_with(PREFACE)
}

/// A step, as log lines name it.
#[derive(Clone, Copy)]
struct AcceptStep {
    call: &'static str,
    doing: &'static str,
    closed: &'static str,
}

const HEADER: AcceptStep = AcceptStep {
    call: "recv()",
    doing: "reading PROXY protocol",
    closed: "client closed connection",
};
const HANDSHAKE: AcceptStep = AcceptStep {
    call: "SSL_do_handshake()",
    doing: "SSL handshaking",
    closed: "peer closed connection in SSL handshake",
};

const STATUS_REQUEST: AcceptStep =
    AcceptStep { doing: "requesting certificate status", ..HANDSHAKE };

/// What a connection goes through before its protocol.
struct Opening {
    context: Rc<WorkerContext>,
    client: Rc<Client>,
    has_header: bool,
    has_tls: bool,
    transport: Option<Arc<dyn Transport>>,
    timeout_ms: u64,
}

/// A session, and what to ask about the client's certificate after its handshake.
type CheckedSession = (Box<dyn SecureSession>, Option<Arc<OcspChecks>>);

/// The connection is over, which has been logged; what is to be counted if it was in a handshake.
struct ConnectionOver(HandshakeFault);

impl Opening {
    /// What the listening socket asks for; `None`: nothing.
    fn of(context: &Rc<WorkerContext>, client: &Rc<Client>) -> Option<Self> {
        let generation = context.generation();
        let listen = generation.listen(client.listen)?;
        let has_header = listen.protocols.has(Protocols::PROXY_PROTOCOL);
        let has_tls = listen.protocols.has(Protocols::SSL);
        if !has_header && !has_tls && listen.transport.is_none() {
            return None;
        }
        let server = generation.server(listen.names.default);
        Some(Self {
            context: context.clone(),
            client: client.clone(),
            has_header,
            has_tls,
            transport: listen.transport.clone(),
            timeout_ms: server.reading.client_header_timeout_ms,
        })
    }

    /// The stream, and what has been read besides. `None`: the connection is over, which has been
    /// logged.
    async fn run(self, mut stream: Stream, mut bytes: Vec<u8>) -> Option<(Stream, Preread)> {
        let _waiting = self.context.counts.wait();
        let (timer, began_ms) = (Timer::new(), clock::now_ms());
        timer.set(self.timeout_ms);
        if self.has_tls && self.client.is_secure.get() {
            self.log(Level::Error, format_args!("{TLS_PASSED_TO_SSL}"), HANDSHAKE);
            return None;
        }
        if self.has_header {
            match accept::read_proxy_header(&mut stream, &mut bytes, &timer).await {
                Ok(None) => {}
                Ok(Some(header)) => self.client.proxy_protocol.set(Rc::new(header)).ok()?,
                Err(refusal) => {
                    self.log_refusal(refusal, bytes, HEADER);
                    return None;
                }
            }
        }
        if self.has_tls {
            let secured_from_ms = clock::now_ms();
            self.secure(&mut stream, &mut bytes, &timer).await.ok()?;
            if self.client.is_secure.get() {
                let took_ms = clock::now_ms() - secured_from_ms;
                self.client.handshake_ms.set(u32::try_from(took_ms).unwrap_or(u32::MAX));
            }
        } else if let Some(transport) = &self.transport {
            let session = transport.session(&std::mem::take(&mut bytes)).ok()?;
            self.agree(&mut stream, session, &timer).await.ok()?;
        }
        if bytes.is_empty() {
            buffers::give_back(std::mem::take(&mut bytes));
        }
        let spent_ms = clock::now_ms() - began_ms;
        let left_ms = Some(self.timeout_ms.saturating_sub(spent_ms));
        Some((stream, Preread { bytes, left_ms }))
    }

    /// Encrypts the connection, unless the client speaks plain HTTP, which the driver tells it.
    async fn secure(
        &self,
        stream: &mut Stream,
        bytes: &mut Vec<u8>,
        timer: &Timer,
    ) -> Result<(), ConnectionOver> {
        let hello = match accept::read_client_hello(stream, bytes, timer).await {
            Ok(Some(hello)) => hello,
            Ok(None) => {
                self.client.is_plain_by_mistake.set(true);
                return Ok(());
            }
            Err(refusal) => {
                return Err(self.log_refusal(refusal, std::mem::take(bytes), HANDSHAKE));
            }
        };
        if ::acme::answer_handshake(stream, &hello, bytes, timer).await {
            return Err(ConnectionOver(HandshakeFault::Closed));
        }
        let named = self.named(&hello);
        let secured = async {
            let (session, ocsp_checks) = self.session(&hello, bytes, stream, timer).await?;
            buffers::give_back(std::mem::take(bytes));
            self.agree(stream, session, timer).await.map(|()| ocsp_checks)
        };
        let secured = secured.await;
        if let Some(server) = named {
            self.count_handshake(server, secured.as_ref().err().map(|over| over.0));
        }
        let ocsp_checks = secured?;
        match ocsp_checks {
            None => Ok(()),
            Some(checks) => self.check_by_ocsp(&checks, timer).await,
        }
    }

    /// The server whose zone counts the handshake, if it has one.
    fn named(&self, hello: &[u8]) -> Option<ServerId> {
        let generation = self.context.generation();
        let listen = generation.listen(self.client.listen)?;
        let server = named_server(listen, ClientHello::parse(hello).as_ref());
        status_zone::counts_handshakes(&generation, server).then_some(server)
    }

    /// Counts a handshake in the zone of its server.
    fn count_handshake(&self, server: ServerId, fault: Option<HandshakeFault>) {
        let result = match (fault, self.client.tls.get()) {
            (None, Some(tls)) if tls.is_resumed => HandshakeResult::Resumed,
            (None, _) => HandshakeResult::New,
            (Some(fault), _) => HandshakeResult::Failed(fault),
        };
        if let Some(mut x) = self.context.lend(&self.client) {
            x.server = server;
            x.location = x.server().outer;
            status_zone::count_handshake(&mut x, result);
            self.context.give_back(x);
        }
    }

    /// Asks responders about the client's certificate, within the time for the handshake.
    async fn check_by_ocsp(
        &self,
        checks: &OcspChecks,
        timer: &Timer,
    ) -> Result<(), ConnectionOver> {
        let Some(tls) = self.client.tls.get() else { return Ok(()) };
        match timer.limit(Box::pin(checks.check(tls))).await {
            Some(Ok(())) => Ok(()),
            // The requests are refused.
            Some(Err(message)) => {
                self.log(Level::Error, format_args!("{message}"), STATUS_REQUEST);
                Ok(())
            }
            None => Err(self.log_refusal(ProxyRefusal::TimedOut, Vec::new(), HANDSHAKE)),
        }
    }

    /// A session with the settings of the server that the client names, and the checks of that
    /// server.
    async fn session(
        &self,
        hello: &[u8],
        received: &[u8],
        stream: &mut Stream,
        timer: &Timer,
    ) -> Result<CheckedSession, ConnectionOver> {
        let generation = self.context.generation();
        let listen =
            generation.listen(self.client.listen).ok_or(ConnectionOver(HandshakeFault::Other))?;
        let hello = ClientHello::parse(hello);
        let id = named_server(listen, hello.as_ref());
        let server = generation.server(id);
        if server.tls.rejects_handshakes {
            tls::refuse(stream, RefusedHandshake::UnrecognizedName);
            self.log(Level::Info, format_args!("handshake rejected"), HANDSHAKE);
            return Err(ConnectionOver(HandshakeFault::Rejected));
        }
        // As in nginx, a server without a certificate has the default server's.
        let default = generation.server(listen.names.default);
        let Some(tls) = server.tls.tls.as_ref().or(default.tls.tls.as_ref()) else {
            tls::refuse(stream, RefusedHandshake::InternalError);
            let message = "no \"ssl_certificate\" is defined in server listening on SSL port";
            self.log(Level::Error, format_args!("{message}"), HANDSHAKE);
            return Err(ConnectionOver(HandshakeFault::Other));
        };
        let mut certificates = None;
        if tls.has_on_demand() {
            let demanded = Box::pin(tls.demanded(hello.as_ref()));
            certificates = timer.limit(demanded).await.flatten();
        }
        if certificates.is_none() && tls.has_computed_certificates() {
            let read = Box::pin(self.certificates(tls, id, hello.as_ref(), timer));
            certificates = read.await.inspect_err(|_| {
                tls::refuse(stream, RefusedHandshake::InternalError);
            })?;
        }
        let offers_h2 = offers_h2(listen, server);
        let session = tls.session(hello.as_ref(), offers_h2, received, certificates);
        let failed =
            |error| self.log_refusal(ProxyRefusal::Connection(error), Vec::new(), HANDSHAKE);
        let session = session.map_err(failed)?;
        Ok((session, tls.ocsp_checks().cloned()))
    }

    /// The certificates of this connection alone, whose names have variables. These are evaluated
    /// for an exchange that is never served. Reading them is a part of the handshake's time.
    async fn certificates(
        &self,
        tls: &ServerTlsSetup,
        server: ServerId,
        hello: Option<&ClientHello<'_>>,
        timer: &Timer,
    ) -> Result<Option<Vec<Credential>>, ConnectionOver> {
        let client = Rc::new(self.client.in_handshake(TlsDetails::of_hello(hello)));
        let mut x = self.context.lend(&client).ok_or(ConnectionOver(HandshakeFault::Other))?;
        x.server = server;
        x.location = x.server().outer;
        let named = tls.certificates(&mut *x);
        self.context.give_back(x);
        let Some(named) = named else { return Ok(None) };
        match timer.limit(named.read()).await {
            Some(Ok(certificates)) => Ok(Some(certificates)),
            Some(Err(message)) => {
                self.log(Level::Error, format_args!("{message}"), HANDSHAKE);
                Err(ConnectionOver(HandshakeFault::Other))
            }
            None => Err(self.log_refusal(ProxyRefusal::TimedOut, Vec::new(), HANDSHAKE)),
        }
    }

    /// Performs the TLS handshake.
    async fn agree(
        &self,
        stream: &mut Stream,
        session: Box<dyn SecureSession>,
        timer: &Timer,
    ) -> Result<(), ConnectionOver> {
        if let Err(refusal) = accept::secure(stream, session, timer).await {
            return Err(self.log_refusal(refusal, Vec::new(), HANDSHAKE));
        }
        self.client.is_secure.set(true);
        if let Some(tls) = stream.tls() {
            // The client is new: nothing is set yet.
            let _ = self.client.tls.set(tls.clone());
        }
        Ok(())
    }

    /// Logs why the connection is over.
    fn log_refusal(
        &self,
        refusal: ProxyRefusal,
        received: Vec<u8>,
        step: AcceptStep,
    ) -> ConnectionOver {
        let over = ConnectionOver(HandshakeFault::of(&refusal));
        match refusal {
            ProxyRefusal::Header(error) => {
                let mut message = Vec::new();
                error.write_message(&received, &mut message);
                self.log(Level::Error, format_args!("{}", observe::Text(&message)), step);
            }
            ProxyRefusal::Closed => {
                self.log(Level::Info, format_args!("{}", step.closed), step);
            }
            ProxyRefusal::Connection(error) if error.kind() == io::ErrorKind::InvalidData => {
                self.log(Level::Info, format_args!("{} failed (SSL: {error})", step.call), step);
            }
            ProxyRefusal::Connection(error) => {
                self.log(Level::Info, format_args!("{} failed{}", step.call, Errno(&error)), step);
            }
            ProxyRefusal::TimedOut => {
                let error = net::timed_out();
                self.log(Level::Info, format_args!("client timed out{}", Errno(&error)), step);
            }
        }
        buffers::give_back(received);
        over
    }

    fn log(&self, level: Level, message: std::fmt::Arguments<'_>, step: AcceptStep) {
        let generation = self.context.generation();
        let Some(listen) = generation.listen(self.client.listen) else { return };
        let outer = generation.server(listen.names.default).outer;
        let log = &*generation.location(outer).core.error_log;
        self.client.log(log, level, message, step.doing, &listen.address);
    }
}

/// The server that a client names before it sends a request (SNI), else the default one.
fn named_server(listen: &Listen, hello: Option<&ClientHello<'_>>) -> ServerId {
    let Some(name) = hello.and_then(|hello| hello.server_name) else { return listen.names.default };
    let Some(valid) = Host::parse(name) else { return listen.names.default };
    let mut host = Vec::new();
    valid.write_lower(name, &mut host);
    listen.names.find(&host, &mut Captures::default(), |_, _| {}).0
}

fn offers_h2(listen: &Listen, server: &Server) -> bool {
    server.http2.enabled || listen.protocols.has(Protocols::HTTP2)
}
