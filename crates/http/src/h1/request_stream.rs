//! The stream of the current request: receives its body and sends interim replies. The exchange
//! sees nothing else of its connection.

use std::cell::{Cell, RefCell, RefMut};
use std::io::{self, IoSlice};
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};

use wire::http1::framing::BodyLength;
use wire::{Version, status_text};

use super::incoming::BodyInput;
use super::link::{Link, WaitsFor, consume};
use crate::exchange::{BodyRules, Downstream, Fields, RequestBodyError};

/// The interim reply for a client that waits before it sends the body.
pub(super) const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// The state of one request of a connection.
pub(super) struct RequestStream {
    pub(super) link: Rc<Link>,
    body: RefCell<BodyInput>,
    head_length: Cell<u64>,
    version: Cell<Version>,
    /// Whether the exchange waits for more of the body.
    has_reader: Cell<bool>,
    /// The part of interim replies that the socket had no room for.
    pub(super) unsent: RefCell<Vec<u8>>,
}

impl RequestStream {
    pub(super) fn new(link: Rc<Link>) -> Self {
        Self {
            link,
            body: RefCell::default(),
            head_length: Cell::new(0),
            version: Cell::default(),
            has_reader: Cell::new(false),
            unsent: RefCell::default(),
        }
    }

    /// Prepares the stream for the next request.
    pub(super) fn reset(&mut self) {
        *self.body.get_mut() = BodyInput::default();
        self.head_length.set(0);
        self.version.set(Version::default());
        self.has_reader.set(false);
        self.unsent.get_mut().clear();
    }

    /// Begins the body that the head announces. Received bytes of it are in the link's input.
    pub(super) fn begin_body(
        &self,
        version: Version,
        head_length: u64,
        body: BodyLength,
        expects_continue: bool,
    ) {
        self.version.set(version);
        self.head_length.set(head_length);
        *self.body.borrow_mut() = BodyInput::new(body, expects_continue);
    }

    pub(super) fn body(&self) -> RefMut<'_, BodyInput> {
        self.body.borrow_mut()
    }

    /// Called before polling a future that may read the body.
    pub(super) fn forget_reader(&self) {
        self.has_reader.set(false);
    }

    /// Ready once the client is gone. While the exchange reads the body, the read notices it
    /// instead.
    pub(super) fn poll_gone(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.has_reader.get() {
            return Poll::Pending;
        }
        self.link.stream.borrow_mut().poll_closed(cx)
    }

    /// Discards the received part of the body.
    fn discard_input(&self) -> Result<(), RequestBodyError> {
        let mut body = self.body.borrow_mut();
        let mut input = self.link.input.borrow_mut();
        let read = body.read;
        let used = body.take(&input, usize::MAX, 0, |_| {})?;
        body.read = read;
        consume(&mut input, used);
        Ok(())
    }

    /// Discards the body while it is received. Returns `true` at its end, and `false` if the
    /// connection ends first.
    pub(super) fn poll_discard(
        &self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<bool, RequestBodyError>> {
        loop {
            self.discard_input()?;
            if self.body.borrow().is_ended() {
                return Poll::Ready(Ok(true));
            }
            match ready!(self.link.poll_input(cx)) {
                Ok(1..) => self.link.progress_of(WaitsFor::Rest),
                Ok(0) => return Poll::Ready(Ok(false)),
                Err(error) => return Poll::Ready(Err(RequestBodyError::Connection(error))),
            }
        }
    }

    /// Discards the body unless the exchange reads it. Ready once nothing is left to discard;
    /// never, if the end of the body cannot be found.
    pub(super) fn poll_unwanted(&self, cx: &mut Context<'_>) -> Poll<()> {
        let (unwanted, abandoned) = {
            let body = self.body.borrow();
            (!body.claimed && !body.is_ended(), body.abandoned)
        };
        if abandoned {
            return Poll::Pending;
        }
        if unwanted && !matches!(ready!(self.poll_discard(cx)), Ok(true)) {
            self.abandon_body();
            return Poll::Pending;
        }
        Poll::Ready(())
    }

    /// Whether the client waits for `100 Continue`. The caller sends it.
    pub(super) fn take_expectation(&self) -> bool {
        std::mem::take(&mut self.body.borrow_mut().expects_continue)
    }

    /// Gives up finding the end of the body, or of an invalid request.
    pub(super) fn abandon_body(&self) {
        *self.body.borrow_mut() = BodyInput::abandoned();
    }

    /// Decodes the received part of the body.
    fn take_body(
        &self,
        body: &mut BodyInput,
        out: &mut Vec<u8>,
        room: usize,
        size_max: u64,
    ) -> Result<(), RequestBodyError> {
        let mut input = self.link.input.borrow_mut();
        let used = body.take(&input, room, size_max, |data| out.extend_from_slice(data))?;
        consume(&mut input, used);
        Ok(())
    }

    /// Reads more of the body: directly into `out` if its length is known, otherwise into the
    /// link's input, because bytes of the next request may follow.
    fn poll_more(
        &self,
        cx: &mut Context<'_>,
        body: &mut BodyInput,
        out: &mut Vec<u8>,
    ) -> Poll<io::Result<usize>> {
        let Some(left) = body.plain_length() else { return self.link.poll_input(cx) };
        ready!(self.link.poll_turn(cx));
        let most = usize::try_from(left).unwrap_or(usize::MAX);
        let read = ready!(self.link.stream.borrow_mut().poll_read_most(cx, out, most))?;
        body.advance(read);
        Poll::Ready(Ok(read))
    }

    /// Sends `100 Continue`. The socket always has room for so few bytes.
    fn send_continue(&self, cx: &mut Context<'_>) -> Result<(), RequestBodyError> {
        let written = self.link.stream.borrow_mut().poll_write(cx, &[IoSlice::new(CONTINUE)]);
        match written {
            Poll::Ready(Ok(count)) if count == CONTINUE.len() => Ok(()),
            Poll::Ready(Err(error)) => Err(RequestBodyError::Connection(error)),
            _ => Err(RequestBodyError::Connection(io::ErrorKind::WriteZero.into())),
        }
    }
}

