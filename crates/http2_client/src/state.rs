//! State that a connection's task, its handles and its streams share.

use std::cell::{RefCell, RefMut};
use std::ops::{Deref, DerefMut};
use std::rc::Rc;
use std::task::Waker;

use net::{buffers, clock};
use wire::http2::{FieldWriter, Http2Code, Http2Endpoint, Http2Role, RestingEndpoint, StreamKey};

use crate::limits::{OUTPUT_BYTES_MAX, OUTPUT_READ_MAX, WIDE_WINDOW, WIDENED_BYTES_MAX};
use crate::stream_state::{ClientStreamState, SendWait};
use crate::{Http2ClientLimits, StreamFailure};

/// How long a PING, or a stream that is given up, has to be unanswered to cast doubt on the
/// connection.
const DOUBT_AFTER_MS: u64 = 1000;

/// Before a stream is opened on a connection on which nothing was received for this long, the
/// server is asked with a PING: a network may have forgotten the connection.
const QUIET_MS: u64 = 5000;

/// PINGs without a reply to any request since. gRPC servers end the connection at the third.
const PINGS_MAX: u8 = 2;

/// Spare room in the output, for frame headers.
const ROOM_FOR_HEADS: usize = 1024;

/// How long a connection is idle before it rests.
const REST_AFTER_MS: u64 = 1500;

/// An endpoint that is awake; [`ClientShared::state`] ensures that.
pub(crate) struct AwakeEndpoint(Option<Box<Http2Endpoint>>);

pub(crate) type SharedStream = Rc<RefCell<ClientStreamState>>;

pub(crate) struct ClientShared(RefCell<Http2ClientState>);

pub(crate) struct Http2ClientState {
    pub(crate) endpoint: AwakeEndpoint,
    /// The endpoint while the connection is idle; `endpoint` is empty then.
    resting: Option<Box<RestingEndpoint>>,
    pub(crate) limits: Http2ClientLimits,
    /// The open streams, by the slots of their keys.
    streams: Vec<Option<SharedStream>>,
    open: usize,
    /// How much the windows of open streams exceed the first ones, in bytes.
    widened: u32,
    /// When the last stream ended, or when the connection began.
    idle_since_ms: u64,
    /// Whether to open no more streams.
    pub(crate) is_closing: bool,
    /// Why the connection is over.
    end: Option<StreamFailure>,
    /// Wakes the connection's task, unless it runs.
    pub(crate) task: Option<Waker>,
    /// The number of reads that received something.
    pub(crate) reads: u64,
    /// When something was received last, or when the connection began.
    received_ms: u64,
    /// Since when the server has had to send something, because of a PING.
    asked_ms: Option<u64>,
    /// The number of PINGs since the last frame of a reply.
    pub(crate) pings: u8,
    /// The number of times that the output has made room for streams.
    round: u64,
    /// Bytes that were written; and how many of those and of the output were offered to the socket.
    written: u64,
    pub(crate) offered: u64,
}

impl ClientShared {
    pub(crate) fn new(limits: Http2ClientLimits) -> Rc<Self> {
        Rc::new(Self(RefCell::new(Http2ClientState {
            endpoint: AwakeEndpoint::of(Http2Endpoint::new(Http2Role::Client, limits.config())),
            resting: None,
            limits,
            streams: Vec::new(),
            open: 0,
            widened: 0,
            idle_since_ms: clock::now_ms(),
            is_closing: false,
            end: None,
            task: None,
            reads: 0,
            received_ms: clock::now_ms(),
            asked_ms: None,
            pings: 0,
            round: 1,
            written: 0,
            offered: 0,
        })))
    }

    /// The state, for use of the endpoint.
    pub(crate) fn state(&self) -> RefMut<'_, Http2ClientState> {
        let mut state = self.0.borrow_mut();
        if let Some(resting) = state.resting.take() {
            let limits = state.limits.config().limits;
            state.endpoint = AwakeEndpoint::of(Http2Endpoint::wake(*resting, limits));
        }
        state
    }

    /// The state, whose endpoint may rest.
    pub(crate) fn resting_state(&self) -> RefMut<'_, Http2ClientState> {
        self.0.borrow_mut()
    }
}

