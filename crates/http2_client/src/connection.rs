//! The task of a connection: reads, passes input to the streams, and writes their queued output.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::rc::Rc;
use std::task::{Context, Poll};

use net::{Stream, Timer, buffers, clock};
use wire::http2::{Http2Code, Received};

use crate::StreamFailure;
use crate::limits::{OUTPUT_BYTES_MAX, OUTPUT_READ_MAX};
use crate::state::{ClientShared, Http2ClientState};
use crate::stream_state::SendWait;

pub(crate) struct ClientConnection {
    shared: Rc<ClientShared>,
    stream: Stream,
    /// Received bytes, of which the first `taken` are processed.
    input: Vec<u8>,
    taken: usize,
    /// Why nothing more can be written. What the server sent before is still read.
    write_failure: Option<io::Error>,
    write_deadline: Deadline,
    answer_deadline: Deadline,
    /// The second up to which the endpoint's budgets have grown.
    replenished_s: u64,
}

/// A wait that ends the connection if it takes too long.
#[derive(Default)]
struct Deadline {
    timer: Timer,
    is_set: bool,
}

impl ClientConnection {
    pub(crate) fn new(stream: Stream, shared: Rc<ClientShared>) -> Self {
        stream.set_nodelay();
        Self {
            shared,
            stream,
            input: Vec::new(),
            taken: 0,
            write_failure: None,
            write_deadline: Deadline::default(),
            answer_deadline: Deadline::default(),
            replenished_s: clock::now_ms() / 1000,
        }
    }

