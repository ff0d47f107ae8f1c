//! Tries servers until one accepts the connection or none is left.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use ::session::Session as _;
use ::session::backend::{
    CONNECTING, ConnectTrouble, NoServer, UpstreamAttempt, choose, log_failed, log_refused,
};
use ::tls::backend::SecuredConnections;
use ::upstream::{Attempt, Group, Lease, Until};
use net::{DatagramReader, SocketProbe, Stream, Timer, WatchedDatagram, clock};
use observe::{Level, Text};

use super::handshake::{secure, timed_out};
use crate::flow::UdpResources;
use crate::proxy::intake::ClientIntake;
use crate::proxy::plan::ProxyPlan;
use crate::session::StreamSession;

pub(super) const INTERNAL_SERVER_ERROR: u16 = 500;
pub(super) const BAD_GATEWAY: u16 = 502;

pub(super) struct ServerConnection {
    pub(super) stream: Stream,
    pub(super) lease: Lease,
    pub(super) attempt: Rc<UpstreamAttempt>,
    /// Whether the client ended its side meanwhile.
    pub(super) client_ended: bool,
}

/// A UDP socket connected to a server.
pub(super) struct ServerSocket {
    pub(super) socket: WatchedDatagram,
    pub(super) lease: Lease,
    pub(super) attempt: Rc<UpstreamAttempt>,
}

pub(super) struct ServerSearch<'a> {
    plan: &'a ProxyPlan,
    group: &'a Arc<Group>,
    /// The client; `None` if it sends datagrams.
    client: Option<ClientIntake<'a>>,
    from: Option<SocketAddr>,
    secured: Option<SecuredConnections<'a>>,
    tried: Attempt,
    tries: u64,
    begun_ms: u64,
}

impl<'a> ServerSearch<'a> {
    pub(super) fn new(
        plan: &'a ProxyPlan,
        x: &mut StreamSession,
        group: &'a Arc<Group>,
        client: Option<ClientIntake<'a>>,
    ) -> Self {
        let (from, tried, begun_ms) = (local_end(plan, x), Attempt::default(), clock::now_ms());
        let secured = plan.tls.as_ref().map(|tls| tls.connections(group, x));
        Self { plan, group, client, from, secured, tried, tries: 0, begun_ms }
    }

    /// Connects to a server. `Err` is the status of the session.
    pub(super) async fn connect(mut self, x: &mut StreamSession) -> Result<ServerConnection, u16> {
        loop {
            x.action = CONNECTING;
            let (mut lease, waited_ms) = self.choose(x).await?;
            let attempt = x.upstream.attempts.begin(Ok(lease.server().clone()), false);
            attempt.queue_ms.set(waited_ms);
            match self.open(x, &lease).await {
                Ok(stream) => {
                    attempt.connected();
                    lease.reached(Until::Connect, attempt.age_ms());
                    lease.succeeded(clock::now_ms());
                    self.log_connected(x, "", SocketProbe::new(&stream), &lease);
                    let client_ended = self.client.is_some_and(|client| client.ended);
                    return Ok(ServerConnection { stream, lease, attempt, client_ended });
                }
                Err(trouble) => self.after(x, lease, &attempt, trouble)?,
            }
        }
    }

    /// Opens a socket whose datagrams `reader` receives. `Err` is the status of the session.
    /// Whether the server is reachable is only known after datagrams were sent.
    pub(super) async fn connect_datagrams(
        mut self,
        x: &mut StreamSession,
        resources: &UdpResources,
        reader: Weak<dyn DatagramReader>,
    ) -> Result<ServerSocket, u16> {
        loop {
            x.action = CONNECTING;
            let (mut lease, waited_ms) = self.choose(x).await?;
            let attempt = x.upstream.attempts.begin(Ok(lease.server().clone()), false);
            attempt.queue_ms.set(waited_ms);
            match self.open_datagrams(x, &lease, resources, reader.clone()) {
                Ok(socket) => {
                    attempt.connected();
                    lease.reached(Until::Connect, attempt.age_ms());
                    self.log_connected(x, "udp ", socket.probe(), &lease);
                    return Ok(ServerSocket { socket, lease, attempt });
                }
                Err(trouble) => self.after(x, lease, &attempt, trouble)?,
            }
        }
    }

