//! Waiting for a request without a buffer and an exchange, and after a while without a task.

use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll, ready};

use net::{buffers, clock};
use observe::{Errno, ErrorLog, Level, Text};

use super::connection::Connection;
use super::idle::{Idle, WaitOutcome};
use super::link::WaitsFor;
use crate::drive::Preread;

/// How long a connection is idle before it is parked.
const PARK_AFTER_MS: u64 = 1500;

/// How a wait ended.
enum Woken {
    Bytes,
    Idle,
    Closed,
    Failed(io::Error),
    TimedOut,
}

impl Connection {
    /// The wait for the first request, which lasts `client_header_timeout`.
    pub(super) fn first_idle(&self, preread: Preread) -> Idle {
        self.link.input.replace(preread.bytes);
        if let Some(timeout_ms) = preread.left_ms {
            // The time for the first head has begun before.
            self.link.begin_wait(WaitsFor::Head, timeout_ms);
            return Idle::First { timeout_ms };
        }
        let generation = self.context.generation();
        let timeout_ms = generation.listen(self.client.listen).map_or(0, |listen| {
            generation.server(listen.names.default).reading.client_header_timeout_ms
        });
        Idle::First { timeout_ms }
    }

    /// Waits for the first bytes of a request.
    pub(super) async fn wait_for_request(&self, idle: Idle) -> WaitOutcome {
        if self.link.has_input() {
            poll_fn(|cx| self.link.poll_turn(cx)).await;
            // Input before the first request came with a PROXY protocol header.
            return WaitOutcome::Request { pipelined: matches!(idle, Idle::Kept { .. }) };
        }
        let waiting = self.context.counts.wait();
        match poll_fn(|cx| self.poll_request(cx, idle)).await {
            Woken::Bytes => WaitOutcome::Request { pipelined: false },
            Woken::Idle => WaitOutcome::Park { waiting, left_ms: idle.left_ms() },
            woken => {
                self.log_end(idle, woken);
                WaitOutcome::Over
            }
        }
    }

    fn poll_request(&self, cx: &mut Context<'_>, idle: Idle) -> Poll<Woken> {
        ready!(self.context.wait_budget.poll_available(cx));
        let mut buffer = Vec::new();
        let woken = match self.link.stream.borrow_mut().poll_read(cx, &mut buffer) {
            Poll::Ready(Ok(1..)) => {
                self.link.input.replace(buffer);
                return Poll::Ready(Woken::Bytes);
            }
            Poll::Ready(Ok(0)) => Poll::Ready(Woken::Closed),
            Poll::Ready(Err(error)) => Poll::Ready(Woken::Failed(error)),
            Poll::Pending if matches!(idle, Idle::Kept { .. }) && self.context.wants_back() => {
                Poll::Ready(Woken::TimedOut)
            }
            Poll::Pending if self.may_park(idle) => {
                let waited = self.link.poll_deadline(cx, WaitsFor::Parking, PARK_AFTER_MS);
                waited.map(|()| Woken::Idle)
            }
            Poll::Pending => self.poll_end(cx, idle).map(|()| Woken::TimedOut),
        };
        buffers::give_back(buffer);
        woken
    }

    /// Whether the connection may be parked: it has served a request, and has time left after
    /// [`PARK_AFTER_MS`].
    fn may_park(&self, idle: Idle) -> bool {
        matches!(idle, Idle::Kept { min_timeout_ms: 0..PARK_AFTER_MS, .. })
            && idle.left_ms() > PARK_AFTER_MS
            && self.context.can_park
            && self.context.keeps(&self.client)
    }

    /// Ready when the connection has waited long enough. If the worker is about to stop, a
    /// connection that has served a request only waits for `keepalive_min_timeout`.
    fn poll_end(&self, cx: &mut Context<'_>, idle: Idle) -> Poll<()> {
        match idle {
            // The time for the first head begins here.
            Idle::First { timeout_ms } => self.link.poll_deadline(cx, WaitsFor::Head, timeout_ms),
            Idle::Kept { min_timeout_ms, since_ms, .. } if !self.context.keeps(&self.client) => {
                match (since_ms + min_timeout_ms).saturating_sub(clock::now_ms()) {
                    0 => Poll::Ready(()),
                    left_ms => self.link.poll_deadline(cx, WaitsFor::Shutdown, left_ms),
                }
            }
            Idle::Kept { .. } => self.link.poll_deadline(cx, WaitsFor::Request, idle.left_ms()),
        }
    }

    fn log_end(&self, idle: Idle, woken: Woken) {
        let generation = self.context.generation();
        let Some(listen) = generation.listen(self.client.listen) else { return };
        let outer = generation.server(listen.names.default).outer;
        let log = &*generation.location(outer).core.error_log;
        if !log.enabled(Level::Info, self.client.source()) {
            return;
        }
        match (idle, woken) {
            (Idle::First { .. }, woken) => {
                let address = &listen.address;
                self.log_first_end(log, woken, address);
            }
            (Idle::Kept { .. }, Woken::Closed) => {
                let client = Text(self.client.address());
                let message = format_args!("client {client} closed keepalive connection");
                log.write(Level::Info, self.client.source(), message, |_| {});
            }
            (Idle::Kept { .. }, _) => {}
        }
    }

    fn log_first_end(&self, log: &ErrorLog, woken: Woken, address: &net::Address) {
        let info = |message: std::fmt::Arguments<'_>| {
            self.client.log(log, Level::Info, message, "waiting for request", address);
        };
        match woken {
            Woken::Closed => info(format_args!("client closed connection")),
            Woken::Failed(error) => info(format_args!("recv() failed{}", Errno(&error))),
            Woken::TimedOut => info(format_args!("client timed out{}", Errno(&net::timed_out()))),
            Woken::Bytes | Woken::Idle => {}
        }
    }
}
