//! The handshake of TLS: between the access phase and the content handler.

use std::io;
use std::rc::Rc;
use std::sync::Arc;

use ::session::Session as _;
use ::tls::{ClientRefusal, OcspChecks, ServerTlsSetup};
use net::accept::{self, ProxyRefusal};
use net::tls::{self, Credential, HandshakeFault, RefusedHandshake, TlsDetails};
use net::{Stream, Timer, buffers};
use observe::{Errno, Level};
use wire::client_hello::{self, ClientHello};
use wire::host::Host;

use crate::session::StreamSession;

/// The session is over, which has been logged.
pub(crate) struct HandshakeFailed(pub(crate) HandshakeFault);

/// Encrypts the connection. `received` is what came behind a PROXY header.
pub(crate) async fn handshake(
    x: &mut StreamSession,
    stream: &mut Stream,
    mut received: Vec<u8>,
) -> Result<(), HandshakeFailed> {
    x.action = "SSL handshaking";
    let timer = Timer::new();
    timer.set(x.server().tls.handshake_timeout_ms);
    let agreed = agree(x, stream, &mut received, &timer).await;
    buffers::give_back(received);
    let ocsp_checks = agreed.map_err(|refusal| log_refusal(x, refusal))?;
    x.client.is_secure.set(true);
    if let Some(tls) = stream.tls() {
        // The client is new: nothing is set yet.
        let _ = x.client.tls.set(tls.clone());
    }
    if let Some(checks) = ocsp_checks {
        x.action = "requesting certificate status";
        check_by_ocsp(x, &checks, &timer).await.map_err(|refusal| log_refusal(x, refusal))?;
        x.action = "SSL handshaking";
    }
    if let Some(refusal) = client_refusal(x) {
        x.log(Level::Info, format_args!("{refusal}"));
        return Err(HandshakeFailed(HandshakeFault::ClientCertificate));
    }
    x.action = "initializing session";
    Ok(())
}

/// Asks responders about the client's certificate, within the time for the handshake.
async fn check_by_ocsp(
    x: &StreamSession,
    checks: &OcspChecks,
    timer: &Timer,
) -> Result<(), HandshakeRefusal> {
    let Some(tls) = x.client.tls.get() else { return Ok(()) };
    let Some(checked) = timer.limit(Box::pin(checks.check(tls))).await else {
        return Err(HandshakeRefusal::Failed(ProxyRefusal::TimedOut));
    };
    if let Err(message) = checked {
        x.log(Level::Error, format_args!("{message}"));
    }
    Ok(())
}

/// Why the client is turned away for its certificate, if it is.
fn client_refusal(x: &StreamSession) -> Option<ClientRefusal> {
    x.server().tls.clients.as_ref()?.refusal(x.client.tls.get()?)
}

/// Why there is no encrypted connection.
enum HandshakeRefusal {
    /// The first bytes are not TLS's.
    NotTls,
    /// The server turns clients away.
    Rejected,
    NoCertificate,
    /// It was one of an ACME server, which has its answer.
    Answered,
    /// The certificate of this connection cannot be read: why.
    BadCertificate(String),
    Failed(ProxyRefusal),
}

impl HandshakeRefusal {
    fn fault(&self) -> HandshakeFault {
        match self {
            Self::NotTls => HandshakeFault::InvalidMessage,
            Self::Rejected => HandshakeFault::Rejected,
            Self::NoCertificate | Self::BadCertificate(_) => HandshakeFault::Other,
            // The authority closes the connection when it has seen the answer.
            Self::Answered => HandshakeFault::Closed,
            Self::Failed(refusal) => HandshakeFault::of(refusal),
        }
    }
}