    async fn choose(&mut self, x: &mut StreamSession) -> Result<(Lease, Option<u64>), u16> {
        let timeout_ms = self.plan.connect_timeout_ms;
        let (client, tried) = (&mut self.client, &mut self.tried);
        let left = |x: &mut StreamSession, cx: &mut Context<'_>| match client {
            Some(client) => client.poll_left(x, cx),
            None => Poll::Pending,
        };
        match choose(x, self.group, tried, None, timeout_ms, left).await {
            Ok(chosen) => {
                self.tries += 1;
                Ok(chosen)
            }
            Err(NoServer { status, waited_ms }) => {
                let attempt = x.upstream.attempts.begin(Err(self.group.name().into()), false);
                attempt.queue_ms.set(waited_ms);
                attempt.end();
                if status.is_none() {
                    x.log(Level::Error, format_args!("no live upstreams"));
                }
                Err(status.unwrap_or(BAD_GATEWAY))
            }
        }
    }

    /// Opens a connection to a server. Failures are logged.
    async fn open(
        &mut self,
        x: &mut StreamSession,
        lease: &Lease,
    ) -> Result<Stream, ConnectTrouble> {
        let mut stream = self.open_plain(x, lease).await?;
        if let Some(secured) = &self.secured {
            secure(self.plan, secured, x, &mut stream, lease).await?;
        }
        Ok(stream)
    }

    async fn open_plain(
        &mut self,
        x: &mut StreamSession,
        lease: &Lease,
    ) -> Result<Stream, ConnectTrouble> {
        let options = self.plan.connect_options(self.from);
        let begun = options.begin(lease.address());
        let log = |level, message: std::fmt::Arguments<'_>| x.log(level, message);
        let mut connecting =
            begun.map_err(|refusal| log_refused(refusal, lease.name(), self.from, log))?;
        let timer = Timer::new();
        timer.set(self.plan.connect_timeout_ms);
        let opened = poll_fn(|cx| match connecting.poll(cx) {
            Poll::Ready(opened) => Poll::Ready(Some(opened)),
            Poll::Pending => {
                if let Some(client) = &mut self.client {
                    client.read(x, cx);
                }
                ready!(timer.poll(cx));
                Poll::Ready(None)
            }
        });
        match opened.await {
            Some(Ok(stream)) => {
                if self.plan.socket.nodelay {
                    stream.set_nodelay();
                }
                Ok(stream)
            }
            Some(Err(error)) => {
                log_failed(&error, |level, message| x.log(level, message));
                Err(ConnectTrouble::Server)
            }
            None => Err(timed_out(x)),
        }
    }

    /// Opens a socket connected to a server. Failures are logged.
    fn open_datagrams(
        &self,
        x: &StreamSession,
        lease: &Lease,
        resources: &UdpResources,
        reader: Weak<dyn DatagramReader>,
    ) -> Result<WatchedDatagram, ConnectTrouble> {
        let log = |level, message: std::fmt::Arguments<'_>| x.log(level, message);
        let opened = self.plan.connect_options(self.from).datagram(lease.address());
        let fd = opened.map_err(|refusal| log_refused(refusal, lease.name(), self.from, log))?;
        // A failure has been logged.
        resources.servers.watch(fd, reader).map_err(|_| ConnectTrouble::Internal)
    }

    /// Handles a failed connection. `Ok` if another server is to be tried.
    fn after(
        &self,
        x: &StreamSession,
        mut lease: Lease,
        attempt: &UpstreamAttempt,
        trouble: ConnectTrouble,
    ) -> Result<(), u16> {
        attempt.end();
        if trouble == ConnectTrouble::Internal {
            return Err(INTERNAL_SERVER_ERROR);
        }
        if let Some(event) = lease.failed(clock::now_ms()) {
            x.log(Level::Warn, format_args!("{event}"));
        }
        let next = &self.plan.next;
        let too_late = next.timeout_ms > 0 && clock::now_ms() - self.begun_ms >= next.timeout_ms;
        let too_often = next.tries_max > 0 && self.tries >= next.tries_max;
        match next.enabled && self.tried.tries_left() > 0 && !too_late && !too_often {
            true => Ok(()),
            false => Err(BAD_GATEWAY),
        }
    }

    /// Logs the connection. As in nginx, the line has no context.
    fn log_connected(&self, x: &StreamSession, how: &str, socket: SocketProbe, lease: &Lease) {
        if !x.logs(Level::Info) {
            return;
        }
        let name = Text(lease.name());
        match socket.local() {
            Some(local) => x.log_bare(format_args!("{how}proxy {local} connected to {name}")),
            None => x.log_bare(format_args!("{how}proxy unix: connected to {name}")),
        }
    }
}

/// The local address of connections. As in nginx, an invalid one is ignored.
fn local_end(plan: &ProxyPlan, x: &mut StreamSession) -> Option<SocketAddr> {
    match plan.local_address(x) {
        Ok(address) => address,
        Err(text) => {
            let text = Text(&text);
            x.log(Level::Error, format_args!("invalid local address \"{text}\""));
            None
        }
    }
}
