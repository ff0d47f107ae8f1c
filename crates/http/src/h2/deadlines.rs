//! What happens when a deadline of a connection passes.

use std::task::{Context, Poll};

use net::clock;
use observe::Level;
use wire::http2::Http2Code;

use super::connection::Http2Connection;
use super::timers::{ClientWait, Http2Timers};

/// How long a connection is idle before it is parked, or at least releases the memory of its
/// streams.
const PARK_AFTER_MS: u64 = 1500;

impl<F: Future<Output = ()>> Http2Connection<F> {
    /// Checks the deadlines. Returns whether one has passed.
    pub(super) fn poll_timers(&mut self, cx: &mut Context<'_>) -> bool {
        self.poll_write_deadline(cx) | self.poll_client_deadline(cx)
    }

    fn poll_write_deadline(&mut self, cx: &mut Context<'_>) -> bool {
        if self.shared.endpoint.borrow().output().is_empty() {
            self.timers.note_written();
            return false;
        }
        let timeout_ms = self.policy(|location| location.core.output.send_timeout_ms);
        if self.timers.poll_write(cx, timeout_ms).is_pending() {
            return false;
        }
        self.log(Level::Info, format_args!("client timed out"));
        self.lose_client();
        true
    }

    fn poll_client_deadline(&mut self, cx: &mut Context<'_>) -> bool {
        let has_block = self.shared.endpoint.borrow().has_partial_block();
        let is_idle = self.streams.len() == 0 && !has_block;
        if is_idle && self.waiting.is_none() {
            self.waiting = Some(self.context.counts.wait());
            self.timers.since_ms = clock::now_ms();
        }
        if has_block {
            let timeout_ms = self.header_timeout_ms();
            let waits = self.timers.poll_client(cx, ClientWait::Block, timeout_ms);
            if waits.is_ready() {
                self.shared.endpoint.borrow_mut().abandon_block();
                // The rest of the block gets the same time again.
                self.timers.waits_for.set(ClientWait::Nothing);
            }
            return waits.is_ready();
        }
        if !is_idle || self.shared.endpoint.borrow().is_going_away() {
            self.timers.waits_for.set(ClientWait::Nothing);
            return false;
        }
        self.poll_idle(cx)
    }

    /// The deadlines of a connection without streams.
    fn poll_idle(&mut self, cx: &mut Context<'_>) -> bool {
        if !self.timers.is_used {
            let timeout_ms = self.timers.left_ms.unwrap_or_else(|| self.header_timeout_ms());
            return self.end_idle(|timers| timers.poll_client(cx, ClientWait::First, timeout_ms));
        }
        if self.context.wants_back() {
            return self.end_idle(|_| Poll::Ready(()));
        }
        let timeout_ms = self.policy(|location| location.core.keepalive.timeout_ms);
        let left_ms = self.idle_left_ms();
        let is_long = timeout_ms > PARK_AFTER_MS && left_ms > 0;
        if self.timers.waits_for.get() != ClientWait::Next && is_long {
            let waits =
                self.timers.poll_client(cx, ClientWait::Parking, PARK_AFTER_MS.min(left_ms));
            if waits.is_pending() {
                return false;
            }
            self.streams.shrink();
            if self.can_park() {
                self.is_unused = true;
                return true;
            }
        }
        self.end_idle(|timers| timers.poll_client(cx, ClientWait::Next, left_ms))
    }

    fn end_idle(&mut self, poll: impl FnOnce(&Http2Timers) -> Poll<()>) -> bool {
        let is_over = poll(&self.timers).is_ready();
        if is_over {
            self.go_away(Http2Code::NO_ERROR);
        }
        is_over
    }

    fn header_timeout_ms(&self) -> u64 {
        let generation = self.context.generation();
        generation.listen(self.client.listen).map_or(0, |listen| {
            generation.server(listen.names.default).reading.client_header_timeout_ms
        })
    }
}
