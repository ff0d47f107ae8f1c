//! A connection: the socket, the one deadline, and the bytes that arrived and are nobody's yet.
//!
//! What belongs to one request is in [`RequestStream`](super::request_stream::RequestStream).

use std::cell::{Cell, RefCell};
use std::io;
use std::task::{Context, Poll, ready};

use net::{Stream, Timer, buffers, memory};

/// What a connection and the request on it share.
pub(super) struct Link {
    pub(super) stream: RefCell<Stream>,
    /// Bytes that arrived after the last head, or after what was taken of its body.
    pub(super) input: RefCell<Vec<u8>>,
    timer: Timer,
    waits_for: Cell<WaitsFor>,
    /// Steps since others had their turn.
    steps: Cell<u32>,
    /// Batches written; counted up to two.
    writes: Cell<u8>,
}

/// Reads of a body, or requests that have arrived already, before other connections get their turn.
const STEPS_PER_TURN: u32 = 16;

/// What the deadline is for. There is one: a connection does one thing at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitsFor {
    Nothing,
    /// The first bytes of a request.
    Request,
    /// The same, until it is worth parking.
    Parking,
    /// The least time that the connection is kept although the worker is about to stop.
    Shutdown,
    /// The rest of a head.
    Head,
    /// More of a body that somebody reads.
    Body,
    /// More of a body that nobody wants, or whatever comes while lingering.
    Rest,
    /// Room in the socket.
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

    /// The socket, which nobody else has.
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

    /// Sets the deadline of a wait, unless it goes on already.
    pub(super) fn begin_wait(&self, waits_for: WaitsFor, timeout_ms: u64) {
        if self.waits_for.replace(waits_for) != waits_for {
            self.timer.set(timeout_ms);
        }
    }

    /// The wait is over; the next one has a deadline of its own.
    pub(super) fn progress(&self) {
        self.waits_for.set(WaitsFor::Nothing);
    }

    /// The same, if it was a wait for this. Others go on: a client that sends without reading does
    /// not gain time for reading.
    pub(super) fn progress_of(&self, waits_for: WaitsFor) {
        if self.waits_for.get() == waits_for {
            self.progress();
        }
    }

    /// Whether bytes of the next request are there already.
    pub(super) fn has_input(&self) -> bool {
        !self.input.borrow().is_empty()
    }

    /// Keeps what arrived behind a head.
    pub(super) fn keep_rest(&self, received: &mut Vec<u8>, head_bytes: usize) {
        if received.len() > head_bytes {
            let mut rest = buffers::lend();
            rest.extend_from_slice(&received[head_bytes..]);
            received.truncate(head_bytes);
            self.input.replace(rest);
        }
    }

    /// Ready; now and then only after others had their turn.
    pub(super) fn poll_turn(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.steps.set(self.steps.get() + 1);
        if self.steps.get() <= STEPS_PER_TURN {
            return Poll::Ready(());
        }
        self.steps.set(0);
        net::defer(cx.waker());
        Poll::Pending
    }

    /// Reads what is there behind what has arrived. 0 is the end.
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

    /// Moves what has arrived into the buffer's spare room. How much that is.
    pub(super) fn take_input(&self, buffer: &mut Vec<u8>) -> usize {
        let mut input = self.input.borrow_mut();
        let count = input.len().min(buffer.capacity() - buffer.len());
        if count > 0 {
            buffer.extend_from_slice(&input[..count]);
            consume(&mut input, count);
        }
        count
    }

    /// Reads and forgets whatever comes. Ready once the connection has ended.
    pub(super) fn poll_nowhere(&self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            consume(&mut self.input.borrow_mut(), usize::MAX);
            match ready!(self.poll_input(cx)) {
                Ok(1..) => self.progress_of(WaitsFor::Rest),
                Ok(0) | Err(_) => return Poll::Ready(()),
            }
        }
    }

    /// Before a write: from the second one on, what the client has not acknowledged yet must not
    /// hold back what follows (RFC 896 meets delayed acknowledgements).
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

    /// An interim reply goes out: the reply is not the first write any more.
    pub(super) fn note_interim(&self) {
        self.writes.set(self.writes.get().max(1));
    }

    /// Whether the client has sent more, or may have.
    pub(super) fn may_have_more(&self) -> bool {
        self.has_input() || self.stream.borrow().may_have_unread()
    }
}

/// Removes what was used; an empty buffer is not kept.
pub(super) fn consume(input: &mut Vec<u8>, used: usize) {
    if used < input.len() {
        input.drain(..used);
    } else {
        buffers::give_back(std::mem::take(input));
    }
}
