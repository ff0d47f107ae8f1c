//! One question over HTTP/1: connected, sent, and the reply read as far as it is looked at.
//!
//! It knows no check: what the reply is worth is decided elsewhere.

use std::io::{self, IoSlice};
use std::task::{Context, Waker};

use ::upstream::health::{connect, in_time};
use net::{Address, Connect, Stream, Timer, clock};
use observe::Errno;
use wire::http1::response::{ReplyBody, ReplyHead};

use crate::backend::{self, Coding, Timeouts};
use crate::exchange::BodyError;

/// How much of a body is looked at.
pub(super) const BODY_MAX: usize = 256 * 1024;
/// How much is read at once.
const READ_SIZE: usize = 16 * 1024;

/// What log lines call the steps.
pub(super) const CONNECTING: &str = "connecting to upstream";
/// The same for sending.
pub(super) const SENDING: &str = "sending request to upstream";
const READING_HEAD: &str = "reading response header from upstream";
const READING_BODY: &str = "reading upstream";

/// What is to be asked, and how.
pub(super) struct Question<'a> {
    pub(super) to: Address,
    pub(super) manner: Connect,
    pub(super) request: &'a [u8],
    pub(super) to_head: bool,
    pub(super) times: Times,
    pub(super) head_max: usize,
    /// Whether the body is looked at.
    pub(super) needs_body: bool,
    /// Whether the connection may serve for another question.
    pub(super) keeps: bool,
}

/// How long it may take.
#[derive(Clone, Copy)]
pub(super) enum Times {
    /// Each step.
    Steps(Timeouts),
    /// All of it.
    Whole(u64),
}

/// A reply.
pub(super) struct Answer {
    pub(super) head: ReplyHead,
    /// The head's bytes, and those of the body as far as it was read, without its framing.
    pub(super) bytes: Vec<u8>,
    pub(super) head_bytes: usize,
    pub(super) kept: Option<Kept>,
}

/// A connection that serves for another question.
pub(super) struct Kept {
    stream: Stream,
    to: Address,
    pub(super) opened_ms: u64,
    /// How many it has served for.
    pub(super) requests: u64,
}

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// What was being done, as log lines name it after `while`.
    pub(crate) action: &'static str,
    pub(crate) cause: String,
}

impl Failure {
    pub(crate) fn new(action: &'static str, cause: impl Into<String>) -> Self {
        Self { action, cause: cause.into() }
    }

    /// In nginx's words for a call that failed.
    pub(super) fn of_call(action: &'static str, call: &str, error: &io::Error) -> Self {
        let is_late = error.raw_os_error() == net::timed_out().raw_os_error();
        let what = if is_late { "upstream timed out".to_owned() } else { format!("{call} failed") };
        Self::new(action, format!("{what}{}", Errno(error)))
    }

    fn closed(action: &'static str) -> Self {
        Self::new(action, "upstream prematurely closed connection")
    }
}

/// Asks, on a kept connection if there is one that still stands.
pub(super) async fn ask(question: &Question<'_>, kept: Option<Kept>) -> Result<Answer, Failure> {
    let timer = Timer::new();
    if let Times::Whole(time_ms) = question.times {
        timer.set(time_ms);
    }
    if let Some(kept) = kept.filter(|kept| kept.to == question.to).and_then(Kept::quiet) {
        let mut talk = Talk::new(question, &timer, kept);
        let answer = talk.run().await;
        // That it was closed meanwhile says nothing of the server.
        if answer.is_ok() || talk.has_heard() {
            return answer.map(|answer| talk.end(answer));
        }
    }
    if let Times::Steps(Timeouts { connect_ms, .. }) = question.times {
        timer.set(connect_ms);
    }
    let stream = connect(&question.manner, &question.to, &timer)
        .await
        .map_err(|(call, error)| Failure::of_call(CONNECTING, call, &error))?;
    let kept = Kept { stream, to: question.to.clone(), opened_ms: clock::now_ms(), requests: 0 };
    let mut talk = Talk::new(question, &timer, kept);
    let answer = talk.run().await?;
    Ok(talk.end(answer))
}

/// A question on one connection.
struct Talk<'a> {
    question: &'a Question<'a>,
    timer: &'a Timer,
    kept: Kept,
    bytes: Vec<u8>,
}

/// A reply that was read.
struct Read {
    head: ReplyHead,
    head_bytes: usize,
    /// Whether nothing is left to read, and the server does not close.
    may_go_on: bool,
}

impl<'a> Talk<'a> {
    fn new(question: &'a Question<'a>, timer: &'a Timer, kept: Kept) -> Self {
        Self { question, timer, kept, bytes: Vec::new() }
    }

