//! A tunnel, which follows a reply that ends HTTP on the connection.
//!
//! A tunnel may be idle for days. The exchange is kept for its log line, and releases the memory
//! that it does not need for that.

use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll, ready};

use observe::{Errno, Level};

use super::{CutReply, Outlet, timed_out};
use crate::exchange::{
    CloseReason, Exchange, RequestTiming, TimedPhase, Tunnel, TunnelEnd, TunnelError,
};

/// The client's end of the tunnel.
struct End<'o, O> {
    outlet: &'o mut O,
    sent: &'o mut u64,
    /// Whether the last write found no room.
    stalled: bool,
}

/// Lets a tunnel run until it is over.
pub(super) async fn tunnel<O: Outlet>(
    x: &mut Exchange,
    mut tunnel: Box<dyn Tunnel>,
    outlet: &mut O,
) -> Result<(), CutReply> {
    x.close_after(CloseReason::Switched);
    x.shrink();
    let send_timeout_ms = x.location().core.output.send_timeout_ms;
    outlet.begin_tunnel();
    x.begin_timing();
    x.waits_for(TimedPhase::Tunnel);
    let ended = poll_fn(|cx| {
        let mut end = End { outlet, sent: &mut x.reply.bytes_sent, stalled: false };
        RequestTiming::around(&x.timing, || match tunnel.poll(cx, &mut end) {
            Poll::Ready(ended) => Poll::Ready(Some(ended)),
            Poll::Pending if end.stalled => {
                end.outlet.poll_stalled(cx, send_timeout_ms).map(|()| None)
            }
            Poll::Pending => Poll::Pending,
        })
    });
    let ended = ended.await;
    drop(tunnel);
    outlet.end_wait();
    match ended {
        Some(Ok(())) => Ok(()),
        Some(Err(error)) => {
            log(x, &error);
            Err(CutReply::Close)
        }
        None => {
            let error = net::timed_out();
            x.log(Level::Info, format_args!("client timed out{}", Errno(&error)));
            Err(timed_out(x))
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

impl<O: Outlet> TunnelEnd for End<'_, O> {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut Vec<u8>) -> Poll<io::Result<usize>> {
        self.outlet.poll_read(cx, buffer)
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = self.outlet.poll_write(cx, bytes);
        self.stalled = written.is_pending();
        let written = ready!(written)?;
        *self.sent += written as u64;
        Poll::Ready(Ok(written))
    }
}