impl AwakeEndpoint {
    fn of(endpoint: Http2Endpoint) -> Self {
        Self(Some(Box::new(endpoint)))
    }
}

impl Deref for AwakeEndpoint {
    type Target = Http2Endpoint;

    fn deref(&self) -> &Http2Endpoint {
        self.0.as_deref().expect("`state` wakes it")
    }
}

impl DerefMut for AwakeEndpoint {
    fn deref_mut(&mut self) -> &mut Http2Endpoint {
        self.0.as_deref_mut().expect("`state` wakes it")
    }
}

impl Http2ClientState {
    pub(crate) fn open_streams(&self) -> usize {
        self.open
    }

    pub(crate) fn idle_since_ms(&self) -> Option<u64> {
        (self.open == 0).then_some(self.idle_since_ms)
    }

    pub(crate) fn is_over(&self) -> bool {
        self.end.is_some()
            || self.is_closing
            || self.resting.is_none() && self.endpoint.is_used_up()
    }

    #[cfg(test)]
    pub(crate) fn is_resting(&self) -> bool {
        self.resting.is_some()
    }

    /// Drops what the idle connection does not need, unless it has just been used or ends.
    pub(crate) fn rest(&mut self) {
        let now_ms = clock::now_ms();
        let is_idle = self.open == 0 && now_ms >= self.idle_since_ms + REST_AFTER_MS;
        if is_idle && !self.is_over() && self.resting.is_none() && self.endpoint.can_rest() {
            self.streams = Vec::new();
            self.take_output_buffer();
            self.resting = self.endpoint.0.take().map(|endpoint| Box::new(endpoint.rest()));
        }
    }

    pub(crate) fn free_streams(&self) -> usize {
        if let Some(resting) = &self.resting {
            return match self.is_over() || self.is_doubtful() {
                true => 0,
                false => self.limits.streams_max.min(resting.free_streams()),
            };
        }
        let is_behind = self.endpoint.output().len() > OUTPUT_READ_MAX;
        if self.is_over() || self.is_doubtful() || is_behind {
            return 0;
        }
        let most = match self.endpoint.has_peer_settings() {
            true => self.limits.streams_max,
            false => self.limits.streams_max.min(self.limits.first_streams_max),
        };
        most.saturating_sub(self.open).min(self.endpoint.free_streams())
    }

