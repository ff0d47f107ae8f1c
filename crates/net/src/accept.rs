//! What comes on an accepted connection before its protocol: the PROXY protocol's header, and the
//! handshake of a session.
//!
//! The caller sets one timer for all of it. Bytes that arrive behind the header are the session's,
//! and without one the protocol's.

use std::fmt::Debug;
use std::future::poll_fn;
use std::io;
use std::task::Poll;

use wire::proxy_protocol::{self, Header, HeaderError, Read};

use crate::{SecureSession, Stream, Timer};

/// Where the sessions of a listening socket, or towards a server, come from.
pub trait Transport: Debug + Send + Sync {
    /// A session for a new connection.
    fn session(&self) -> io::Result<Box<dyn SecureSession>>;
}

/// Why a connection does not come as far as its protocol.
#[derive(Debug)]
pub enum ProxyRefusal {
    /// What came is no header of the PROXY protocol.
    Header(HeaderError),
    /// The other end closed the connection.
    Closed,
    /// The system, or the session.
    Connection(io::Error),
    /// The time was over.
    TimedOut,
}

/// Reads the PROXY protocol's header; `None`: it says that nothing is known. What came behind it is
/// left in `received`.
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

/// Secures a connection, and agrees with the other end on its keys. The session takes what was
/// `received`.
pub async fn secure(
    stream: &mut Stream,
    transport: &dyn Transport,
    received: &mut Vec<u8>,
    timer: &Timer,
) -> Result<(), ProxyRefusal> {
    let session = transport.session().map_err(ProxyRefusal::Connection)?;
    stream.secure(session, received).map_err(ProxyRefusal::Connection)?;
    received.clear();
    poll_fn(|cx| match stream.poll_handshake(cx) {
        Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::UnexpectedEof => {
            Poll::Ready(Err(ProxyRefusal::Closed))
        }
        Poll::Ready(done) => Poll::Ready(done.map_err(ProxyRefusal::Connection)),
        Poll::Pending => timer.poll(cx).map(|()| Err(ProxyRefusal::TimedOut)),
    })
    .await
}
