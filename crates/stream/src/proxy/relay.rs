//! A relay in both directions between a client and a server.
//!
//! As in nginx, a session ends when one side has ended and its data is delivered; with
//! `proxy_half_close`, when both sides have. A side whose connection breaks counts as ended, even
//! with `proxy_half_close`. Unlike in nginx, the other side then receives no close_notify over TLS.

use std::io;
use std::task::{Context, Poll, ready};

use ::session::Session as _;
use net::{Stream, Timer};
use observe::{Errno, Level};

use super::way::{RelayWay, WayError, WayState};
use crate::session::StreamSession;

/// The settings and the initial state of a relay.
pub(super) struct RelayPlan {
    /// The first bytes for the server.
    pub(super) first: Vec<u8>,
    /// Bytes that were read from the client before.
    pub(super) received: u64,
    pub(super) client_ended: bool,
    pub(super) buffer_size: usize,
    /// Bytes per second; 0: no limit.
    pub(super) upload_rate: u64,
    pub(super) download_rate: u64,
    pub(super) begun_s: u64,
    pub(super) timeout_ms: u64,
    pub(super) half_close: bool,
}

pub(super) struct Relay {
    /// From the client to the server.
    pub(super) up: RelayWay,
    /// From the server to the client.
    pub(super) down: RelayWay,
    timer: Timer,
    timeout_ms: u64,
    half_close: bool,
    /// Whether the timer runs.
    is_timed: bool,
    /// The error of reading from the client or the server.
    client_failed: Option<io::Error>,
    server_failed: Option<io::Error>,
}

pub(super) struct RelayEnd {
    pub(super) reason: RelayReason,
    client_failed: Option<io::Error>,
    pub(super) server_failed: Option<io::Error>,
    /// Whether the stream of the client or the server was cut off, as far as is known.
    client_cut: bool,
    server_cut: bool,
}

pub(super) enum RelayReason {
    ClientEnded,
    ServerEnded,
    TimedOut,
    /// Writing to the client failed.
    Client(io::Error),
    /// Writing to the server failed.
    Server(io::Error),
}

impl Relay {
    pub(super) fn new(plan: RelayPlan) -> Self {
        let RelayPlan { first, received, buffer_size, begun_s, .. } = plan;
        let mut up = RelayWay::new(first, received, buffer_size).paced(plan.upload_rate, begun_s);
        up.ended = plan.client_ended;
        Self {
            up,
            down: RelayWay::new(Vec::new(), 0, buffer_size).paced(plan.download_rate, begun_s),
            timer: Timer::new(),
            timeout_ms: plan.timeout_ms,
            half_close: plan.half_close,
            is_timed: false,
            client_failed: None,
            server_failed: None,
        }
    }

    /// Ready once it is over.
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        client: &mut Stream,
        server: &mut Stream,
    ) -> Poll<RelayEnd> {
        match self.poll_reason(cx, client, server) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(reason) => Poll::Ready(RelayEnd {
                reason,
                client_failed: self.client_failed.take(),
                server_failed: self.server_failed.take(),
                client_cut: self.up.is_cut,
                server_cut: self.down.is_cut,
            }),
        }
    }

    fn poll_reason(
        &mut self,
        cx: &mut Context<'_>,
        client: &mut Stream,
        server: &mut Stream,
    ) -> Poll<RelayReason> {
        let before = (self.up.received, self.up.sent, self.down.received, self.down.sent);
        let down = match self.down.copy(cx, server, client) {
            Ok(state) => state,
            Err(WayError::Write(error)) => return Poll::Ready(RelayReason::Client(error)),
            Err(WayError::Read(error)) => {
                self.server_failed = Some(error);
                WayState::Ended
            }
        };
        let up = match self.up.copy(cx, client, server) {
            Ok(state) => state,
            Err(WayError::Write(error)) => return Poll::Ready(RelayReason::Server(error)),
            Err(WayError::Read(error)) => {
                self.client_failed = Some(error);
                WayState::Ended
            }
        };
        if self.is_over() {
            return Poll::Ready(match self.down.ended {
                true => RelayReason::ServerEnded,
                false => RelayReason::ClientEnded,
            });
        }
        if down == WayState::MayGoOn || up == WayState::MayGoOn {
            net::defer(cx.waker());
        }
        if let Err(reason) = self.shut_down(cx, client, server) {
            return Poll::Ready(reason);
        }
        let moved = before != (self.up.received, self.up.sent, self.down.received, self.down.sent);
        ready!(self.poll_timeout(cx, moved, down == WayState::Delayed || up == WayState::Delayed));
        Poll::Ready(RelayReason::TimedOut)
    }

    /// Whether one side has ended and its data is delivered. Data for a side that has ended does
    /// not matter.
    fn is_over(&self) -> bool {
        let (client_ended, server_ended) = (self.up.ended, self.down.ended);
        let (for_server, for_client) = (self.up.has_pending(), self.down.has_pending());
        match self.half_close && !self.is_cut() {
            true => client_ended && server_ended && !for_server && !for_client,
            false => (client_ended || server_ended && !for_client) && (server_ended || !for_server),
        }
    }

    fn is_cut(&self) -> bool {
        self.up.is_cut || self.down.is_cut
    }

    /// With `proxy_half_close`, shuts down sending to one side after the other has ended.
    fn shut_down(
        &mut self,
        cx: &mut Context<'_>,
        client: &mut Stream,
        server: &mut Stream,
    ) -> Result<(), RelayReason> {
        if !self.half_close || self.is_cut() {
            return Ok(());
        }
        if self.up.ended
            && !self.up.has_pending()
            && let Poll::Ready(Err(error)) = self.up.poll_shutdown(cx, server)
        {
            return Err(RelayReason::Server(error));
        }
        if self.down.ended
            && !self.down.has_pending()
            && let Poll::Ready(Err(error)) = self.down.poll_shutdown(cx, client)
        {
            return Err(RelayReason::Client(error));
        }
        Ok(())
    }

    /// Data in either direction restarts the timeout. It is suspended while a rate delays a
    /// direction.
    fn poll_timeout(&mut self, cx: &mut Context<'_>, moved: bool, is_delayed: bool) -> Poll<()> {
        if is_delayed {
            self.is_timed = false;
            return Poll::Pending;
        }
        match std::mem::replace(&mut self.is_timed, true) && !moved {
            true => self.timer.poll(cx),
            false => self.timer.poll_anew(self.timeout_ms, cx),
        }
    }
}

