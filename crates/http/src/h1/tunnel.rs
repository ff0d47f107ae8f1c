//! A connection after a reply that ended HTTP on it: a tunnel has the client's end.
//!
//! It may last for days with nothing to do, so the exchange, which is kept for its log line, gives
//! back what memory it does not need for that.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::task::{Context, Poll, ready};

use observe::{Errno, Level};

use super::link::{Link, WaitsFor};
use super::{After, Connection};
use crate::exchange::{Exchange, Tunnel, TunnelEnd, TunnelError};

/// The client's end.
struct End<'c> {
    link: &'c Link,
    sent: &'c mut u64,
    /// Whether the client takes nothing at the moment.
    stalled: bool,
}

impl Connection {
    /// Lets a tunnel run until it is over.
    pub(super) async fn tunnel(
        &self,
        x: &mut Exchange,
        mut tunnel: Box<dyn Tunnel>,
    ) -> Result<(), After> {
        x.keepalive = false;
        x.shrink();
        let output = x.location().core.output;
        if output.tcp_nodelay {
            self.link.stream.borrow().set_nodelay();
        }
        let ended = poll_fn(|cx| {
            let mut end = End { link: &self.link, sent: &mut x.reply.bytes_sent, stalled: false };
            match tunnel.poll(cx, &mut end) {
                Poll::Ready(ended) => Poll::Ready(Some(ended)),
                Poll::Pending if end.stalled => {
                    let timeout_ms = output.send_timeout_ms;
                    self.link.poll_deadline(cx, WaitsFor::Room, timeout_ms).map(|()| None)
                }
                Poll::Pending => Poll::Pending,
            }
        });
        let ended = ended.await;
        drop(tunnel);
        self.link.progress();
        match ended {
            Some(Ok(())) => Ok(()),
            Some(Err(error)) => {
                log(x, &error);
                Err(After::Close)
            }
            None => {
                let error = net::timed_out();
                x.log(Level::Info, format_args!("client timed out{}", Errno(&error)));
                Err(self.timed_out(x))
            }
        }
    }
}

fn log(x: &Exchange, error: &TunnelError) {
    match error {
        TunnelError::Client(call, error) => {
            x.log(Level::Info, format_args!("{call} failed{}", Errno(error)));
        }
        TunnelError::Upstream(call, error) => {
            x.log(Level::Error, format_args!("{call} failed{}", Errno(error)));
        }
        TunnelError::UpstreamTimedOut => {
            let error = net::timed_out();
            x.log(Level::Error, format_args!("upstream timed out{}", Errno(&error)));
        }
    }
}

impl TunnelEnd for End<'_> {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut Vec<u8>) -> Poll<io::Result<usize>> {
        let arrived = self.link.take_input(buffer);
        if arrived > 0 {
            return Poll::Ready(Ok(arrived));
        }
        let read = ready!(self.link.stream.borrow_mut().poll_read(cx, buffer));
        self.link.progress();
        Poll::Ready(read)
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = self.link.stream.borrow_mut().poll_write(cx, &[IoSlice::new(bytes)]);
        self.stalled = written.is_pending();
        let written = ready!(written)?;
        *self.sent += written as u64;
        self.link.progress();
        Poll::Ready(Ok(written))
    }
}
