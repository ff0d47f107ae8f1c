//! The PROXY protocol's header, before the first request of a connection.
//!
//! It may come in pieces, and with the request behind it. It counts into the time for the first
//! head: one deadline covers both.

use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use observe::{Errno, Level};
use wire::proxy_protocol::{self, Header, HeaderError, Read};

use super::Connection;
use super::idle::Idle;
use super::link::WaitsFor;
use crate::site::Protocols;

/// Why there is no header.
enum Failed {
    Refused(HeaderError),
    Closed,
    Connection(io::Error),
    TimedOut,
}

impl Connection {
    /// Whether a header comes before anything else.
    pub(super) fn expects_proxy_header(&self) -> bool {
        let generation = self.context.generation();
        let listen = generation.listen(self.client.listen);
        listen.is_some_and(|listen| listen.protocols.has(Protocols::PROXY_PROTOCOL))
    }

    /// Reads the header, and keeps what it says with the client. False: the connection is over.
    pub(super) async fn read_proxy_header(&self) -> bool {
        let Idle::First { timeout_ms } = self.first_idle() else { return false };
        let _waiting = self.context.counts.wait();
        match poll_fn(|cx| self.poll_proxy_header(cx, timeout_ms)).await {
            Ok(None) => true,
            Ok(Some(header)) => self.client.proxy_protocol.set(Rc::new(header)).is_ok(),
            Err(failed) => {
                self.log_no_proxy_header(failed);
                false
            }
        }
    }

    fn poll_proxy_header(
        &self,
        cx: &mut Context<'_>,
        timeout_ms: u64,
    ) -> Poll<Result<Option<Header>, Failed>> {
        loop {
            match self.link.poll_input(cx) {
                Poll::Ready(Ok(1..)) => {}
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(Failed::Closed)),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(Failed::Connection(error))),
                Poll::Pending => {
                    ready!(self.link.poll_deadline(cx, WaitsFor::Head, timeout_ms));
                    return Poll::Ready(Err(Failed::TimedOut));
                }
            }
            let read = proxy_protocol::read(&self.link.input.borrow());
            match read {
                Ok(Read::Partial) => {}
                Ok(Read::Complete { len, header }) => {
                    self.link.consume_input(len);
                    return Poll::Ready(Ok(header));
                }
                Err(error) => return Poll::Ready(Err(Failed::Refused(error))),
            }
        }
    }

    fn log_no_proxy_header(&self, failed: Failed) {
        let generation = self.context.generation();
        let Some(listen) = generation.listen(self.client.listen) else { return };
        let outer = generation.server(listen.names.default).outer;
        let log = &*generation.location(outer).core.error_log;
        let say = |level, message: std::fmt::Arguments<'_>| {
            self.client.log(log, level, message, "reading PROXY protocol", &listen.address);
        };
        match failed {
            Failed::Refused(error) => {
                let mut message = Vec::new();
                error.write_message(&self.link.input.borrow(), &mut message);
                say(Level::Error, format_args!("{}", observe::Text(&message)));
            }
            Failed::Closed => say(Level::Info, format_args!("client closed connection")),
            Failed::Connection(error) => {
                say(Level::Info, format_args!("recv() failed{}", Errno(&error)));
            }
            Failed::TimedOut => {
                let error = net::timed_out();
                say(Level::Info, format_args!("client timed out{}", Errno(&error)));
            }
        }
    }
}