impl RelayEnd {
    /// Relays a break: if the stream of one side was cut off, the other side receives no regular
    /// end.
    pub(super) fn break_off(&self, client: &mut Stream, server: &mut Stream) {
        let (client_broke, server_broke) = match self.reason {
            RelayReason::TimedOut => (true, true),
            RelayReason::Client(_) => (true, self.server_cut),
            RelayReason::Server(_) => (self.client_cut, true),
            RelayReason::ClientEnded | RelayReason::ServerEnded => {
                (self.client_cut, self.server_cut)
            }
        };
        if server_broke {
            client.break_off();
        }
        if client_broke {
            server.break_off();
        }
    }

    /// Logs the end in nginx's words.
    pub(super) fn log(self, x: &mut StreamSession) {
        if let Some(error) = self.server_failed {
            x.action = "proxying and reading from upstream";
            x.log(level(&error, Level::Error), format_args!("recv() failed{}", Errno(&error)));
        }
        if let Some(error) = self.client_failed {
            x.action = "proxying and reading from client";
            x.log(level(&error, Level::Info), format_args!("recv() failed{}", Errno(&error)));
        }
        match self.reason {
            RelayReason::ClientEnded => log_disconnected(x, "client"),
            RelayReason::ServerEnded => log_disconnected(x, "upstream"),
            RelayReason::TimedOut => {
                let error = net::timed_out();
                x.action = "proxying connection";
                x.log(Level::Info, format_args!("connection timed out{}", Errno(&error)));
            }
            RelayReason::Client(error) => {
                x.action = "proxying and sending to client";
                x.log(level(&error, Level::Info), format_args!("send() failed{}", Errno(&error)));
            }
            RelayReason::Server(error) => {
                x.action = "proxying and sending to upstream";
                x.log(level(&error, Level::Error), format_args!("send() failed{}", Errno(&error)));
            }
        }
    }
}

/// The level of an error: `of_peer` for one that a peer can cause, otherwise `alert`.
pub(super) fn level(error: &io::Error, of_peer: Level) -> Level {
    use io::ErrorKind::{
        BrokenPipe, ConnectionRefused, ConnectionReset, HostUnreachable, InvalidData, NetworkDown,
        NetworkUnreachable, NotConnected, TimedOut, UnexpectedEof,
    };
    match error.kind() {
        BrokenPipe | ConnectionRefused | ConnectionReset | HostUnreachable | InvalidData
        | NetworkDown | NetworkUnreachable | NotConnected | TimedOut | UnexpectedEof => of_peer,
        _ => Level::Alert,
    }
}

fn log_disconnected(x: &StreamSession, who: &str) {
    if !x.logs(Level::Info) {
        return;
    }
    let (from_client, to_client) = (x.bytes_received, x.bytes_sent);
    let (from_server, to_server) = x.upstream.bytes();
    x.log_bare(format_args!(
        "{who} disconnected, bytes from/to client:{from_client}/{to_client}, bytes from/to \
         upstream:{from_server}/{to_server}"
    ));
}
