//! The link to the client: the socket, the one deadline, and received bytes that are not used yet.
//!
//! The state of a request is in [`RequestStream`](super::request_stream::RequestStream).

use std::cell::{Cell, RefCell};
use std::io;
use std::task::{Context, Poll, ready};

use net::{Stream, Timer, buffers, memory};

/// State that a connection and its request share.
pub(super) struct Link {
    pub(super) stream: RefCell<Stream>,
    /// Bytes received after the last head, or after the part of its body that was taken.
    pub(super) input: RefCell<Vec<u8>>,
    timer: Timer,
    waits_for: Cell<WaitsFor>,
    /// Steps since other connections had their turn.
    steps: Cell<u32>,
    /// The number of batches written, counted up to two.
    writes: Cell<u8>,
}

/// Reads of a body, or pipelined requests, before other connections get their turn.
const STEPS_PER_TURN: u32 = 16;

/// The wait that the deadline limits. A connection waits for one thing at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitsFor {
    Nothing,
    /// The first bytes of a request.
    Request,
    /// The same, until the connection is parked.
    Parking,
    /// The end of `keepalive_min_timeout`, while the worker stops.
    Shutdown,
    /// The rest of a head.
    Head,
    /// More of a body that the exchange reads.
    Body,
    /// More bytes to discard: the rest of a body, or anything while lingering.
    Rest,
    /// Room in the socket's send buffer.
    Room,
    /// The time when more may be sent.
    Rate,
}

impl Link {
    pub(super) fn new(stream: Stream) -> Self {
        Self {
            stream: RefCell::new(stream),
            input: RefCell::default(),
            timer: Timer::new(),
            waits_for: Cell::new(WaitsFor::Nothing),
            steps: Cell::new(0),
            writes: Cell::new(0),
        }
    }

    pub(super) fn into_stream(self) -> Stream {
        self.stream.into_inner()
    }

    /// Ready once this wait has lasted for `timeout_ms` without [`progress`](Self::progress).
    pub(super) fn poll_deadline(
        &self,
        cx: &mut Context<'_>,
        waits_for: WaitsFor,
        timeout_ms: u64,
    ) -> Poll<()> {
        self.begin_wait(waits_for, timeout_ms);
        self.timer.poll(cx)
    }

    /// Sets the deadline of a wait, unless that wait has begun before.
    pub(super) fn begin_wait(&self, waits_for: WaitsFor, timeout_ms: u64) {
        if self.waits_for.replace(waits_for) != waits_for {
            self.timer.set(timeout_ms);
        }
    }

    /// Ends the wait; the next one has a deadline of its own.
    pub(super) fn progress(&self) {
        self.waits_for.set(WaitsFor::Nothing);
    }

    /// Ends the wait if it is this one. A client that sends without reading gains no time for
    /// reading.
    pub(super) fn progress_of(&self, waits_for: WaitsFor) {
        if self.waits_for.get() == waits_for {
            self.progress();
        }
    }

    /// Whether bytes of the next request were received.
    pub(super) fn has_input(&self) -> bool {
        !self.input.borrow().is_empty()
    }

    /// Moves the bytes that follow a head to the input.
    pub(super) fn keep_rest(&self, received: &mut Vec<u8>, head_bytes: usize) {
        if received.len() > head_bytes {
            let mut rest = buffers::lend();
            rest.extend_from_slice(&received[head_bytes..]);
            received.truncate(head_bytes);
            self.input.replace(rest);
        }
    }

    /// Ready, except that after [`STEPS_PER_TURN`] steps other connections get their turn first.
    pub(super) fn poll_turn(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.steps.set(self.steps.get() + 1);
        if self.steps.get() <= STEPS_PER_TURN {
            return Poll::Ready(());
        }
        self.steps.set(0);
        net::defer(cx.waker());
        Poll::Pending
    }

    /// Reads more into the input. Returns 0 at the end of the connection.
    pub(super) fn poll_input(&self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        ready!(self.poll_turn(cx));
        let mut input = self.input.borrow_mut();
        if !input.is_empty() && input.len() == input.capacity() {
            memory::try_reserve(&mut input, buffers::BUFFER_SIZE)?;
        }
        let read = self.stream.borrow_mut().poll_read(cx, &mut input);
        if input.is_empty() {
            buffers::give_back(std::mem::take(&mut input));
        }
        read
    }

    /// Moves input into the spare capacity of `buffer`. Returns the number of bytes.
    pub(super) fn take_input(&self, buffer: &mut Vec<u8>) -> usize {
        let mut input = self.input.borrow_mut();
        let count = input.len().min(buffer.capacity() - buffer.len());
        if count > 0 {
            buffer.extend_from_slice(&input[..count]);
            consume(&mut input, count);
        }
        count
    }

    /// Reads and discards everything. Ready once the connection has ended.
    pub(super) fn poll_discard_all(&self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            consume(&mut self.input.borrow_mut(), usize::MAX);
            match ready!(self.poll_input(cx)) {
                Ok(1..) => self.progress_of(WaitsFor::Rest),
                Ok(0) | Err(_) => return Poll::Ready(()),
            }
        }
    }

    /// Called before a write. From the second one on, data that the client has not acknowledged
    /// must not delay what follows (Nagle's algorithm, RFC 896, and delayed acknowledgements), so
    /// TCP_NODELAY is set.
    pub(super) fn note_write(&self) {
        match self.writes.get() {
            0 => self.writes.set(1),
            1 => {
                self.writes.set(2);
                self.stream.borrow().set_nodelay();
            }
            _ => {}
        }
    }

    /// Called before an interim reply: the reply will not be the first write.
    pub(super) fn note_interim(&self) {
        self.writes.set(self.writes.get().max(1));
    }

    /// Whether the client has sent more, or may have sent more.
    pub(super) fn may_have_more(&self) -> bool {
        self.has_input() || self.stream.borrow().may_have_unread()
    }
}

/// Removes the first `used` bytes; an empty buffer is given back.
pub(super) fn consume(input: &mut Vec<u8>, used: usize) {
    if used < input.len() {
        input.drain(..used);
    } else {
        buffers::give_back(std::mem::take(input));
    }
}
