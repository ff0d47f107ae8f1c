//! The link between a connection and the exchange of one stream: the received part of the request's
//! body, and whether the client is gone. The exchange sees nothing else of its connection.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use net::Timer;
use wire::http2::counts::Http2Count;
use wire::http2::{FieldBlock, Http2Code, StreamKey};

use super::ready::StreamWaker;
use super::request_trailers;
use super::shared::{Http2Shared, WindowHold};
use crate::exchange::{BodyRules, Downstream, Fields, RequestBodyError};

/// The window of a stream whose body is being read.
const READ_WINDOW: u32 = 256 * 1024;

/// How long a stream with a complete reply waits for the end of a body of unknown length.
const REST_MS: u64 = 100;

/// How much memory of a body's buffer is reused for the next stream.
const INPUT_KEPT_MAX: usize = 16 * 1024;

/// Shared between a connection and the exchange of one stream.
pub(super) struct StreamLink {
    pub(super) shared: Rc<Http2Shared>,
    pub(super) key: Cell<StreamKey>,
    pub(super) waker: Arc<StreamWaker>,
    /// The received part of the body, from which `input_read` bytes were read.
    input: RefCell<Vec<u8>>,
    input_read: Cell<usize>,
    is_ended: Cell<bool>,
    /// The fields that followed the body and may be passed on.
    request_trailers: RefCell<Option<Rc<Fields>>>,
    /// What is wrong with the body, to be read after "client ".
    fault: Cell<Option<&'static str>>,
    /// The client has reset the stream, or is gone.
    is_gone: Cell<bool>,
    /// The exchange reads the body.
    is_claimed: Cell<bool>,
    /// Nothing will read the body.
    is_unwanted: Cell<bool>,
    received: Cell<u64>,
    head_length: Cell<u64>,
    /// Whether the client was too slow.
    pub(super) timed_out: Cell<bool>,
    /// Whether windows hold data back.
    pub(super) is_blocked: Cell<bool>,
    /// Bytes of frames' heads among what was sent of a body.
    pub(super) overhead: Cell<u64>,
    /// The fields that follow the reply's body. Their memory is reused by the next stream.
    pub(super) trailers: RefCell<Fields>,
    timer: Timer,
    waits_for: Cell<StreamWait>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamWait {
    Nothing,
    /// More of a body that the exchange reads.
    Body,
    /// The rest of a body that is discarded.
    Rest,
    /// Room, in a window or in the output.
    Room,
    /// The time when more may be sent.
    Rate,
}

impl StreamLink {
    pub(super) fn new(shared: Rc<Http2Shared>, key: StreamKey, waker: Arc<StreamWaker>) -> Self {
        Self {
            shared,
            key: Cell::new(key),
            waker,
            input: RefCell::default(),
            input_read: Cell::new(0),
            is_ended: Cell::new(false),
            request_trailers: RefCell::default(),
            fault: Cell::new(None),
            is_gone: Cell::new(false),
            is_claimed: Cell::new(false),
            is_unwanted: Cell::new(false),
            received: Cell::new(0),
            head_length: Cell::new(0),
            timed_out: Cell::new(false),
            is_blocked: Cell::new(false),
            overhead: Cell::new(0),
            trailers: RefCell::default(),
            timer: Timer::new(),
            waits_for: Cell::new(StreamWait::Nothing),
        }
    }

    /// Prepares the link for another stream, whose head was received.
    pub(super) fn renew(&self, key: StreamKey, is_ended: bool) {
        self.key.set(key);
        self.drop_input();
        self.is_ended.set(is_ended);
        self.request_trailers.take();
        self.fault.set(None);
        self.is_gone.set(false);
        self.is_claimed.set(false);
        self.is_unwanted.set(false);
        self.received.set(0);
        self.head_length.set(0);
        self.timed_out.set(false);
        self.is_blocked.set(false);
        self.overhead.set(0);
        self.end_wait();
    }

    /// Sets the encoded length of the head.
    pub(super) fn note_head(&self, length: u64) {
        self.head_length.set(length);
    }

    /// Adds received data of the body.
    pub(super) fn take_data(&self, data: &[u8], is_last: bool) {
        if !self.is_unwanted.get() {
            self.drop_read_input();
            self.input.borrow_mut().extend_from_slice(data);
            self.shared.note_unread(data.len());
        }
        self.is_ended.set(is_last);
        self.waker.make_ready();
    }

    /// Keeps the fields that follow the body, unless nothing will read it.
    pub(super) fn take_trailers(&self, block: &FieldBlock) {
        if !self.is_unwanted.get() {
            *self.request_trailers.borrow_mut() = request_trailers::passed_on(block).map(Rc::new);
        }
    }

