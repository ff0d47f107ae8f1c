//! A connection as its driver and its exchange share it: the socket, the one deadline, the bytes
//! that arrived and are nobody's yet, and the body on its way.
//!
//! Only the driver has the socket. An exchange sees a [`Downstream`].

use std::cell::{Cell, RefCell};
use std::io::{self, IoSlice};
use std::task::{Context, Poll, Waker, ready};

use net::{Stream, Timer, buffers};
use wire::http1::framing::Body;

use super::incoming::Incoming;
use crate::exchange::{BodyRules, Downstream, RequestBodyError};

/// What a client is told that waits with its body.
pub(super) const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// A connection's inner parts.
pub(super) struct Link {
    pub(super) stream: RefCell<Stream>,
    /// Bytes that arrived after the last head, or after what was taken of its body.
    pub(super) input: RefCell<Vec<u8>>,
    pub(super) body: RefCell<Incoming>,
    timer: Timer,
    waits_for: Cell<WaitsFor>,
    head_length: Cell<u64>,
    /// Whether the request had arrived before the reply to the last one was sent.
    pipelined: Cell<bool>,
    /// Whether somebody waits for more of the body.
    has_reader: Cell<bool>,
    /// Steps since others had their turn.
    steps: Cell<u32>,
    /// Batches written; counted up to two.
    writes: Cell<u8>,
    /// What of interim replies found no room.
    pub(super) unsent: RefCell<Vec<u8>>,
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
            body: RefCell::default(),
            timer: Timer::new(),
            waits_for: Cell::new(WaitsFor::Nothing),
            head_length: Cell::new(0),
            pipelined: Cell::new(false),
            has_reader: Cell::new(false),
            steps: Cell::new(0),
            writes: Cell::new(0),
            unsent: RefCell::default(),
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
    fn progress_of(&self, waits_for: WaitsFor) {
        if self.waits_for.get() == waits_for {
            self.progress();
        }
    }

    /// Whether bytes of the next request are there already. `kept`: it is not the first; those of
    /// the first came with a PROXY protocol header, not before a reply.
    pub(super) fn begin(&self, kept: bool) -> bool {
        let has_begun = !self.input.borrow().is_empty();
        self.pipelined.set(has_begun && kept);
        has_begun
    }