    pub(crate) fn open(
        &mut self,
        head: &mut dyn FnMut(&mut FieldWriter<'_>),
        end_stream: bool,
    ) -> Option<SharedStream> {
        if self.free_streams() == 0 {
            return None;
        }
        self.lend_output();
        let now_ms = clock::now_ms();
        if now_ms.saturating_sub(self.received_ms) >= QUIET_MS {
            self.ask(now_ms);
        }
        let head_at = self.queued();
        let key = self.endpoint.open()?;
        let mut writer = self.endpoint.begin_fields(key)?;
        head(&mut writer);
        writer.finish(end_stream);
        let mut stream = ClientStreamState::new(key, end_stream);
        (stream.head_at, stream.opened_reads) = (head_at, self.reads);
        let stream = Rc::new(RefCell::new(stream));
        let at = key.slot as usize;
        if self.streams.len() <= at {
            self.streams.resize_with(at + 1, || None);
        }
        self.streams[at] = Some(stream.clone());
        self.open += 1;
        self.wake_task();
        Some(stream)
    }

    /// An open stream.
    pub(crate) fn stream(&self, key: StreamKey) -> Option<SharedStream> {
        let stream = self.streams.get(key.slot as usize)?.as_ref()?;
        (stream.borrow().key == key).then(|| stream.clone())
    }

    pub(crate) fn streams(&self) -> Vec<SharedStream> {
        self.streams.iter().flatten().cloned().collect()
    }

    /// Sends data, as far as windows and the output have room. Returns the number of bytes; or, if
    /// that is 0, what to wait for.
    pub(crate) fn send(
        &mut self,
        stream: &mut ClientStreamState,
        bytes: &[u8],
        is_last: bool,
    ) -> Result<usize, SendWait> {
        let room = OUTPUT_BYTES_MAX.saturating_sub(self.endpoint.output().len());
        if room == 0 {
            return Err(SendWait::Room);
        }
        let count = bytes.len().min(room).min(self.endpoint.sendable(stream.key));
        let ends = is_last && count == bytes.len();
        if count == 0 && !ends {
            return if bytes.is_empty() { Ok(0) } else { Err(SendWait::Window) };
        }
        self.lend_output();
        if self.endpoint.output_room() < count + ROOM_FOR_HEADS {
            buffers::give_back(self.endpoint.change_buffer(buffers::lend_huge()));
        }
        self.endpoint.send_data(stream.key, &bytes[..count], ends, usize::MAX);
        stream.served = self.round;
        stream.is_sent = ends;
        self.release_over(stream);
        self.wake_task();
        Ok(count)
    }

    /// Ends a request with fields, once the output has room.
    pub(crate) fn send_end(
        &mut self,
        stream: &mut ClientStreamState,
        trailers: &mut dyn FnMut(&mut FieldWriter<'_>),
    ) -> Result<(), SendWait> {
        if self.endpoint.output().len() >= OUTPUT_BYTES_MAX {
            return Err(SendWait::Room);
        }
        self.lend_output();
        if let Some(mut writer) = self.endpoint.begin_fields(stream.key) {
            trailers(&mut writer);
            writer.finish(true);
        }
        stream.is_sent = true;
        self.release_over(stream);
        self.wake_task();
        Ok(())
    }

    /// Opens a stream's window, up to the limit of unread bytes, once half of that is used. If
    /// the reader keeps up, the window may hold the server back: the limit is doubled.
    pub(crate) fn open_window(&mut self, stream: &mut ClientStreamState) {
        if stream.is_over() || stream.is_received {
            return;
        }
        let unread = u32::try_from(stream.unread()).unwrap_or(u32::MAX);
        let window = self.limits.stream_window() + stream.widened;
        let target = window.saturating_sub(unread);
        if self.endpoint.receive_window(stream.key) >= i64::from(target / 2) {
            return;
        }
        let wider = window.saturating_mul(2).min(WIDE_WINDOW).max(window) - window;
        let keeps_up = std::mem::take(&mut stream.was_empty);
        let more = if keeps_up { wider.min(WIDENED_BYTES_MAX - self.widened) } else { 0 };
        self.widened += more;
        stream.widened += more;
        self.endpoint.raise_window(stream.key, target + more);
        self.wake_task();
    }

    /// Resets a stream that its user has dropped, unless it has ended.
    pub(crate) fn give_up(&mut self, stream: &ClientStreamState) {
        if stream.is_over() {
            return;
        }
        let age_ms = clock::now_ms().saturating_sub(stream.opened_ms);
        if self.reads == stream.opened_reads && age_ms >= DOUBT_AFTER_MS {
            self.ask(stream.opened_ms);
        }
        self.release(stream);
        self.wake_task();
    }

    /// Sends a PING, unless one is unanswered. Since `since_ms`, the server has not responded.
    fn ask(&mut self, since_ms: u64) {
        if self.asked_ms.is_none() && self.pings < PINGS_MAX {
            self.pings += 1;
            self.endpoint.ping([0; 8]);
            self.asked_ms = Some(since_ms);
        }
    }

    pub(crate) fn is_asked(&self) -> bool {
        self.asked_ms.is_some()
    }

    /// Whether the server does not respond. No streams are opened until something is received.
    fn is_doubtful(&self) -> bool {
        let now_ms = clock::now_ms();
        self.asked_ms.is_some_and(|since_ms| now_ms.saturating_sub(since_ms) >= DOUBT_AFTER_MS)
    }

    /// Records that something was received.
    pub(crate) fn note_read(&mut self) {
        self.reads += 1;
        self.received_ms = clock::now_ms();
        self.asked_ms = None;
    }

    /// Frees the place of a stream if it has ended in both directions.
    pub(crate) fn release_over(&mut self, stream: &ClientStreamState) {
        if stream.is_over() {
            self.release(stream);
        }
    }

    /// Removes a stream; an incomplete one is reset.
    fn release(&mut self, stream: &ClientStreamState) {
        let key = stream.key;
        if self.streams.get_mut(key.slot as usize).and_then(Option::take).is_some() {
            self.open -= 1;
            self.widened -= stream.widened;
            self.idle_since_ms = clock::now_ms();
            self.endpoint.release(key, Http2Code::CANCEL);
        }
    }

    pub(crate) fn fail(&mut self, stream: &SharedStream, failure: StreamFailure) {
        let mut stream = stream.borrow_mut();
        stream.fail(failure);
        self.release(&stream);
    }

    /// Fails a stream that the server has not processed, unless it has sent a reply.
    pub(crate) fn fail_unprocessed(&mut self, stream: &SharedStream, failure: StreamFailure) {
        let has_reply = stream.borrow().has_reply;
        self.fail(stream, if has_reply { StreamFailure::Closed } else { failure });
    }

    /// Ends the connection and all of its streams.
    pub(crate) fn end(&mut self, failure: StreamFailure) {
        // A server's first bytes are its settings (RFC 9113, section 3.4). One that accepts
        // connections and reads none of them, because it stops, has sent nothing.
        let is_silent = self.reads == 0;
        for stream in self.streams() {
            let is_unknown = is_silent || stream.borrow().head_at >= self.offered;
            match is_unknown {
                true => self.fail_unprocessed(&stream, StreamFailure::Unprocessed),
                false => self.fail(&stream, failure.clone()),
            }
        }
        self.end.get_or_insert(failure);
        self.streams = Vec::new();
        self.task = None;
        let unsent = self.endpoint.output().len();
        self.endpoint.advance_output(unsent);
        self.take_output_buffer();
    }

    /// Wakes streams with this wait, the least recently served first, because each may use up all
    /// the room.
    pub(crate) fn wake_senders(&mut self, waits_for: SendWait) {
        self.round += 1;
        let waits = |stream: &&SharedStream| stream.borrow().waits_for == waits_for;
        let mut waiting: Vec<_> = self.streams.iter().flatten().filter(waits).cloned().collect();
        waiting.sort_by_key(|stream| stream.borrow().served);
        waiting.into_iter().for_each(|stream| stream.borrow_mut().wake_sender());
    }

    pub(crate) fn wake_task(&self) {
        self.task.as_ref().into_iter().for_each(Waker::wake_by_ref);
    }

    /// The number of bytes that were written or are queued.
    fn queued(&self) -> u64 {
        self.written + self.endpoint.output().len() as u64
    }

    /// Records that the output is offered to the socket, or to a session that may keep it.
    pub(crate) fn note_offered(&mut self) {
        self.offered = self.queued();
    }

    /// Records that `count` bytes of the output were written.
    pub(crate) fn note_written(&mut self, count: usize) {
        self.written += count as u64;
        self.endpoint.advance_output(count);
    }

    /// Gives the output a buffer, if it has none.
    pub(crate) fn lend_output(&mut self) {
        if !self.endpoint.has_buffer()
            && let Some(unneeded) = self.endpoint.give_buffer(buffers::lend())
        {
            buffers::give_back(unneeded);
        }
    }

    /// Gives back the output's buffer if it is empty.
    pub(crate) fn take_output_buffer(&mut self) {
        self.endpoint.take_buffer().into_iter().for_each(buffers::give_back);
    }
}
