//! A client's connection: sends requests and receives replies at the same time.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use net::{Stream, buffers};

use super::failure::RunFailure;
use super::scripted::Scripted;
use super::shared::ThreadShared;
use crate::replies::{BufferSearch, CompleteReply, HEAD_MAX, Replies};
use crate::requests::PreparedRequest;
use crate::script::ScriptError;
use crate::target::TargetScheme;

/// The most reads before other clients get their turn, because a server may send without end.
const READS_MAX: usize = 64;

/// A client's link, which is reused for one connection after the other.
#[derive(Default)]
pub(super) struct ClientLink {
    stream: Option<Stream>,
    replies: Replies,
    /// Received bytes of incomplete replies.
    input: Vec<u8>,
    pending: VecDeque<UnansweredRequest>,
    /// The number of requests sent on this connection.
    requests: u64,
}

struct UnansweredRequest {
    /// Whether its reply has only a head.
    to_head: bool,
    /// Its length; 0 if a script made it, so that it cannot be sent again.
    length: usize,
}

pub(super) enum LinkProgress {
    /// All requests are answered.
    Done,
    /// A reply has announced that the server closes the connection. The other requests have to be
    /// sent again on a new one (RFC 9112 section 9.3.2).
    Unanswered,
}

pub(super) struct PendingRequests {
    /// The intended start of the requests.
    begun: Instant,
    output: OutgoingBytes,
    written: usize,
    /// Whether other clients may send first, because a reply takes time.
    may_yield: bool,
}

enum OutgoingBytes {
    /// A request of the mix, by its number, because it may be large and needs no copy.
    Mixed(u64),
    Made(Vec<u8>),
}

impl ClientLink {
    pub(super) fn is_open(&self) -> bool {
        self.stream.is_some()
    }

    pub(super) fn open(&mut self, stream: Stream) {
        self.stream = Some(stream);
    }

    /// Drops the connection. Returns the number of requests that were in progress.
    pub(super) fn close(&mut self) -> u64 {
        self.disconnect();
        let lost = self.pending.len() as u64;
        self.pending.clear();
        lost
    }

    fn disconnect(&mut self) {
        self.stream = None;
        self.requests = 0;
        self.replies.reset();
        buffers::give_back(std::mem::take(&mut self.input));
    }

    /// Prepares unanswered requests for a new connection.
    pub(super) fn resume(&self, exchange: &mut PendingRequests, shared: &ThreadShared) {
        let unanswered: usize = self.pending.iter().map(|request| request.length).sum();
        exchange.written = exchange.output.bytes(shared).len() - unanswered;
    }

    /// The number of requests of this connection.
    pub(super) fn requests(&self) -> u64 {
        self.requests
    }

    /// Closes the connection if the server has closed it or has sent unexpected bytes.
    pub(super) fn watch(&mut self, cx: &mut Context<'_>) {
        if self.stream.as_mut().is_some_and(|stream| stream.poll_disturbed(cx).is_ready()) {
            self.close();
        }
    }

    /// Prepares requests for sending.
    pub(super) fn begin(
        &mut self,
        shared: &ThreadShared,
        begun: Instant,
        requests: u64,
    ) -> Result<PendingRequests, ScriptError> {
        let output = match &shared.script {
            Some(script) => self.scripted(script, shared)?,
            None => self.mixed(shared, requests),
        };
        if shared.plan.scheme == TargetScheme::Tcp {
            let bytes = output.bytes(shared);
            self.replies.expect_echo(&bytes[..bytes.len() / self.pending.len()]);
        }
        Ok(PendingRequests { begun, output, written: 0, may_yield: self.requests == 0 })
    }

    fn scripted(
        &mut self,
        script: &Scripted,
        shared: &ThreadShared,
    ) -> Result<OutgoingBytes, ScriptError> {
        let mut bytes = buffers::lend();
        if script.fill(&mut bytes)? {
            shared.halt(Ok(()));
        }
        self.replies.listen(script.listens());
        let to_head = bytes.starts_with(b"HEAD ");
        let requests = (0..script.at_once()).map(|_| UnansweredRequest { to_head, length: 0 });
        self.pending.extend(requests);
        Ok(OutgoingBytes::Made(bytes))
    }

    fn mixed(&mut self, shared: &ThreadShared, requests: u64) -> OutgoingBytes {
        if requests == 1 {
            let number = shared.next_number();
            self.expect(shared.plan.mix.at(number));
            return OutgoingBytes::Mixed(number);
        }
        let mut bytes = buffers::lend();
        for _ in 0..requests {
            let request = shared.plan.mix.at(shared.next_number());
            bytes.extend_from_slice(&request.bytes);
            self.expect(request);
        }
        OutgoingBytes::Made(bytes)
    }

    fn expect(&mut self, request: &PreparedRequest) {
        let (to_head, length) = (request.to_head, request.bytes.len());
        self.pending.push_back(UnansweredRequest { to_head, length });
    }

