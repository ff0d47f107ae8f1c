//! A check of a server: connects, sends, and compares the received data.
//!
//! It connects as `proxy_pass` does. The whole check has one deadline. A failure is returned and
//! not logged, because it may have no effect.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use ::session::backend::{CONNECTING, log_refused};
use ::session::health::{CheckFailure, Verdict, probe_address};
use ::tls::backend::{SECURING, SecuredBackend};
use ::upstream::Server;
use net::{Stream, Timer};
use observe::Errno;

use super::matching::{DataComparison, Expected, StreamMatch};
use crate::proxy::{ProxyPlan, SessionTarget};
use crate::session::StreamSession;

pub(super) const SENDING: &str = "sending to upstream";
pub(super) const READING: &str = "reading from upstream";
pub(super) const CHECKING: &str = "checking data";

/// How the servers of a `proxy_pass` are probed.
pub(crate) struct ServerQuestion {
    pub(crate) plan: Arc<ProxyPlan>,
    pub(crate) matching: Arc<StreamMatch>,
    pub(crate) port: Option<u16>,
    /// Whether servers are probed over UDP.
    pub(crate) is_udp: bool,
    /// The timeout of the whole check.
    pub(crate) timeout_ms: u64,
}

impl ServerQuestion {
    /// Probes a server. `x` is a session without a client.
    pub(crate) async fn ask(&self, x: &mut StreamSession, server: &Server) -> Verdict {
        let timer = Timer::new();
        timer.set(self.timeout_ms);
        if self.is_udp {
            return self.ask_over_udp(x, server, &timer).await;
        }
        let mut step = AskStep { timer: &timer, action: CONNECTING };
        let mut stream = self.connect(x, server, &step).await?;
        let mut first = Vec::new();
        self.plan.write_header(x, &mut first);
        if let Some(tls) = &self.plan.tls {
            step.action = SENDING;
            step.send(&mut stream, &std::mem::take(&mut first)).await?;
            step.action = SECURING;
            self.secure(tls, x, server, &mut stream, &step).await?;
        }
        first.extend_from_slice(self.matching.send.as_deref().unwrap_or_default());
        if !first.is_empty() {
            step.action = SENDING;
            step.send(&mut stream, &first).await?;
        }
        match &self.matching.expect {
            Some(expected) => self.receive(x, &mut stream, expected, &mut step).await,
            None => Ok(step.action),
        }
    }

    async fn connect(
        &self,
        x: &mut StreamSession,
        server: &Server,
        step: &AskStep<'_>,
    ) -> Result<Stream, CheckFailure> {
        let from = self.plan.local_address(x);
        let from = from.map_err(|_| step.failure("invalid local address"))?;
        let to = probe_address(server, self.port);
        let begun = self.plan.connect_options(from).begin(&to);
        let mut connecting = begun.map_err(|refusal| {
            let mut cause = String::new();
            log_refused(refusal, server.name(), from, |_, message| cause = message.to_string());
            step.failure(cause)
        })?;
        step.run("connect()", |cx| connecting.poll(cx)).await
    }

    /// Secures the connection with TLS, as `proxy_pass` does.
    async fn secure(
        &self,
        tls: &SecuredBackend,
        x: &mut StreamSession,
        server: &Server,
        stream: &mut Stream,
        step: &AskStep<'_>,
    ) -> Result<(), CheckFailure> {
        let SessionTarget::Fixed(group) = &self.plan.target else { return Ok(()) };
        let secured = tls.connections(group, x);
        let mut cause = None;
        let to = probe_address(server, self.port);
        let protocols = tls.protocols(x);
        let log = |_, message: std::fmt::Arguments<'_>| cause = Some(message.to_string());
        let transport = secured.transport(&to, &protocols, step.timer, log);
        let session = transport.await.ok().map(|transport| transport.session(&[]));
        let Some(Ok(session)) = session else {
            return Err(step.failure(cause.unwrap_or_else(|| "no TLS session".into())));
        };
        stream.secure(session);
        let done = step.run("SSL_do_handshake()", |cx| {
            let done = stream.poll_handshake(cx);
            if let Poll::Ready(Err(error)) = &done {
                secured.log_failed(error, |_, message| cause = Some(message.to_string()));
            }
            done
        });
        let done = done.await;
        done.map_err(|failure| cause.map_or(failure, |cause| step.failure(cause)))
    }

    /// Reads until the data is as expected, or no further data can make it so.
    async fn receive(
        &self,
        x: &StreamSession,
        stream: &mut Stream,
        expected: &Expected,
        step: &mut AskStep<'_>,
    ) -> Verdict {
        let (mut received, most) =
            (Vec::with_capacity(self.plan.buffer_size), self.plan.buffer_size);
        loop {
            step.action = READING;
            let left = most - received.len();
            let read =
                step.run("recv()", |cx| stream.poll_read_most(cx, &mut received, left)).await?;
            let comparison = match read {
                0 if received.is_empty() => {
                    return Err(step.failure("upstream prematurely closed connection"));
                }
                0 => DataComparison::Different,
                _ => expected.compare(&received, x),
            };
            match comparison {
                DataComparison::Equal => return Ok(CHECKING),
                DataComparison::Open if received.len() < most => {}
                DataComparison::Open | DataComparison::Different => {
                    return Err(CheckFailure::new(CHECKING, "unexpected data"));
                }
            }
        }
    }
}

/// The current step of a check, and its deadline.
struct AskStep<'a> {
    timer: &'a Timer,
    action: &'static str,
}

impl AskStep<'_> {
    fn failure(&self, cause: impl Into<String>) -> CheckFailure {
        CheckFailure::new(self.action, cause)
    }

    /// Polls an operation until it is ready or the deadline passes.
    async fn run<T>(
        &self,
        call: &str,
        mut poll: impl FnMut(&mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Result<T, CheckFailure> {
        let done = poll_fn(|cx| match poll(cx) {
            Poll::Ready(result) => Poll::Ready(Some(result)),
            Poll::Pending => {
                ready!(self.timer.poll(cx));
                Poll::Ready(None)
            }
        });
        match done.await {
            Some(Ok(value)) => Ok(value),
            Some(Err(error)) => Err(self.failure(format!("{call} failed{}", Errno(&error)))),
            None => {
                let error = net::timed_out();
                Err(self.failure(format!("upstream timed out{}", Errno(&error))))
            }
        }
    }

    async fn send(&self, stream: &mut Stream, mut left: &[u8]) -> Result<(), CheckFailure> {
        while !left.is_empty() {
            let slices = [IoSlice::new(left)];
            let sent = self.run("send()", |cx| stream.poll_write(cx, &slices)).await?;
            left = &left[sent..];
        }
        Ok(())
    }
}
