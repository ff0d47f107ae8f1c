//! `proxy_ssl`: the handshake with a server, between connecting and relaying.
//!
//! As in nginx, a PROXY protocol header precedes it unencrypted.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::task::{Context, Poll, ready};

use ::session::Session as _;
use ::session::backend::ConnectTrouble;
use ::tls::backend::{SECURING, SecuredConnections};
use ::upstream::Lease;
use net::{Stream, Timer};
use observe::{Errno, Level};

use super::plan::ProxyPlan;
use crate::session::StreamSession;

/// Secures the connection to a server with TLS. Failures are logged.
pub(super) async fn secure(
    plan: &ProxyPlan,
    secured: &SecuredConnections<'_>,
    x: &mut StreamSession,
    stream: &mut Stream,
    lease: &Lease,
) -> Result<(), ConnectTrouble> {
    let timer = Timer::new();
    timer.set(plan.connect_timeout_ms);
    send_header(plan, x, stream, &timer).await?;
    x.action = SECURING;
    let protocols = plan.tls.as_ref().map(|tls| tls.protocols(x)).unwrap_or_default();
    let log = |level, message: std::fmt::Arguments<'_>| x.log(level, message);
    timer.set(plan.connect_timeout_ms);
    let transport = secured.transport(lease.address(), &protocols, &timer, log).await?;
    let session = transport.session(&[]).map_err(|error| {
        secured.log_failed(&error, log);
        ConnectTrouble::Internal
    })?;
    stream.secure(session);
    timer.set(plan.connect_timeout_ms);
    match before(&timer, |cx| stream.poll_handshake(cx)).await {
        Some(Ok(())) => Ok(()),
        Some(Err(error)) => {
            secured.log_failed(&error, log);
            Err(ConnectTrouble::Server)
        }
        None => Err(timed_out(x)),
    }
}

async fn send_header(
    plan: &ProxyPlan,
    x: &StreamSession,
    stream: &mut Stream,
    timer: &Timer,
) -> Result<(), ConnectTrouble> {
    let mut header = Vec::new();
    plan.write_header(x, &mut header);
    let mut left = &header[..];
    while !left.is_empty() {
        match before(timer, |cx| stream.poll_write(cx, &[IoSlice::new(left)])).await {
            Some(Ok(sent)) => left = &left[sent..],
            Some(Err(error)) => {
                x.log(Level::Error, format_args!("send() failed{}", Errno(&error)));
                return Err(ConnectTrouble::Server);
            }
            None => return Err(timed_out(x)),
        }
    }
    Ok(())
}

/// Polls an operation with a deadline. `None` if the timer was first.
async fn before<T>(
    timer: &Timer,
    mut poll: impl FnMut(&mut Context<'_>) -> Poll<io::Result<T>>,
) -> Option<io::Result<T>> {
    poll_fn(|cx| match poll(cx) {
        Poll::Ready(done) => Poll::Ready(Some(done)),
        Poll::Pending => {
            ready!(timer.poll(cx));
            Poll::Ready(None)
        }
    })
    .await
}

/// Logs the timeout of a handshake.
pub(super) fn timed_out(x: &StreamSession) -> ConnectTrouble {
    let error = net::timed_out();
    x.log(Level::Error, format_args!("upstream timed out{}", Errno(&error)));
    ConnectTrouble::Server
}
