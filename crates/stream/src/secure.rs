//! The handshake of TLS: between the access phase and the content handler.

use std::io;

use ::session::Session as _;
use net::accept::{self, ProxyRefusal};
use net::tls::{self, RefusedHandshake};
use net::{Stream, Timer, buffers};
use observe::{Errno, Level};
use wire::client_hello::ClientHello;

use crate::session::TcpSession;

/// The session is over, which has been logged.
pub(crate) struct HandshakeFailed;

/// Encrypts the connection. `received` is what came behind a PROXY header.
pub(crate) async fn handshake(
    x: &mut TcpSession,
    stream: &mut Stream,
    mut received: Vec<u8>,
) -> Result<(), HandshakeFailed> {
    x.action = "SSL handshaking";
    let timer = Timer::new();
    timer.set(x.server().tls.handshake_timeout_ms);
    let agreed = agree(x, stream, &mut received, &timer).await;
    buffers::give_back(received);
    if let Err(refusal) = agreed {
        log_refusal(x, refusal);
        return Err(HandshakeFailed);
    }
    x.client.is_secure.set(true);
    if let Some(tls) = stream.tls() {
        // The client is new: nothing is set yet.
        let _ = x.client.tls.set(tls.clone());
    }
    x.action = "initializing session";
    Ok(())
}

/// Why there is no encrypted connection.
enum HandshakeRefusal {
    /// The first bytes are not TLS's.
    NotTls,
    /// The server turns clients away.
    Rejected,
    /// The server has no certificate.
    NoCertificate,
    Failed(ProxyRefusal),
}

async fn agree(
    x: &TcpSession,
    stream: &mut Stream,
    received: &mut Vec<u8>,
    timer: &Timer,
) -> Result<(), HandshakeRefusal> {
    let hello = accept::read_client_hello(stream, received, timer).await;
    let hello = hello.map_err(HandshakeRefusal::Failed)?.ok_or(HandshakeRefusal::NotTls)?;
    let policy = &x.server().tls;
    if policy.rejects_handshakes {
        tls::refuse(stream, RefusedHandshake::UnrecognizedName);
        return Err(HandshakeRefusal::Rejected);
    }
    let Some(tls) = &policy.tls else {
        tls::refuse(stream, RefusedHandshake::InternalError);
        return Err(HandshakeRefusal::NoCertificate);
    };
    let session = tls.session(ClientHello::parse(&hello).as_ref(), false, received);
    let failed = |error| HandshakeRefusal::Failed(ProxyRefusal::Connection(error));
    let session = session.map_err(failed)?;
    accept::secure(stream, session, timer).await.map_err(HandshakeRefusal::Failed)
}

fn log_refusal(x: &TcpSession, refusal: HandshakeRefusal) {
    let failed = "SSL_do_handshake() failed";
    match refusal {
        HandshakeRefusal::NotTls => {
            x.log(Level::Info, format_args!("{failed} (SSL: the client does not speak TLS)"));
        }
        HandshakeRefusal::Rejected => x.log(Level::Info, format_args!("handshake rejected")),
        HandshakeRefusal::NoCertificate => {
            let message = "no \"ssl_certificate\" is defined in server listening on SSL port";
            x.log(Level::Error, format_args!("{message}"));
        }
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
}
