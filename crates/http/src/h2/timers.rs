//! The deadlines of a connection. Each stream also has deadlines of its own.

use std::cell::Cell;
use std::task::{Context, Poll};

use net::{Timer, clock};
use wire::http2::Http2Endpoint;

use super::totals;

pub(super) struct Http2Timers {
    /// For the client's next request, or for the end of a header block.
    client: Timer,
    pub(super) waits_for: Cell<ClientWait>,
    waits_since_ms: Cell<u64>,
    /// For the client to read output.
    write: Timer,
    is_writing: Cell<bool>,
    /// The time left for the first head, if a handshake or a PROXY header took some of it.
    pub(super) left_ms: Option<u64>,
    /// Whether a stream has begun.
    pub(super) is_used: bool,
    pub(super) since_ms: u64,
    /// The second up to which the machine's budgets have grown.
    replenished_s: u64,
}

/// What the connection waits for from its client.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ClientWait {
    Nothing,
    /// The first stream.
    First,
    /// The rest of a header block of this stream.
    Block(u32),
    /// The same, of a block that will be discarded. The connection cannot be used without it.
    DiscardedBlock(u32),
    /// Another stream, until the connection is parked.
    Parking,
    /// Another stream.
    Next,
}

impl Http2Timers {
    /// The deadlines of a new connection, which has `left_ms` for its first head if some of that
    /// time has passed.
    pub(super) fn first(left_ms: Option<u64>) -> Self {
        let now_ms = clock::now_ms();
        Self { left_ms, ..Self::new(now_ms, now_ms / 1000) }
    }

    /// The deadlines of a connection that was parked and has been idle since `since_ms`.
    pub(super) fn next(since_ms: u64, replenished_s: u64) -> Self {
        Self { is_used: true, ..Self::new(since_ms, replenished_s) }
    }

    fn new(since_ms: u64, replenished_s: u64) -> Self {
        Self {
            client: Timer::new(),
            waits_for: Cell::new(ClientWait::Nothing),
            waits_since_ms: Cell::new(since_ms),
            write: Timer::new(),
            is_writing: Cell::new(false),
            left_ms: None,
            is_used: false,
            since_ms,
            replenished_s,
        }
    }

    pub(super) fn replenished_s(&self) -> u64 {
        self.replenished_s
    }

    /// A stream begins.
    pub(super) fn note_stream(&mut self) {
        self.is_used = true;
    }

    /// Some of the output was written.
    pub(super) fn note_written(&self) {
        self.is_writing.set(false);
    }

    /// Once a second, lets budgets grow and adds the counts to the totals.
    pub(super) fn replenish(&mut self, endpoint: &mut Http2Endpoint) {
        let now_s = clock::now_ms() / 1000;
        if now_s > self.replenished_s {
            endpoint.replenish(u32::try_from(now_s - self.replenished_s).unwrap_or(u32::MAX));
            self.replenished_s = now_s;
            totals::add(&endpoint.take_counts());
        }
    }

    pub(super) fn poll_client(
        &self,
        cx: &mut Context<'_>,
        wait: ClientWait,
        timeout_ms: u64,
    ) -> Poll<()> {
        if self.waits_for.replace(wait) != wait {
            self.client.set(timeout_ms);
            self.waits_since_ms.set(clock::now_ms());
        }
        self.client.poll(cx)
    }

    /// How long the wait for the client has lasted.
    pub(super) fn waited_ms(&self) -> u64 {
        clock::now_ms().saturating_sub(self.waits_since_ms.get())
    }

    pub(super) fn poll_write(&self, cx: &mut Context<'_>, timeout_ms: u64) -> Poll<()> {
        if !self.is_writing.replace(true) {
            self.write.set(timeout_ms);
        }
        self.write.poll(cx)
    }
}