    fn has_heard(&self) -> bool {
        !self.bytes.is_empty()
    }

    async fn run(&mut self) -> Result<Read, Failure> {
        self.kept.requests += 1;
        self.send().await?;
        let (head, head_bytes) = self.read_head().await?;
        let body = ReplyBody::of(&head, &self.bytes, self.question.to_head)
            .map_err(|error| Failure::new(READING_HEAD, backend::describe(error, &self.bytes)))?;
        let is_whole = match self.question.needs_body || self.question.keeps {
            true => self.read_body(body, head_bytes).await?,
            false => false,
        };
        let may_go_on = is_whole && !head.closes(&self.bytes);
        Ok(Read { head, head_bytes, may_go_on })
    }

    fn end(self, read: Read) -> Answer {
        let Read { head, head_bytes, may_go_on } = read;
        let kept = (may_go_on && self.question.keeps).then_some(self.kept);
        Answer { head, bytes: self.bytes, head_bytes, kept }
    }

    async fn send(&mut self) -> Result<(), Failure> {
        let mut rest = self.question.request;
        while !rest.is_empty() {
            if let Times::Steps(Timeouts { send_ms, .. }) = self.question.times {
                self.timer.set(send_ms);
            }
            let stream = &mut self.kept.stream;
            let written = in_time(self.timer, |cx| stream.poll_write(cx, &[IoSlice::new(rest)]));
            let written =
                written.await.map_err(|error| Failure::of_call(SENDING, "send()", &error))?;
            rest = &rest[written..];
        }
        Ok(())
    }

    /// Reads some more; 0 is the end.
    async fn read(&mut self, most: usize, action: &'static str) -> Result<usize, Failure> {
        if let Times::Steps(Timeouts { read_ms, .. }) = self.question.times {
            self.timer.set(read_ms);
        }
        let most = most.clamp(1, READ_SIZE);
        self.bytes.reserve(most);
        let (stream, bytes) = (&mut self.kept.stream, &mut self.bytes);
        in_time(self.timer, |cx| stream.poll_read_most(cx, bytes, most))
            .await
            .map_err(|error| Failure::of_call(action, "recv()", &error))
    }

    /// Interim replies are passed over.
    async fn read_head(&mut self) -> Result<(ReplyHead, usize), Failure> {
        let mut head = ReplyHead::default();
        loop {
            let parsed = head.parse(&self.bytes).map_err(|error| {
                Failure::new(READING_HEAD, backend::describe(error, &self.bytes))
            })?;
            match parsed {
                Some(_) if matches!(head.status, 100 | 102..=199) => head.reset_to_next(),
                Some(head_bytes) => return Ok((head, head_bytes)),
                None if self.bytes.len() >= self.question.head_max => {
                    return Err(Failure::new(READING_HEAD, "upstream sent too big header"));
                }
                None => {
                    let room = self.question.head_max - self.bytes.len();
                    if self.read(room, READING_HEAD).await? == 0 {
                        return Err(Failure::closed(READING_HEAD));
                    }
                }
            }
        }
    }

    /// Reads the body, but not more of it than is looked at. Whether that is all of it, with
    /// nothing after it.
    async fn read_body(&mut self, body: ReplyBody, head_bytes: usize) -> Result<bool, Failure> {
        let mut coding = Coding::of(body, false);
        if coding.is_ended() {
            return Ok(self.bytes.len() == head_bytes);
        }
        let mut start = head_bytes;
        loop {
            let taken = coding.take(&mut self.bytes, start, 0).map_err(invalid)?;
            let end = taken.end;
            self.bytes.truncate(end);
            start = end;
            if coding.is_ended() {
                return Ok(taken.surplus.is_none());
            }
            let left = (head_bytes + BODY_MAX).saturating_sub(end);
            if left == 0 {
                return Ok(false);
            }
            if self.read(left, READING_BODY).await? == 0 {
                return match coding {
                    Coding::Close => Ok(false),
                    _ => Err(Failure::closed(READING_BODY)),
                };
            }
        }
    }
}

fn invalid(error: BodyError) -> Failure {
    let cause = match error {
        BodyError::Upstream(cause) => cause,
        _ => "upstream sent an invalid body".into(),
    };
    Failure::new(READING_BODY, cause)
}

impl Kept {
    /// Itself, unless the server has closed it or sent what nobody asked for.
    fn quiet(mut self) -> Option<Self> {
        let mut cx = Context::from_waker(Waker::noop());
        self.stream.poll_disturbed(&mut cx).is_pending().then_some(self)
    }
}
