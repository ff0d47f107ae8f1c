//! A connection of a client: sends requests on new streams and receives replies at the same time.

use std::io::IoSlice;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use net::{Stream, Timer, buffers};
use wire::http2::limits::{FloodLimit, Http2Limits};
use wire::http2::{
    Http2Code, Http2Config, Http2Endpoint, Http2Event, Http2Role, StreamKey, WINDOW_MAX,
};

use super::super::failure::RunFailure;
use super::super::pace::PaceClient;
use super::super::shared::ThreadShared;
use super::turn_queue::{GivenTurn, TurnQueue};

/// The most reads before other clients get their turn, because a server may send without end.
const READS_MAX: usize = 64;
/// How often other clients may go first, while replies arrive, before requests are sent.
const RESTS_MAX: u8 = 3;
/// The longest frame of a server: the smallest value that can be announced, as by h2load.
const FRAME_MAX: u32 = 1 << 14;
/// The longest header block, as long as an HTTP/1 head may be.
const BLOCK_MAX: u32 = 1 << 20;
const FIELDS_MAX: u32 = 10_000;

/// The result of a step of a connection.
pub(super) enum Http2Step {
    /// Other clients may go first: more replies may arrive before the next requests are sent.
    Rest,
    /// The connection is over: it has served its requests, or has failed.
    Ended(Result<(), RunFailure>),
}

pub(super) struct LoadHttp2Connection {
    shared: Rc<ThreadShared>,
    stream: Stream,
    endpoint: Http2Endpoint,
    input: Vec<u8>,
    /// Streams by the slots of their keys.
    active: Vec<Option<ActiveStream>>,
    /// The number of active streams.
    count: usize,
    /// The number of streams opened on this connection.
    requests: u64,
    /// Whether some request body is incomplete.
    has_bodies: bool,
    /// Whether the timer is set for the oldest request.
    is_timed: bool,
    /// Whether no further stream is opened.
    is_closing: bool,
    /// How often other clients went first since the last write.
    rests: u8,
}

struct ActiveStream {
    key: StreamKey,
    client: Rc<PaceClient>,
    /// Its intended start.
    begun: Instant,
    sent: Instant,
    status: u16,
    to_head: bool,
    /// The number of the request whose body is incomplete, and how many of its bytes were sent.
    body: Option<(u64, usize)>,
}

impl LoadHttp2Connection {
    pub(super) fn new(stream: Stream, shared: Rc<ThreadShared>) -> Self {
        Self {
            shared,
            stream,
            endpoint: Http2Endpoint::new(Http2Role::Client, config()),
            input: Vec::new(),
            active: Vec::new(),
            count: 0,
            requests: 0,
            has_bodies: false,
            is_timed: false,
            is_closing: false,
            rests: 0,
        }
    }

    /// Reads everything, then sends, because fewer writes cost both ends less.
    pub(super) fn poll(
        &mut self,
        turns: &mut TurnQueue,
        timer: &Timer,
        cx: &mut Context<'_>,
    ) -> Poll<Http2Step> {
        let step = match self.try_poll(turns, timer, cx) {
            Poll::Ready(Ok(step)) => step,
            Poll::Ready(Err(failure)) => Http2Step::Ended(Err(failure)),
            Poll::Pending => return Poll::Pending,
        };
        Poll::Ready(step)
    }