    /// Writes and reads, because a server may answer before it has read everything. Ready when
    /// every request has its reply, or the connection has ended.
    pub(super) fn poll(
        &mut self,
        exchange: &mut PendingRequests,
        shared: &ThreadShared,
        cx: &mut Context<'_>,
    ) -> Poll<Result<LinkProgress, RunFailure>> {
        let unwritable = self.write(exchange, shared, cx).err();
        // Reading is tried after other clients have sent: the reply may have arrived by then, and a
        // connection for one request never enters an epoll set.
        if std::mem::take(&mut exchange.may_yield) && unwritable.is_none() {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        // Replies are read even if nothing more can be written.
        match (self.poll_replies(exchange, shared, cx), unwritable) {
            // The kernel reports the end of a connection only once, here to the write.
            (
                Poll::Ready(Err(RunFailure::Closed | RunFailure::Reset)) | Poll::Pending,
                Some(failure),
            ) => Poll::Ready(Err(failure)),
            (done, _) => done,
        }
    }

    fn write(
        &mut self,
        exchange: &mut PendingRequests,
        shared: &ThreadShared,
        cx: &mut Context<'_>,
    ) -> Result<(), RunFailure> {
        let bytes = exchange.output.bytes(shared);
        while exchange.written < bytes.len() {
            let Some(stream) = &mut self.stream else { return Err(RunFailure::Closed) };
            match stream.poll_write(cx, &[IoSlice::new(&bytes[exchange.written..])]) {
                Poll::Ready(Ok(written)) => exchange.written += written,
                Poll::Ready(Err(error)) if self.requests == 0 && exchange.written == 0 => {
                    return Err(RunFailure::of_connect(&error));
                }
                Poll::Ready(Err(error)) => return Err(RunFailure::of_write(&error)),
                Poll::Pending => break,
            }
        }
        Ok(())
    }

    fn poll_replies(
        &mut self,
        exchange: &mut PendingRequests,
        shared: &ThreadShared,
        cx: &mut Context<'_>,
    ) -> Poll<Result<LinkProgress, RunFailure>> {
        for _ in 0..READS_MAX {
            let read = ready!(self.poll_read(cx))?;
            if read == 0 {
                return Poll::Ready(self.end(exchange, shared).map(|()| LinkProgress::Done));
            }
            shared.tally.borrow_mut().bytes += read as u64;
            if let Some(progress) = self.look(exchange, shared)? {
                return Poll::Ready(Ok(progress));
            }
        }
        // Other clients and the clock get their turn.
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Result<usize, RunFailure>> {
        let Some(stream) = &mut self.stream else { return Poll::Ready(Err(RunFailure::Closed)) };
        if self.input.capacity() == 0 {
            self.input = buffers::lend();
        }
        if self.input.len() == self.input.capacity() {
            self.input.reserve(HEAD_MAX);
        }
        let read = stream.poll_read(cx, &mut self.input);
        if read.is_pending() && self.input.is_empty() {
            buffers::give_back(std::mem::take(&mut self.input));
        }
        read.map_err(|_| RunFailure::Reset)
    }

    /// Parses replies from the received bytes; `None`: the connection awaits further replies.
    fn look(
        &mut self,
        exchange: &PendingRequests,
        shared: &ThreadShared,
    ) -> Result<Option<LinkProgress>, RunFailure> {
        let now = Instant::now();
        let (mut at, mut keep) = (0, true);
        while let Some(to_head) = self.pending.front().filter(|_| keep).map(|one| one.to_head) {
            let found = self.replies.take(&self.input[at..], to_head);
            match found.map_err(|_| RunFailure::Invalid)? {
                BufferSearch::More(taken) => {
                    at += taken;
                    break;
                }
                BufferSearch::Reply(taken, reply) => {
                    at += taken;
                    keep = reply.keep;
                    self.count(reply, exchange.begun, now, shared);
                }
            }
        }
        self.input.drain(..at);
        match (self.pending.is_empty(), keep) {
            (false, true) => Ok(None),
            (false, false) if shared.script.is_some() => Err(RunFailure::Closed),
            (false, false) => {
                self.disconnect();
                Ok(Some(LinkProgress::Unanswered))
            }
            (true, _) => {
                let is_confused = keep && !self.input.is_empty();
                if is_confused {
                    // An unexpected reply does not fail a request, but is an error.
                    RunFailure::Invalid.count(1, &mut shared.tally.borrow_mut().errors);
                }
                let is_written = exchange.written == exchange.output.bytes(shared).len();
                if is_confused || !keep || !is_written {
                    self.close();
                }
                Ok(Some(LinkProgress::Done))
            }
        }
    }

    /// The server has closed the connection.
    fn end(&mut self, exchange: &PendingRequests, shared: &ThreadShared) -> Result<(), RunFailure> {
        let Some(reply) = self.replies.end() else {
            let is_within = self.replies.is_within(self.input.len());
            return Err(if is_within { RunFailure::Short } else { RunFailure::Closed });
        };
        self.count(reply, exchange.begun, Instant::now(), shared);
        if !self.pending.is_empty() {
            return Err(RunFailure::Closed);
        }
        self.close();
        Ok(())
    }

    fn count(&mut self, reply: CompleteReply, begun: Instant, now: Instant, shared: &ThreadShared) {
        self.pending.pop_front();
        self.requests += 1;
        shared.replied(reply.status, begun, now);
        if let (Some(script), Some(heard)) = (&shared.script, self.replies.heard()) {
            match script.hear(reply.status, heard) {
                Ok(false) => {}
                Ok(true) => shared.halt(Ok(())),
                Err(error) => shared.halt(Err(error)),
            }
        }
    }
}

impl OutgoingBytes {
    fn bytes<'o>(&'o self, shared: &'o ThreadShared) -> &'o [u8] {
        match self {
            Self::Mixed(number) => &shared.plan.mix.at(*number).bytes,
            Self::Made(bytes) => bytes,
        }
    }
}

impl Drop for OutgoingBytes {
    fn drop(&mut self) {
        if let Self::Made(bytes) = self {
            buffers::give_back(std::mem::take(bytes));
        }
    }
}
