//! One request and its reply on one connection.
//!
//! The reply is read while the request is still being sent: a server may refuse a large body before
//! it has received all of it, and a server that closes the connection may have sent the reason.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::task::{Context, Poll, ready};

use net::{Stream, Timer, buffers};

use crate::error::{FetchFault, FetchStep};
use crate::limits::FetchLimits;
use crate::reply::FetchReplyReader;
use crate::response::FetchResponse;

/// The cost of a byte that is parsed, relative to a byte of a body.
const COST_OF_PARSING: usize = 4;

pub(crate) struct FetchExchange<'a> {
    stream: Stream,
    head: &'a [u8],
    body: &'a [u8],
    /// The number of written bytes, of head and body.
    sent: usize,
    /// Why nothing more is written.
    broken: Option<io::Error>,
    reply: FetchReplyReader,
    silence: Timer,
    silence_ms: u64,
}

impl<'a> FetchExchange<'a> {
    pub(crate) fn new(
        stream: Stream,
        (head, body): (&'a [u8], &'a [u8]),
        to_head: bool,
        limits: &FetchLimits,
    ) -> Self {
        let (silence, silence_ms) = (Timer::new(), limits.silence_ms);
        silence.set(silence_ms);
        let reply = FetchReplyReader::new(to_head, *limits);
        Self { stream, head, body, sent: 0, broken: None, reply, silence, silence_ms }
    }

    /// Runs until the reply has ended.
    pub(crate) async fn run(&mut self, note: impl Fn(FetchStep)) -> Result<(), FetchFault> {
        poll_fn(|cx| {
            let polled = self.poll(cx);
            note(self.step());
            polled
        })
        .await
    }

    /// The connection, if another request may follow on it, and the reply.
    pub(crate) fn end(mut self) -> (Option<Stream>, FetchResponse) {
        let may_go_on = self.is_sent() && self.broken.is_none() && self.reply.may_go_on();
        if !may_go_on {
            self.stream.close_session();
        }
        (may_go_on.then_some(self.stream), self.reply.response())
    }

    /// Whether a byte of the reply has arrived.
    pub(crate) fn has_reply(&self) -> bool {
        self.reply.has_begun()
    }

    /// Whether a byte of the request was written, as far as is known.
    pub(crate) fn has_begun(&self) -> bool {
        self.sent > 0
    }

    fn step(&self) -> FetchStep {
        match (self.reply.has_begun(), self.is_sent()) {
            (true, _) => FetchStep::Reading,
            (false, true) => FetchStep::Waiting,
            (false, false) => FetchStep::Sending,
        }
    }

    fn is_sent(&self) -> bool {
        self.sent == self.head.len() + self.body.len()
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), FetchFault>> {
        if !self.is_sent() && self.broken.is_none() {
            self.broken = match self.poll_send(cx) {
                Poll::Ready(Err(error)) => Some(error),
                Poll::Ready(Ok(())) | Poll::Pending => None,
            };
        }
        if let Poll::Ready(done) = self.poll_receive(cx) {
            return Poll::Ready(done);
        }
        // Without a share, the task runs again: there may be something to read.
        if net::has_share()
            && let Some(error) = self.broken.take()
        {
            return Poll::Ready(Err(FetchFault::Connection(error)));
        }
        self.silence.poll(cx).map(|()| Err(FetchFault::Silent(self.silence_ms)))
    }

    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.is_sent() {
            ready!(net::poll_share(cx));
            let (head, body) = self.unsent();
            let slices = [IoSlice::new(head), IoSlice::new(body)];
            let count = ready!(self.stream.poll_write(cx, &slices))?;
            self.sent += count;
            net::spend(count);
            self.silence.set(self.silence_ms);
        }
        Poll::Ready(Ok(()))
    }

    fn unsent(&self) -> (&'a [u8], &'a [u8]) {
        match self.sent.checked_sub(self.head.len()) {
            Some(of_body) => (b"", &self.body[of_body..]),
            None => (&self.head[self.sent..], self.body),
        }
    }

    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), FetchFault>> {
        while !self.reply.is_ended() {
            // A buffer is borrowed only when there is something to read, so a waiting request has
            // none.
            let mut input = Vec::new();
            let read = ready!(self.stream.poll_read(cx, &mut input));
            let taken = match read {
                Ok(1..) => self.receive(&input),
                ended => self.close(ended),
            };
            buffers::give_back(input);
            taken?;
        }
        Poll::Ready(Ok(()))
    }

    fn receive(&mut self, input: &[u8]) -> Result<(), FetchFault> {
        self.silence.set(self.silence_ms);
        let before = self.reply.body_bytes();
        let taken = self.reply.receive(input);
        let parsed = input.len().saturating_sub(self.reply.body_bytes() - before);
        net::spend(parsed * COST_OF_PARSING);
        taken
    }

    /// Called when nothing more can be read.
    fn close(&mut self, ended: io::Result<usize>) -> Result<(), FetchFault> {
        let closed = match ended {
            Ok(_) => self.reply.close(self.stream.is_cut()),
            Err(error) => Err(FetchFault::Connection(error)),
        };
        closed.map_err(|fault| match self.broken.take() {
            Some(error) => FetchFault::Connection(error),
            None => fault,
        })
    }
}