/// Encrypts the connection. Returns the checks of the server whose settings it has.
async fn agree(
    x: &mut StreamSession,
    stream: &mut Stream,
    received: &mut Vec<u8>,
    timer: &Timer,
) -> Result<Option<Arc<OcspChecks>>, HandshakeRefusal> {
    let hello = accept::read_client_hello(stream, received, timer).await;
    let hello = hello.map_err(HandshakeRefusal::Failed)?;
    let Some(hello) = hello else {
        // Whoever sends other records of TLS understands an alert.
        if received.get(1) == Some(&client_hello::RECORD_VERSION_MAJOR) {
            tls::refuse(stream, RefusedHandshake::UnexpectedMessage);
        }
        return Err(HandshakeRefusal::NotTls);
    };
    if ::acme::answer_handshake(stream, &hello, received, timer).await {
        return Err(HandshakeRefusal::Answered);
    }
    let parsed = ClientHello::parse(&hello);
    let default = x.server;
    choose_server(x, parsed.and_then(|hello| hello.server_name));
    let generation = x.generation.clone();
    let policy = &generation.server(x.server).tls;
    if policy.rejects_handshakes {
        tls::refuse(stream, RefusedHandshake::UnrecognizedName);
        return Err(HandshakeRefusal::Rejected);
    }
    // As in nginx, a server without a certificate has the default server's.
    let Some(tls) = policy.tls.as_ref().or(generation.server(default).tls.tls.as_ref()) else {
        tls::refuse(stream, RefusedHandshake::InternalError);
        return Err(HandshakeRefusal::NoCertificate);
    };
    let mut shown = None;
    if tls.has_on_demand() {
        let demanded = Box::pin(tls.demanded(parsed.as_ref()));
        shown = timer.limit(demanded).await.flatten();
    }
    if shown.is_none() && tls.has_computed_certificates() {
        let read = Box::pin(certificates(tls, x, parsed.as_ref(), timer)).await;
        shown = read.inspect_err(|_| tls::refuse(stream, RefusedHandshake::InternalError))?;
    }
    let session = tls.session(parsed.as_ref(), false, received, shown);
    let failed = |error| HandshakeRefusal::Failed(ProxyRefusal::Connection(error));
    let session = session.map_err(failed)?;
    accept::secure(stream, session, timer).await.map_err(HandshakeRefusal::Failed)?;
    Ok(tls.ocsp_checks().cloned())
}

/// The certificates of this connection alone. Variables know what the client's first message says.
/// Reading them is a part of the handshake's time.
async fn certificates(
    tls: &ServerTlsSetup,
    x: &mut StreamSession,
    hello: Option<&ClientHello<'_>>,
    timer: &Timer,
) -> Result<Option<Vec<Credential>>, HandshakeRefusal> {
    let known = x.client.in_handshake(TlsDetails::of_hello(hello));
    let client = std::mem::replace(&mut x.client, Rc::new(known));
    let named = tls.certificates(x);
    x.client = client;
    let Some(named) = named else { return Ok(None) };
    match timer.limit(named.read()).await {
        Some(read) => read.map(Some).map_err(HandshakeRefusal::BadCertificate),
        None => Err(HandshakeRefusal::Failed(ProxyRefusal::TimedOut)),
    }
}

/// The session goes on with the server that the client names (SNI).
pub(crate) fn choose_server(x: &mut StreamSession, name: Option<&[u8]>) {
    let generation = x.generation.clone();
    let Some(listen) = generation.listen(x.client.listen) else { return };
    let Some((name, valid)) = name.and_then(|name| Host::parse(name).map(|valid| (name, valid)))
    else {
        return;
    };
    let mut host = Vec::new();
    valid.write_lower(name, &mut host);
    x.server = listen.names.choose(&host, x);
}

fn log_refusal(x: &StreamSession, refusal: HandshakeRefusal) -> HandshakeFailed {
    let failed = "SSL_do_handshake() failed";
    let fault = refusal.fault();
    match refusal {
        HandshakeRefusal::NotTls => {
            x.log(Level::Info, format_args!("{failed} (SSL: the client does not speak TLS)"));
        }
        HandshakeRefusal::Answered => {
            x.log(Level::Info, format_args!("challenge tls-alpn-01 answered"));
        }
        HandshakeRefusal::Rejected => x.log(Level::Info, format_args!("handshake rejected")),
        HandshakeRefusal::NoCertificate => {
            let message = "no \"ssl_certificate\" is defined in server listening on SSL port";
            x.log(Level::Error, format_args!("{message}"));
        }
        HandshakeRefusal::BadCertificate(message) => x.log(Level::Error, format_args!("{message}")),
        HandshakeRefusal::Failed(ProxyRefusal::Closed) => {
            x.log(Level::Info, format_args!("peer closed connection in SSL handshake"));
        }
        HandshakeRefusal::Failed(ProxyRefusal::TimedOut) => {
            let error = net::timed_out();
            x.log(Level::Info, format_args!("client timed out{}", Errno(&error)));
        }
        HandshakeRefusal::Failed(ProxyRefusal::Connection(error)) => match error.kind() {
            io::ErrorKind::InvalidData => {
                x.log(Level::Info, format_args!("{failed} (SSL: {error})"));
            }
            _ => x.log(Level::Info, format_args!("{failed}{}", Errno(&error))),
        },
        // The PROXY header was read before.
        HandshakeRefusal::Failed(ProxyRefusal::Header(_)) => {}
    }
    HandshakeFailed(fault)
}