    fn try_poll(
        &mut self,
        turns: &mut TurnQueue,
        timer: &Timer,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Http2Step, RunFailure>> {
        let mut reads = 0;
        while let Poll::Ready(read) = self.poll_read(cx)? {
            if read == 0 {
                let lost = if self.count == 0 { Ok(()) } else { Err(RunFailure::Closed) };
                return Poll::Ready(lost.map(|()| Http2Step::Ended(Ok(()))));
            }
            self.shared.tally.borrow_mut().bytes += read as u64;
            self.look(turns)?;
            reads += 1;
            if reads == READS_MAX {
                cx.waker().wake_by_ref();
                break;
            }
        }
        if reads > 0 && self.count > 0 && self.rests < RESTS_MAX {
            self.rests += 1;
            return Poll::Ready(Ok(Http2Step::Rest));
        }
        self.rests = 0;
        if self.is_timed && timer.poll(cx).is_ready() {
            self.expire(turns, timer, cx);
        }
        self.open_streams(turns, timer, cx);
        self.write(cx)?;
        if self.is_closing && self.count == 0 {
            return Poll::Ready(Ok(Http2Step::Ended(Ok(()))));
        }
        Poll::Pending
    }

    /// Fails the requests in progress.
    pub(super) fn abandon(mut self, turns: &mut TurnQueue, ended: Result<(), RunFailure>) {
        self.stream.close_session();
        let failure = ended.err().unwrap_or(RunFailure::Closed);
        failure.count(self.count as u64, &mut self.shared.tally.borrow_mut().errors);
        for stream in self.active.drain(..).flatten() {
            turns.done(stream.client);
        }
    }

    fn open_streams(&mut self, turns: &mut TurnQueue, timer: &Timer, cx: &mut Context<'_>) {
        let most = self.shared.plan.per_connection.unwrap_or(u64::MAX);
        if turns.waiting.is_empty() && self.requests < most && !self.is_closing {
            turns.poll_turns(cx);
        }
        if turns.waiting.is_empty() {
            return;
        }
        let now = Instant::now();
        while !self.is_closing && !turns.waiting.is_empty() {
            if self.requests >= most {
                self.is_closing = true;
                break;
            }
            let Some(key) = self.endpoint.open() else { break };
            let Some(turn) = turns.waiting.pop_front() else { break };
            self.requests += 1;
            self.send(key, turn, now);
        }
        self.is_closing |= self.requests >= most;
        if !self.is_timed {
            timer.set(self.shared.plan.timeout_ms());
            self.is_timed = true;
            let _ = timer.poll(cx);
        }
    }

    fn send(&mut self, key: StreamKey, turn: GivenTurn, now: Instant) {
        let number = self.shared.next_number();
        let request = self.shared.plan.mix.at(number);
        if let Some(mut writer) = self.endpoint.begin_fields(key) {
            for (name, value) in &request.fields {
                writer.field(name, value);
            }
            writer.finish(request.bytes.is_empty());
        }
        let slot = key.slot as usize;
        if self.active.len() <= slot {
            self.active.resize_with(slot + 1, || None);
        }
        let has_body = !request.bytes.is_empty();
        self.active[slot] = Some(ActiveStream {
            key,
            client: turn.client,
            begun: turn.begun.unwrap_or(now),
            sent: now,
            status: 0,
            to_head: request.to_head,
            body: has_body.then_some((number, 0)),
        });
        self.count += 1;
        if has_body {
            self.has_bodies = true;
            self.send_body(slot);
        }
    }

    /// Sends as much of a body as the server's windows allow.
    fn send_body(&mut self, slot: usize) {
        let Some(stream) = self.active.get_mut(slot).and_then(Option::as_mut) else { return };
        let Some((number, sent)) = stream.body else { return };
        let rest = &self.shared.plan.mix.at(number).bytes[sent..];
        let count = rest.len().min(self.endpoint.sendable(stream.key));
        if count == 0 {
            return;
        }
        let is_end = count == rest.len();
        self.endpoint.send_data(stream.key, &rest[..count], is_end, usize::MAX);
        stream.body = (!is_end).then_some((number, sent + count));
    }

    fn send_bodies(&mut self) {
        if self.has_bodies {
            (0..self.active.len()).for_each(|slot| self.send_body(slot));
            self.has_bodies = self.active.iter().flatten().any(|stream| stream.body.is_some());
        }
    }

    fn write(&mut self, cx: &mut Context<'_>) -> Result<(), RunFailure> {
        while !self.endpoint.output().is_empty() {
            match self.stream.poll_write(cx, &[IoSlice::new(self.endpoint.output())]) {
                Poll::Ready(Ok(written)) => self.endpoint.advance_output(written),
                Poll::Ready(Err(error)) => return Err(RunFailure::of_write(&error)),
                Poll::Pending => break,
            }
        }
        Ok(())
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Result<usize, RunFailure>> {
        if self.input.capacity() == 0 {
            self.input = buffers::lend_large();
        }
        let read = self.stream.poll_read(cx, &mut self.input);
        if read.is_pending() {
            buffers::give_back(std::mem::take(&mut self.input));
        }
        read.map_err(|_| RunFailure::Reset)
    }

    /// Processes received bytes. The endpoint keeps incomplete frames.
    fn look(&mut self, turns: &mut TurnQueue) -> Result<(), RunFailure> {
        let (now, mut at) = (Instant::now(), 0);
        loop {
            let received = self.endpoint.receive(&self.input[at..]);
            let received = received.map_err(|_| RunFailure::Invalid)?;
            at += received.consumed;
            let Some(event) = received.event else { break };
            self.take(event, now, turns);
        }
        self.input.clear();
        Ok(())
    }

    fn take(&mut self, event: Http2Event, now: Instant, turns: &mut TurnQueue) {
        match event {
            Http2Event::Head { stream, end_stream } => {
                self.note_head(stream);
                if end_stream {
                    self.complete(stream, now, turns);
                }
            }
            Http2Event::Data { stream, end_stream: true, .. } | Http2Event::Trailers { stream } => {
                self.complete(stream, now, turns);
            }
            Http2Event::Data { stream, .. } => self.refill(stream),
            Http2Event::Malformed { stream, .. } => self.fail(stream, RunFailure::Invalid, turns),
            Http2Event::Provoked { stream, .. } => self.fail(stream, RunFailure::Invalid, turns),
            Http2Event::Reset { stream, code: Http2Code::REFUSED_STREAM } => {
                self.send_again(stream, turns);
            }
            Http2Event::Reset { stream, .. } => self.fail(stream, RunFailure::Reset, turns),
            Http2Event::Writable { .. } => self.send_bodies(),
            Http2Event::GoAway { last_stream, .. } => self.go_away(last_stream, turns),
            Http2Event::Interim { .. } | Http2Event::SettingsAcked | Http2Event::Pong { .. } => {}
        }
    }

    fn note_head(&mut self, key: StreamKey) {
        let fields = self.endpoint.fields();
        let digits = fields.iter().next().map(|(_, value)| value).unwrap_or_default();
        let status = digits.iter().fold(0, |code, digit| code * 10 + u16::from(digit & 15));
        let length = fields.get(b"content-length");
        let length = length.and_then(|text| std::str::from_utf8(text).ok()?.parse().ok());
        let Some(stream) = self.active.get_mut(key.slot as usize).and_then(Option::as_mut) else {
            return;
        };
        stream.status = status;
        let has_body = !stream.to_head && status != 204 && status != 304;
        if let Some(length) = length.filter(|_| has_body) {
            self.endpoint.announce(key, length);
        }
    }

    /// Opens the window of a stream for the rest of a reply.
    fn refill(&mut self, key: StreamKey) {
        if self.endpoint.receive_window(key) < i64::from(WINDOW_MAX / 2) {
            self.endpoint.raise_window(key, WINDOW_MAX);
        }
    }

    fn complete(&mut self, key: StreamKey, now: Instant, turns: &mut TurnQueue) {
        let Some(stream) = self.remove(key) else { return };
        self.shared.replied(stream.status, stream.begun, now);
        turns.done(stream.client);
    }

    fn fail(&mut self, key: StreamKey, failure: RunFailure, turns: &mut TurnQueue) {
        let Some(stream) = self.remove(key) else { return };
        failure.count(1, &mut self.shared.tally.borrow_mut().errors);
        turns.done(stream.client);
    }

    fn remove(&mut self, key: StreamKey) -> Option<ActiveStream> {
        let place = self.active.get_mut(key.slot as usize)?;
        let stream = place.take_if(|stream| stream.key == key)?;
        self.endpoint.release(key, Http2Code::CANCEL);
        self.count -= 1;
        Some(stream)
    }

    /// The server has not processed the request: it is sent again, on this connection or the next
    /// one (RFC 9113, section 8.7).
    fn send_again(&mut self, key: StreamKey, turns: &mut TurnQueue) {
        if let Some(ActiveStream { client, begun, .. }) = self.remove(key) {
            turns.waiting.push_back(GivenTurn { client, begun: Some(begun) });
        }
    }

    /// The server accepts no further streams, for example after its limit of requests.
    fn go_away(&mut self, last_stream: u32, turns: &mut TurnQueue) {
        self.is_closing = true;
        let keys = self.active.iter().flatten().map(|stream| stream.key);
        let lost: Vec<StreamKey> = keys.filter(|key| key.id > last_stream).collect();
        lost.into_iter().for_each(|key| self.send_again(key, turns));
    }

    /// Fails requests that have timed out, and sets the timer for the next one.
    fn expire(&mut self, turns: &mut TurnQueue, timer: &Timer, cx: &mut Context<'_>) {
        let (now, timeout) = (Instant::now(), self.shared.plan.timeout);
        let late = |stream: &ActiveStream| now.saturating_duration_since(stream.sent) >= timeout;
        let keys = self.active.iter().flatten().filter(|stream| late(stream));
        let keys: Vec<StreamKey> = keys.map(|stream| stream.key).collect();
        keys.into_iter().for_each(|key| self.fail(key, RunFailure::Timeout, turns));
        let oldest = self.active.iter().flatten().map(|stream| stream.sent).min();
        self.is_timed = oldest.is_some();
        match oldest {
            Some(sent) => {
                let left = (sent + timeout).saturating_duration_since(now);
                timer.set((left + Duration::from_millis(1)).as_millis() as u64);
                // Registers the task.
                let _ = timer.poll(cx);
            }
            None => timer.clear(),
        }
    }
}

impl Drop for LoadHttp2Connection {
    fn drop(&mut self) {
        buffers::give_back(std::mem::take(&mut self.input));
    }
}

/// Large windows, so that servers do not wait for them, and limits only against endless memory,
/// because a measured server is trusted.
fn config() -> Http2Config {
    let any = FloodLimit { burst: u32::MAX, per_second: 0 };
    Http2Config {
        max_concurrent_streams: 0,
        stream_window: WINDOW_MAX,
        max_frame_size: FRAME_MAX,
        max_header_list_size: None,
        limits: Http2Limits {
            peer_resets: any,
            provoked_resets: any,
            settings: any,
            pings: any,
            priorities: any,
            empty_data: any,
            window_updates: any,
            unknown_frames: any,
            continuation_frames_max: u32::MAX,
            block_bytes_max: BLOCK_MAX,
            fields_bytes_max: BLOCK_MAX,
            field_bytes_max: BLOCK_MAX,
            fields_max: FIELDS_MAX,
            answer_bytes_max: BLOCK_MAX,
        },
    }
}