    pub(crate) async fn run(mut self) {
        let end = poll_fn(|cx| match self.poll_turn(cx) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(())) => Poll::Ready(StreamFailure::Closed),
            Err(failure) => Poll::Ready(failure),
        })
        .await;
        self.shared.state().end(end);
        self.stream.close_session();
    }

    /// Reads and writes, within the task's share. Ready once the connection is no longer needed.
    fn poll_turn(&mut self, cx: &mut Context<'_>) -> Result<Poll<()>, StreamFailure> {
        self.begin_turn();
        loop {
            let input = self.poll_input(cx);
            if let Err(StreamFailure::Protocol(_)) = &input {
                // GOAWAY, if it fits.
                let _ = self.poll_write(cx);
            }
            let mut moves = input?;
            if self.is_unneeded() {
                self.shared.state().endpoint.go_away(Http2Code::NO_ERROR);
            }
            moves |= self.poll_write(cx)?;
            if self.is_unneeded() && self.shared.state().endpoint.output().is_empty() {
                return Ok(Poll::Ready(()));
            }
            self.poll_deadlines(cx)?;
            if !moves || net::poll_share(cx).is_pending() {
                self.shared.state().task = Some(cx.waker().clone());
                return Ok(Poll::Pending);
            }
        }
    }

    fn begin_turn(&mut self) {
        let mut state = self.shared.state();
        state.task = None;
        let now_s = clock::now_ms() / 1000;
        if now_s > self.replenished_s {
            let seconds = u32::try_from(now_s - self.replenished_s).unwrap_or(u32::MAX);
            state.endpoint.replenish(seconds);
            self.replenished_s = now_s;
        }
    }

    /// Whether there are no streams, and there will be none.
    fn is_unneeded(&self) -> bool {
        let state = self.shared.state();
        state.is_over() && state.open_streams() == 0
    }

    /// Processes input left over from the last turn, or else reads more. Returns whether there was
    /// any.
    fn poll_input(&mut self, cx: &mut Context<'_>) -> Result<bool, StreamFailure> {
        let is_behind = self.shared.state().endpoint.output().len() > OUTPUT_READ_MAX;
        if self.input.is_empty() {
            if is_behind || !self.poll_read(cx)? {
                return Ok(false);
            }
            self.shared.state().note_read();
        }
        self.take_input()?;
        Ok(true)
    }

    /// Reads once. Returns whether anything was read.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Result<bool, StreamFailure> {
        let read = self.stream.poll_read(cx, &mut self.input);
        match (read, self.write_failure.take()) {
            (Poll::Ready(Ok(1..)), failure) => {
                self.write_failure = failure;
                Ok(true)
            }
            (_, Some(failure)) => Err(StreamFailure::Connection(failure)),
            (Poll::Pending, None) => Ok(false),
            (Poll::Ready(Ok(0)), None) => Err(StreamFailure::Closed),
            (Poll::Ready(Err(error)), None) => Err(StreamFailure::Connection(error)),
        }
    }

    /// Processes the input, within the task's share, but at least one event.
    fn take_input(&mut self) -> Result<(), StreamFailure> {
        let mut state = self.shared.state();
        state.lend_output();
        loop {
            let input = &self.input[self.taken..];
            let received = state.endpoint.receive(input);
            net::spend(state.endpoint.take_work());
            let Received { consumed, event } =
                received.map_err(|error| StreamFailure::Protocol(error.what))?;
            self.taken += consumed;
            let Some(event) = event else { break };
            state.take_event(event, input);
            if !net::has_share() {
                return Ok(());
            }
        }
        self.taken = 0;
        buffers::give_back(std::mem::take(&mut self.input));
        Ok(())
    }

    /// Writes the output of all streams. Returns whether there is more to do because of that.
    fn poll_write(&mut self, cx: &mut Context<'_>) -> Result<bool, StreamFailure> {
        let mut state = self.shared.state();
        let mut moves = false;
        while !state.endpoint.output().is_empty() {
            let offered = state.offered;
            let written = match self.write_failure {
                Some(_) => Poll::Ready(Ok(state.endpoint.output().len())),
                None => {
                    state.note_offered();
                    self.stream.poll_write(cx, &[IoSlice::new(state.endpoint.output())])
                }
            };
            match written {
                Poll::Pending => break,
                Poll::Ready(Ok(count)) => state.note_written(count),
                Poll::Ready(Err(error)) => {
                    self.write_failure = Some(error);
                    // Without a TLS session, nothing was sent.
                    if self.stream.can_splice() {
                        state.offered = offered;
                    }
                }
            }
            moves = true;
        }
        if moves {
            self.write_deadline.clear();
            make_room(&mut state);
        }
        Ok(moves)
    }

    fn poll_deadlines(&mut self, cx: &mut Context<'_>) -> Result<(), StreamFailure> {
        let state = self.shared.state();
        let is_writing = state.open_streams() == 0 && !state.endpoint.output().is_empty();
        let (limits, is_asked) = (state.limits, state.is_asked());
        drop(state);
        self.write_deadline.check(cx, is_writing, limits.write_timeout_ms)?;
        self.answer_deadline.check(cx, is_asked, limits.ping_timeout_ms)
    }
}

impl Drop for ClientConnection {
    /// Stopping the task also closes its connection.
    fn drop(&mut self) {
        self.shared.state().end(StreamFailure::Closed);
        buffers::give_back(std::mem::take(&mut self.input));
    }
}

/// Wakes senders after some of the output was written.
fn make_room(state: &mut Http2ClientState) {
    if state.endpoint.output().len() < OUTPUT_BYTES_MAX {
        state.wake_senders(SendWait::Room);
    }
    if state.open_streams() == 0 {
        state.take_output_buffer();
    }
}

impl Deadline {
    /// Fails once the wait has taken this long.
    fn check(
        &mut self,
        cx: &mut Context<'_>,
        waits: bool,
        timeout_ms: u64,
    ) -> Result<(), StreamFailure> {
        if !waits {
            self.clear();
            return Ok(());
        }
        if !std::mem::replace(&mut self.is_set, true) {
            self.timer.set(timeout_ms);
        }
        match self.timer.poll(cx) {
            Poll::Ready(()) => Err(StreamFailure::Connection(net::timed_out())),
            Poll::Pending => Ok(()),
        }
    }

    fn clear(&mut self) {
        if std::mem::take(&mut self.is_set) {
            self.timer.clear();
        }
    }
}