    /// Removes what was read from the buffer, once that is half of it.
    fn drop_read_input(&self) {
        let (mut input, read) = (self.input.borrow_mut(), self.input_read.get());
        if read > input.len() / 2 {
            input.drain(..read);
            self.input_read.set(0);
        }
    }

    /// The rest of the body is malformed.
    pub(super) fn fail(&self, what: &'static str) {
        self.fault.set(Some(what));
        self.waker.make_ready();
    }

    /// The client has reset the stream, or is gone.
    pub(super) fn lose_client(&self) {
        self.is_gone.set(true);
        self.waker.make_ready();
    }

    pub(super) fn is_gone(&self) -> bool {
        self.is_gone.get()
    }

    /// Discards the received part of the body.
    pub(super) fn drop_input(&self) {
        let mut input = self.input.borrow_mut();
        let unread = input.len() - self.input_read.replace(0);
        self.shared.note_read(unread);
        input.clear();
        if input.capacity() > INPUT_KEPT_MAX {
            *input = Vec::new();
        }
    }

    /// Discards the body, unless the exchange reads it.
    pub(super) fn discard_unclaimed(&self) {
        if !self.is_claimed.get() {
            self.is_unwanted.set(true);
            self.drop_input();
        }
    }

    /// Copies received data into the spare capacity of `out`.
    pub(super) fn take_input(&self, out: &mut Vec<u8>) -> usize {
        let input = self.input.borrow();
        let rest = &input[self.input_read.get()..];
        let count = rest.len().min(out.capacity() - out.len());
        out.extend_from_slice(&rest[..count]);
        self.input_read.set(self.input_read.get() + count);
        drop(input);
        self.received.set(self.received.get() + count as u64);
        self.shared.note_read(count);
        if self.unread() == 0 {
            let mut input = self.input.borrow_mut();
            input.clear();
            self.input_read.set(0);
        }
        count
    }

    fn unread(&self) -> usize {
        self.input.borrow().len() - self.input_read.get()
    }

    /// Opens the stream's window once half of it is used.
    pub(super) fn open_window(&self) {
        if self.is_ended.get() {
            return;
        }
        let target = READ_WINDOW.saturating_sub(self.unread() as u32);
        let mut endpoint = self.shared.endpoint.borrow_mut();
        if endpoint.receive_window(self.key.get()) >= i64::from(target / 2) {
            return;
        }
        match self.shared.wait_until_read(&self.waker) {
            WindowHold::None => endpoint.raise_window(self.key.get(), target),
            WindowHold::New => endpoint.count(Http2Count::HeldWindows),
            WindowHold::Lasting => {}
        }
    }

    /// Whether the body has ended, and all of it was read.
    pub(super) fn is_read(&self) -> bool {
        self.is_ended.get() && self.unread() == 0
    }

    /// Ready after this wait has lasted for `timeout_ms`.
    pub(super) fn poll_deadline(
        &self,
        cx: &mut Context<'_>,
        waits_for: StreamWait,
        timeout_ms: u64,
    ) -> Poll<()> {
        if self.waits_for.replace(waits_for) != waits_for {
            self.timer.set(timeout_ms);
        }
        self.timer.poll(cx)
    }

    /// Waits for the rest of a body that is discarded: up to `timeout_ms` if its length is known
    /// and fits into the window, otherwise for a moment. A reset would not stop data that was
    /// already sent, and hides the reply from some clients.
    pub(super) async fn await_rest(&self, timeout_ms: u64) {
        self.is_unwanted.set(true);
        self.drop_input();
        let key = self.key.get();
        let fits = self.shared.endpoint.borrow().rest_fits(key);
        std::future::poll_fn(|cx| {
            let is_over = self.is_ended.get() || self.is_gone() || self.fault.get().is_some();
            if is_over {
                return Poll::Ready(());
            }
            let timeout_ms = if fits { timeout_ms } else { REST_MS };
            self.poll_deadline(cx, StreamWait::Rest, timeout_ms)
        })
        .await;
    }

    /// Releases the stream after the exchange; an incomplete one is reset.
    pub(super) fn release(&self, code: Http2Code) {
        self.shared.endpoint.borrow_mut().release(self.key.get(), code);
    }

    /// Yields to the connection once.
    pub(super) async fn yield_once(&self) {
        let mut has_yielded = false;
        std::future::poll_fn(|_| {
            if has_yielded {
                return Poll::Ready(());
            }
            has_yielded = true;
            self.waker.make_ready();
            Poll::Pending
        })
        .await;
    }

