//! Reads the start of an accepted connection, before its protocol: the PROXY protocol's header, and
//! the session's handshake.
//!
//! The caller sets one timer for all steps. Bytes behind the header belong to the session or,
//! without one, to the protocol.

use std::fmt::Debug;
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::Poll;

use wire::client_hello::{self, HelloBytes, HelloFault};
use wire::proxy_protocol::{self, Header, HeaderError, Read};

use crate::tls::{RefusedHandshake, refuse};
use crate::turn_order::TurnOrder;
use crate::{SecureSession, Stream, Timer};

/// Makes sessions: for connections to servers, and in tests for those of listening sockets.
pub trait Transport: Debug + Send + Sync {
    /// A session for a connection whose first bytes, `received`, were read already.
    fn session(&self, received: &[u8]) -> io::Result<Box<dyn SecureSession>>;
}

/// Why a connection ends before its protocol begins.
#[derive(Debug)]
pub enum ProxyRefusal {
    /// The bytes are not a header of the PROXY protocol.
    Header(HeaderError),
    /// The other end closed the connection.
    Closed,
    /// A call, or the session, failed.
    Connection(io::Error),
    TimedOut,
}

/// Reads the PROXY protocol's header; `None`: it gives no addresses. Bytes behind it stay in
/// `received`.
pub async fn read_proxy_header(
    stream: &mut Stream,
    received: &mut Vec<u8>,
    timer: &Timer,
) -> Result<Option<Header>, ProxyRefusal> {
    poll_fn(|cx| {
        loop {
            match stream.poll_read(cx, received) {
                Poll::Ready(Ok(1..)) => {}
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(ProxyRefusal::Closed)),
                Poll::Ready(Err(error)) => {
                    return Poll::Ready(Err(ProxyRefusal::Connection(error)));
                }
                Poll::Pending => return timer.poll(cx).map(|()| Err(ProxyRefusal::TimedOut)),
            }
            match proxy_protocol::read(received) {
                Ok(Read::Partial) => {}
                Ok(Read::Complete { len, header }) => {
                    received.drain(..len);
                    return Poll::Ready(Ok(header));
                }
                Err(error) => return Poll::Ready(Err(ProxyRefusal::Header(error))),
            }
        }
    })
    .await
}

/// Reads a TLS client's first message, and bytes that come with it, into `received`. `None`: the
/// client does not begin with TLS. An invalid first record or message is answered with an alert.
pub async fn read_client_hello(
    stream: &mut Stream,
    received: &mut Vec<u8>,
    timer: &Timer,
) -> Result<Option<Vec<u8>>, ProxyRefusal> {
    poll_fn(|cx| {
        loop {
            if let Some(fault) = client_hello::fault(received) {
                return Poll::Ready(Err(refuse_hello(stream, fault)));
            }
            match client_hello::message(received) {
                HelloBytes::Partial => {}
                HelloBytes::NotTls => return Poll::Ready(Ok(None)),
                HelloBytes::Complete(message) => {
                    return Poll::Ready(Ok(Some(message.into_owned())));
                }
            }
            if received.capacity() > 0 && received.len() == received.capacity() {
                // Bounded, since the message has a maximum length.
                received.reserve(client_hello::MESSAGE_MAX);
            }
            match stream.poll_read(cx, received) {
                Poll::Ready(Ok(1..)) => {}
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(ProxyRefusal::Closed)),
                Poll::Ready(Err(error)) => {
                    return Poll::Ready(Err(ProxyRefusal::Connection(error)));
                }
                Poll::Pending => return timer.poll(cx).map(|()| Err(ProxyRefusal::TimedOut)),
            }
        }
    })
    .await
}

fn refuse_hello(stream: &mut Stream, fault: HelloFault) -> ProxyRefusal {
    let (alert, text) = match fault {
        HelloFault::RecordTooLong => (RefusedHandshake::RecordOverflow, "record too long"),
        HelloFault::OtherMessage => (RefusedHandshake::UnexpectedMessage, "unexpected message"),
        HelloFault::MessageTooLong => (RefusedHandshake::IllegalParameter, "message too long"),
    };
    refuse(stream, alert);
    ProxyRefusal::Connection(io::Error::new(io::ErrorKind::InvalidData, text))
}

/// Why a connection that `pass` handed over is closed: the port needs TLS within the connection's
/// TLS.
pub const TLS_PASSED_TO_SSL: &str = "connection over TLS was passed to a port with \"ssl\"";

/// Handshakes that a worker begins in one turn of its event loop. Each takes the CPU time of dozens
/// of requests, mostly for one signature; established connections are served in between.
const HANDSHAKES_PER_TURN: usize = 1;

thread_local! {
    static HANDSHAKES: Rc<TurnOrder> = TurnOrder::new(HANDSHAKES_PER_TURN);
}

/// Performs the session's handshake. From now on all bytes go through the session.
pub async fn secure(
    stream: &mut Stream,
    session: Box<dyn SecureSession>,
    timer: &Timer,
) -> Result<(), ProxyRefusal> {
    let (queue, mut place) = (HANDSHAKES.with(Rc::clone), None);
    poll_fn(|cx| match queue.poll_admitted(&mut place, cx) {
        Poll::Ready(()) => Poll::Ready(Ok(())),
        Poll::Pending => timer.poll(cx).map(|()| Err(ProxyRefusal::TimedOut)),
    })
    .await?;
    stream.secure(session);
    poll_fn(|cx| match stream.poll_handshake(cx) {
        Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::UnexpectedEof => {
            Poll::Ready(Err(ProxyRefusal::Closed))
        }
        Poll::Ready(done) => Poll::Ready(done.map_err(ProxyRefusal::Connection)),
        Poll::Pending => timer.poll(cx).map(|()| Err(ProxyRefusal::TimedOut)),
    })
    .await
}