    pub(super) fn is_pipelined(&self) -> bool {
        self.pipelined.get()
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

    /// Before a future is polled that may read the body.
    pub(super) fn forget_reader(&self) {
        self.has_reader.set(false);
    }

    /// Ready once the client is gone. While somebody reads the body, that is seen there.
    pub(super) fn poll_gone(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.has_reader.get() {
            return Poll::Pending;
        }
        self.stream.borrow_mut().poll_closed(cx)
    }

    /// Ready; now and then only after others had their turn.
    pub(super) fn poll_turn(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.steps.set(self.steps.get() + 1);
        if self.steps.get() <= STEPS_PER_TURN {
            return Poll::Ready(());
        }
        self.steps.set(0);
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Reads what is there behind what has arrived. 0 is the end.
    pub(super) fn poll_input(&self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        ready!(self.poll_turn(cx));
        let mut input = self.input.borrow_mut();
        if !input.is_empty() && input.len() == input.capacity() {
            input.reserve(buffers::BUFFER_SIZE);
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

    /// A body begins; what has arrived of it is in `input`.
    pub(super) fn begin_body(&self, head_length: u64, body: Body, expects_continue: bool) {
        self.head_length.set(head_length);
        *self.body.borrow_mut() = Incoming::new(body, expects_continue);
    }

    /// Throws away what has arrived of a body.
    fn discard_input(&self) -> Result<(), RequestBodyError> {
        let mut body = self.body.borrow_mut();
        let mut input = self.input.borrow_mut();
        let read = body.read;
        let used = body.take(&input, usize::MAX, 0, |_| {})?;
        body.read = read;
        consume(&mut input, used);
        Ok(())
    }

    /// Throws away the body as it comes. Ready once it has ended, or the connection has: `false`.
    pub(super) fn poll_discard(
        &self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<bool, RequestBodyError>> {
        loop {
            self.discard_input()?;
            if self.body.borrow().is_ended() {
                return Poll::Ready(Ok(true));
            }
            match ready!(self.poll_input(cx)) {
                Ok(1..) => self.progress_of(WaitsFor::Rest),
                Ok(0) => return Poll::Ready(Ok(false)),
                Err(error) => return Poll::Ready(Err(RequestBodyError::Connection(error))),
            }
        }
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

    /// Throws away what comes of a body that nobody wants. Ready where there is none, or no more;
    /// where its end is lost, never.
    pub(super) fn poll_unwanted(&self, cx: &mut Context<'_>) -> Poll<()> {
        let (unwanted, lost) = {
            let body = self.body.borrow();
            (!body.claimed && !body.is_ended(), body.lost)
        };
        if lost {
            return Poll::Pending;
        }
        if unwanted && !matches!(ready!(self.poll_discard(cx)), Ok(true)) {
            self.lose_body();
            return Poll::Pending;
        }
        Poll::Ready(())
    }

    /// Whether the client waits to be told to go on with its body, which it will be now.
    pub(super) fn take_expectation(&self) -> bool {
        std::mem::take(&mut self.body.borrow_mut().expects_continue)
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

    /// Gives up finding the end of the body, or of what should have been a request.
    pub(super) fn lose_body(&self) {
        *self.body.borrow_mut() = Incoming::lost();
    }

    /// Whether the client has sent more, or may have.
    pub(super) fn may_have_more(&self) -> bool {
        self.pipelined.get()
            || !self.input.borrow().is_empty()
            || self.stream.borrow().may_have_unread()
    }

    /// Takes the bytes of a body that have arrived.
    fn take_body(
        &self,
        body: &mut Incoming,
        out: &mut Vec<u8>,
        room: usize,
        size_max: u64,
    ) -> Result<(), RequestBodyError> {
        let mut input = self.input.borrow_mut();
        let used = body.take(&input, room, size_max, |data| out.extend_from_slice(data))?;
        consume(&mut input, used);
        Ok(())
    }

    /// Reads more of a body: past `input` where no other bytes can be among them.
    fn poll_more(
        &self,
        cx: &mut Context<'_>,
        body: &mut Incoming,
        out: &mut Vec<u8>,
    ) -> Poll<io::Result<usize>> {
        let Some(left) = body.plain_length() else { return self.poll_input(cx) };
        ready!(self.poll_turn(cx));
        let most = usize::try_from(left).unwrap_or(usize::MAX);
        let read = ready!(self.stream.borrow_mut().poll_read_most(cx, out, most))?;
        body.advance(read);
        Poll::Ready(Ok(read))
    }

    /// Tells the client to go on. So few bytes always find room.
    fn send_continue(&self, cx: &mut Context<'_>) -> Result<(), RequestBodyError> {
        let written = self.stream.borrow_mut().poll_write(cx, &[IoSlice::new(CONTINUE)]);
        match written {
            Poll::Ready(Ok(count)) if count == CONTINUE.len() => Ok(()),
            Poll::Ready(Err(error)) => Err(RequestBodyError::Connection(error)),
            _ => Err(RequestBodyError::Connection(io::ErrorKind::WriteZero.into())),
        }
    }
}

impl Downstream for Link {
    fn poll_body(
        &self,
        cx: &mut Context<'_>,
        out: &mut Vec<u8>,
        rules: BodyRules,
    ) -> Poll<Result<usize, RequestBodyError>> {
        let body = &mut *self.body.borrow_mut();
        body.claimed = true;
        if std::mem::take(&mut body.expects_continue) {
            self.send_continue(cx)?;
        }
        let before = out.len();
        loop {
            let room = out.capacity() - out.len();
            self.take_body(body, out, room, rules.size_max)?;
            if out.len() > before || room == 0 || body.is_ended() {
                self.progress_of(WaitsFor::Body);
                return Poll::Ready(Ok(out.len() - before));
            }
            match self.poll_more(cx, body, out) {
                Poll::Ready(Ok(1..)) => self.progress_of(WaitsFor::Body),
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(RequestBodyError::Closed)),
                Poll::Ready(Err(error)) => {
                    return Poll::Ready(Err(RequestBodyError::Connection(error)));
                }
                Poll::Pending => {
                    self.has_reader.set(true);
                    ready!(self.poll_deadline(cx, WaitsFor::Body, rules.timeout_ms));
                    return Poll::Ready(Err(RequestBodyError::TimedOut));
                }
            }
        }
    }

    fn has_whole_body(&self) -> bool {
        self.body.borrow().is_whole_in(&self.input.borrow())
    }

    fn discard_body(&self) -> Result<bool, RequestBodyError> {
        // What has arrived is taken at once; whoever waits for the rest registers for it then.
        match self.poll_discard(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Err(error)) => {
                self.lose_body();
                Err(error)
            }
            Poll::Ready(Ok(ended)) => Ok(ended),
            Poll::Pending => Ok(false),
        }
    }

    fn send_interim(&self, reply: &[u8]) -> usize {
        let mut unsent = self.unsent.borrow_mut();
        let mut sent = 0;
        if unsent.is_empty() {
            self.writes.set(self.writes.get().max(1));
            // Whoever waits for room registers for it; that the client is gone is seen elsewhere.
            let mut cx = Context::from_waker(Waker::noop());
            let written = self.stream.borrow_mut().poll_write(&mut cx, &[IoSlice::new(reply)]);
            if let Poll::Ready(Ok(count)) = written {
                sent = count;
            }
        }
        unsent.extend_from_slice(&reply[sent..]);
        sent
    }

    fn request_length(&self) -> u64 {
        self.head_length.get() + self.body.borrow().read
    }
}

/// Removes what was used; an empty buffer is not kept.
fn consume(input: &mut Vec<u8>, used: usize) {
    if used < input.len() {
        input.drain(..used);
    } else {
        buffers::give_back(std::mem::take(input));
    }
}
