//! What happens when a deadline of a connection passes.

use std::task::{Context, Poll};

use net::clock;
use observe::Level;
use wire::http2::{Http2Code, PartialBlock};

use super::connection::Http2Connection;
use super::timers::{ClientWait, Http2Timers};

/// How long a connection is idle before it is parked, or at least releases the memory of its
/// streams.
const PARK_AFTER_MS: u64 = 1500;

/// How long a client has for its first head, or the rest of a header block, before its connection
/// may be ended for others.
const GIVES_WAY_AFTER_MS: u64 = 500;

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
        let partial_block = self.shared.endpoint.borrow().partial_block();
        let is_idle = self.streams.len() == 0 && partial_block.is_none();
        if is_idle && self.waiting.is_none() {
            self.waiting = Some(self.context.counts.wait());
            self.timers.since_ms = clock::now_ms();
        }
        match partial_block {
            // While we do not read, an incomplete block is not the client's fault.
            Some(block) if !self.reads_done && !self.was_backpressured => {
                self.poll_block(cx, block)
            }
            None if is_idle && !self.is_going_away() => self.poll_idle(cx),
            _ => {
                self.timers.waits_for.set(ClientWait::Nothing);
                false
            }
        }
    }

    /// The deadlines of a header block. After the first its stream is reset; after the second the
    /// connection ends, since nothing else can be received on it.
    fn poll_block(&mut self, cx: &mut Context<'_>, block: PartialBlock) -> bool {
        let PartialBlock { stream, is_discarded } = block;
        let timeout_ms = self.header_timeout_ms();
        if !is_discarded {
            let waits = self.timers.poll_client(cx, ClientWait::Block(stream), timeout_ms);
            if waits.is_ready() {
                self.shared.endpoint.borrow_mut().abandon_block();
            }
            return waits.is_ready() || self.give_way(GIVES_WAY_AFTER_MS);
        }
        let waits = self.timers.poll_client(cx, ClientWait::DiscardedBlock(stream), timeout_ms);
        if waits.is_ready() {
            self.log(Level::Info, format_args!("client timed out"));
            self.go_away(Http2Code::PROTOCOL_ERROR);
            self.stop_streams();
        }
        waits.is_ready() || self.give_way(GIVES_WAY_AFTER_MS)
    }

    /// The deadlines of a connection without streams.
    fn poll_idle(&mut self, cx: &mut Context<'_>) -> bool {
        if !self.timers.is_used {
            let timeout_ms = self.timers.left_ms.unwrap_or_else(|| self.header_timeout_ms());
            let is_over =
                self.end_idle(|timers| timers.poll_client(cx, ClientWait::First, timeout_ms));
            return is_over || self.give_way(GIVES_WAY_AFTER_MS);
        }
        if self.give_way(0) {
            return true;
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
                self.is_idle = true;
                return true;
            }
        }
        self.end_idle(|timers| timers.poll_client(cx, ClientWait::Next, left_ms))
    }

    /// Ends a connection without streams if others need its place and it has waited for `after_ms`.
    fn give_way(&mut self, after_ms: u64) -> bool {
        let is_written = self.shared.endpoint.borrow().output().is_empty();
        let is_unused = self.streams.len() == 0 && is_written;
        let has_waited = self.timers.waited_ms() >= after_ms;
        self.gives_way = is_unused && has_waited && self.context.wants_back();
        if self.gives_way {
            self.go_away(Http2Code::NO_ERROR);
        }
        self.gives_way
    }

    fn end_idle(&mut self, poll: impl FnOnce(&Http2Timers) -> Poll<()>) -> bool {
        let is_over = poll(&self.timers).is_ready();
        if is_over {
            self.go_away(Http2Code::NO_ERROR);
        }
        is_over
    }

    fn is_going_away(&self) -> bool {
        self.shared.endpoint.borrow().is_going_away()
    }

    fn header_timeout_ms(&self) -> u64 {
        let generation = self.context.generation();
        generation.listen(self.client.listen).map_or(0, |listen| {
            generation.server(listen.names.default).reading.client_header_timeout_ms
        })
    }
}