impl Downstream for RequestStream {
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
                self.link.progress_of(WaitsFor::Body);
                return Poll::Ready(Ok(out.len() - before));
            }
            match self.poll_more(cx, body, out) {
                Poll::Ready(Ok(1..)) => self.link.progress_of(WaitsFor::Body),
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(RequestBodyError::Closed)),
                Poll::Ready(Err(error)) => {
                    return Poll::Ready(Err(RequestBodyError::Connection(error)));
                }
                Poll::Pending => {
                    self.has_reader.set(true);
                    let Some(timeout_ms) = rules.timeout_ms else { return Poll::Pending };
                    ready!(self.link.poll_deadline(cx, WaitsFor::Body, timeout_ms));
                    return Poll::Ready(Err(RequestBodyError::TimedOut));
                }
            }
        }
    }

    fn whole_body(&self) -> Option<u64> {
        let (body, input) = (self.body.borrow(), self.link.input.borrow());
        let is_whole = body.is_whole_in(&input);
        is_whole.then(|| body.plain_length().unwrap_or(input.len() as u64))
    }

    fn discard_body(&self) -> Result<bool, RequestBodyError> {
        // Takes only what was received. A later wait for the rest registers its own waker.
        match self.poll_discard(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Err(error)) => {
                self.abandon_body();
                Err(error)
            }
            Poll::Ready(Ok(ended)) => Ok(ended),
            Poll::Pending => Ok(false),
        }
    }

    fn takes_interim(&self) -> bool {
        self.version.get() >= Version::HTTP_11
    }

    fn send_interim(&self, status: u16, fields: &Fields) -> usize {
        let mut reply = b"HTTP/1.1 ".to_vec();
        reply.extend_from_slice(status_text(status).unwrap_or_default().as_bytes());
        reply.extend_from_slice(b"\r\n");
        fields.write(&mut reply);
        reply.extend_from_slice(b"\r\n");
        let mut unsent = self.unsent.borrow_mut();
        let mut sent = 0;
        if unsent.is_empty() {
            self.link.note_interim();
            // Writing the reply registers for room and notices that the client is gone.
            let mut cx = Context::from_waker(Waker::noop());
            let written =
                self.link.stream.borrow_mut().poll_write(&mut cx, &[IoSlice::new(&reply)]);
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