    /// Ends a wait; the next one starts a new deadline.
    pub(super) fn end_wait(&self) {
        self.waits_for.set(StreamWait::Nothing);
    }
}

impl Downstream for StreamLink {
    fn poll_body(
        &self,
        cx: &mut Context<'_>,
        out: &mut Vec<u8>,
        rules: BodyRules,
    ) -> Poll<Result<usize, RequestBodyError>> {
        self.is_claimed.set(true);
        if let Some(what) = self.fault.get() {
            return Poll::Ready(Err(RequestBodyError::Malformed(what)));
        }
        let (received, chunk) = (self.received.get(), self.unread() as u64);
        if rules.size_max != 0 && received + chunk > rules.size_max {
            return Poll::Ready(Err(RequestBodyError::TooLarge { received, chunk }));
        }
        let count = self.take_input(out);
        self.open_window();
        if count > 0 || self.is_ended.get() || out.len() == out.capacity() {
            if self.waits_for.get() == StreamWait::Body {
                self.end_wait();
            }
            return Poll::Ready(Ok(count));
        }
        if self.is_gone.get() {
            return Poll::Ready(Err(RequestBodyError::Closed));
        }
        let Some(timeout_ms) = rules.timeout_ms else { return Poll::Pending };
        ready!(self.poll_deadline(cx, StreamWait::Body, timeout_ms));
        self.timed_out.set(true);
        Poll::Ready(Err(RequestBodyError::TimedOut))
    }

    fn trailers(&self) -> Option<Rc<Fields>> {
        self.request_trailers.borrow().clone()
    }

    fn whole_body(&self) -> Option<u64> {
        let unread = self.input.borrow().len() - self.input_read.get();
        self.is_ended.get().then_some(unread as u64)
    }

    fn discard_body(&self) -> Result<bool, RequestBodyError> {
        self.is_unwanted.set(true);
        self.drop_input();
        match self.fault.get() {
            Some(what) => Err(RequestBodyError::Malformed(what)),
            None => Ok(self.is_ended.get()),
        }
    }

    fn takes_interim(&self) -> bool {
        true
    }

    fn send_interim(&self, status: u16, fields: &Fields) -> usize {
        let mut endpoint = self.shared.endpoint.borrow_mut();
        let Some(mut writer) = endpoint.begin_fields(self.key.get()) else { return 0 };
        writer.status(status);
        fields.iter().for_each(|(name, value)| writer.field(name, value));
        writer.finish_interim()
    }

    fn request_length(&self) -> u64 {
        self.head_length.get() + self.received.get()
    }
}

#[cfg(test)]
mod tests {
    use wire::http2::{Http2Config, Http2Endpoint, Http2Role};

    use super::super::ready::ReadyStreams;
    use super::super::shared::UNREAD_BYTES_MAX;
    use super::*;

    fn link() -> (StreamLink, Arc<ReadyStreams>) {
        let endpoint = Http2Endpoint::new(Http2Role::Server, Http2Config::default());
        let ready = Arc::new(ReadyStreams::default());
        let waker = StreamWaker::new(&ready, 0);
        let key = StreamKey { slot: 0, id: 1 };
        (StreamLink::new(Rc::new(Http2Shared::new(endpoint)), key, waker), ready)
    }

    /// A reader that is always behind the client once made the buffer as large as the body.
    #[test]
    fn a_body_that_is_never_read_to_its_end_keeps_its_memory() {
        let (link, _) = link();
        let mut read = Vec::new();
        link.take_data(&[b'x'; 100_000], false);
        for round in 0..1000_usize {
            link.take_data(&[round as u8; 1000], false);
            let mut out = Vec::with_capacity(1000);
            assert_eq!(link.take_input(&mut out), 1000);
            read.extend(out);
        }
        assert!(link.input.borrow().capacity() < 500_000);
        let sent = (0..900_usize).flat_map(|round| [round as u8; 1000]);
        assert!(read.into_iter().skip(100_000).eq(sent));
    }

    /// A stream that may not receive more, because others hold unread data, runs once they have
    /// read. It once waited until its deadline.
    #[test]
    fn a_window_that_was_held_opens_when_others_have_read() {
        let (link, ready) = link();
        let shared = link.shared.clone();
        assert!(matches!(shared.wait_until_read(&link.waker), WindowHold::None));
        shared.note_unread(UNREAD_BYTES_MAX + 2);
        assert!(matches!(shared.wait_until_read(&link.waker), WindowHold::New));
        assert!(matches!(shared.wait_until_read(&link.waker), WindowHold::Lasting));
        let mut run = Vec::new();
        shared.note_read(1);
        ready.take(&mut run);
        assert!(run.is_empty());
        shared.note_read(1);
        ready.take(&mut run);
        assert_eq!(run, [0]);
    }
}
