//! A stream, as the user of one request sees it.

use std::rc::Rc;
use std::task::{Context, Poll};

use wire::http2::{FieldBlock, FieldWriter};

use crate::StreamFailure;
use crate::state::{ClientShared, SharedStream};
use crate::stream_state::ClientHead;

/// A request and its reply. A stream that is dropped before both have ended is reset with CANCEL.
///
/// What was received before a failure is returned before the failure.
pub struct ClientStream {
    shared: Rc<ClientShared>,
    stream: SharedStream,
}

impl ClientStream {
    pub(crate) fn new(shared: Rc<ClientShared>, stream: SharedStream) -> Self {
        Self { shared, stream }
    }

    /// Queues a piece of the request's body: as much as the server's windows and the bound on
    /// queued output allow. The request ends with the last byte of the last piece, which may be
    /// empty. It need not be sent to its end: the server may reset the stream with NO_ERROR after a
    /// complete reply.
    pub fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
        is_last: bool,
    ) -> Poll<Result<usize, StreamFailure>> {
        let mut stream = self.stream.borrow_mut();
        if let Some(failure) = &stream.failure {
            return Poll::Ready(Err(failure.clone()));
        }
        debug_assert!(!stream.is_sent, "the request has ended");
        if stream.is_sent {
            return Poll::Ready(Ok(bytes.len()));
        }
        match self.shared.state().send(&mut stream, bytes, is_last) {
            Ok(count) => Poll::Ready(Ok(count)),
            Err(waits_for) => {
                stream.await_output(cx, waits_for);
                Poll::Pending
            }
        }
    }

    /// Ends the request with fields, which `trailers` writes, after all pieces of the body.
    /// `trailers` must not use this connection otherwise.
    pub fn poll_end(
        &mut self,
        cx: &mut Context<'_>,
        trailers: &mut dyn FnMut(&mut FieldWriter<'_>),
    ) -> Poll<Result<(), StreamFailure>> {
        let mut stream = self.stream.borrow_mut();
        if let Some(failure) = &stream.failure {
            return Poll::Ready(Err(failure.clone()));
        }
        debug_assert!(!stream.is_sent, "the request has ended");
        match self.shared.state().send_end(&mut stream, trailers) {
            Ok(()) => Poll::Ready(Ok(())),
            Err(waits_for) => {
                stream.await_output(cx, waits_for);
                Poll::Pending
            }
        }
    }

    /// The next head: interim replies, then the head of the reply, which is the last.
    pub fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<Result<ClientHead, StreamFailure>> {
        let mut stream = self.stream.borrow_mut();
        if let Some(head) = stream.take_head() {
            return Poll::Ready(Ok(head));
        }
        if let Some(failure) = stream.receive_failure() {
            return Poll::Ready(Err(failure));
        }
        debug_assert!(!stream.has_reply, "the head was taken");
        stream.await_input(cx);
        Poll::Pending
    }

    /// Appends received bytes of the reply's body, at most `most`, which must not be 0. 0 is the
    /// end, which trailers may follow.
    pub fn poll_body(
        &mut self,
        cx: &mut Context<'_>,
        out: &mut Vec<u8>,
        most: usize,
    ) -> Poll<Result<usize, StreamFailure>> {
        debug_assert!(most > 0, "room for a byte");
        let mut stream = self.stream.borrow_mut();
        let count = stream.take_data(out, most);
        if count > 0 {
            self.shared.state().open_window(&mut stream);
            return Poll::Ready(Ok(count));
        }
        if stream.is_received {
            return Poll::Ready(Ok(0));
        }
        if let Some(failure) = stream.receive_failure() {
            return Poll::Ready(Err(failure));
        }
        stream.await_input(cx);
        Poll::Pending
    }

    /// The fields that followed the body, once it has ended.
    pub fn take_trailers(&mut self) -> Option<FieldBlock> {
        self.stream.borrow_mut().trailers.take()
    }

    /// Whether both directions have ended, or the stream has failed. Received data may be unread.
    pub fn has_ended(&self) -> bool {
        self.stream.borrow().is_over()
    }
}

impl Drop for ClientStream {
    fn drop(&mut self) {
        self.shared.state().give_up(&self.stream.borrow());
    }
}
