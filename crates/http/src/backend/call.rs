//! One request to one server: sends it, and reads the head of the reply as soon as it arrives.
//!
//! If sending fails, the reply is still read: the server may have answered before.

use std::cell::Cell;
use std::io;
use std::task::{Context, Poll, ready};

use net::{Timer, buffers, memory};
use observe::{Errno, Level};

use super::Timeouts;
use super::caller::Caller;
use super::carrier::{BackendCarrier, CarrierError};
use super::head::HeaderFilter;
use super::protocol::{HeadEvent, ReplyLength, ReplyReader};
use crate::exchange::{RequestBodyError, TimedPhase};

/// The action in log lines while the request is written.
pub(crate) const SENDING: &str = "sending request to upstream";
/// The action in log lines while the reply's head is read.
pub(crate) const READING_HEAD: &str = "reading response header from upstream";

/// Interim replies (1xx) before the final one. Each is as long as `buffer_size` at most.
const INTERIM_REPLIES_MAX: u8 = 64;

/// The cost of a byte read before the head is complete. It may belong to an application's error
/// message, which is logged.
const COST_OF_HEAD: usize = 4;

/// Why a server did not answer. The reason has been logged.
#[derive(Debug)]
pub(crate) enum CallError {
    /// The connection failed, or could not be opened.
    Error,
    Timeout,
    /// The server has not processed the request and will not.
    Refused,
    /// As [`Refused`](Self::Refused), because the server ends the connection in good order.
    Leaving,
    /// The server sent an invalid head.
    InvalidHeader,
    /// The server reset the stream before a head, or broke the protocol.
    Aborted,
    /// An error of this server: no other backend would do better.
    Internal,
    /// The client did not send its body.
    Client(RequestBodyError),
}

/// A request on its way, and the beginning of its reply.
pub(super) struct UpstreamRequest<'a, C: ?Sized> {
    carrier: &'a mut C,
    /// The head in the protocol's own form.
    head: &'a [u8],
    timer: &'a Timer,
    /// The limits of each step; `None`: the timer runs already, and limits the whole request.
    timeouts: Option<&'a Timeouts>,
    /// The largest head of a reply.
    head_max: u64,
    /// Which fields of early hints the client gets; `None`: early hints are skipped.
    pub(super) early_hints: Option<&'a HeaderFilter>,
    received: &'a Cell<u64>,
    /// The failed call after which nothing more is sent.
    broken: Option<(&'static str, io::Error)>,
    /// The step that the timer limits now.
    timed: Option<TimedStep>,
    /// The bytes received, without interim replies.
    input: Vec<u8>,
    interim_replies: u8,
    /// Bytes of early hints so far.
    early_bytes: u32,
    /// Whether other tasks run before the next read: there may be something to read.
    yields: bool,
}

/// A step that a timer limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimedStep {
    /// To write some of the request.
    Write,
    /// To read some of the reply.
    Read,
    /// To wait until the rate allows the next read.
    Rate,
}

/// A reply whose head has been read.
pub(super) struct Answered {
    pub(super) body: ReplyLength,
    /// The length of the head in the input. The body follows it.
    pub(super) head_bytes: usize,
    pub(super) input: Vec<u8>,
    /// Whether the whole request was sent.
    pub(super) sent: bool,
}

impl<'a, C: BackendCarrier + ?Sized> UpstreamRequest<'a, C> {
    pub(super) fn new(
        carrier: &'a mut C,
        head: &'a [u8],
        timer: &'a Timer,
        timeouts: Option<&'a Timeouts>,
        head_max: u64,
        received: &'a Cell<u64>,
    ) -> Self {
        Self {
            carrier,
            head,
            timer,
            timeouts,
            head_max,
            early_hints: None,
            received,
            broken: None,
            timed: None,
            input: Vec::new(),
            interim_replies: 0,
            early_bytes: 0,
            yields: false,
        }
    }

    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        caller: &mut impl Caller,
    ) -> Poll<Result<Answered, CallError>> {
        if !self.carrier.progress().is_done && self.broken.is_none() {
            self.poll_send(cx, caller)?;
        }
        match self.poll_head(cx, caller) {
            Poll::Ready(answered) => Poll::Ready(answered),
            Poll::Pending if self.yields => self.poll_timeout(cx, caller).map(Err),
            Poll::Pending if self.broken.is_some() => Poll::Ready(Err(self.unsent(caller))),
            Poll::Pending => self.poll_timeout(cx, caller).map(Err),
        }
    }

    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        caller: &mut impl Caller,
    ) -> Result<(), CallError> {
        caller.set_action(SENDING);
        let Self { carrier, head, .. } = self;
        let before = carrier.progress().written;
        let sent = carrier.poll_send(cx, head);
        if carrier.progress().written > before || sent.is_ready() {
            self.timed = None;
        }
        match sent {
            Poll::Ready(Err(CarrierError::Client(error))) => Err(CallError::Client(error)),
            Poll::Ready(Err(error @ (CarrierError::Refused | CarrierError::Leaving))) => {
                Err(refused(caller, &error))
            }
            Poll::Ready(Err(CarrierError::Peer(message))) => {
                caller.log(Level::Error, format_args!("{message}"));
                Err(CallError::Aborted)
            }
            Poll::Ready(Err(CarrierError::Call(call, error))) => {
                self.broken = Some((call, error));
                Ok(())
            }
            Poll::Ready(Ok(())) | Poll::Pending => Ok(()),
        }
    }

    /// Checks the time between writes until the request is sent, then the time between reads.
    /// While the request waits for the client's body, no time limit of the server applies.
    fn poll_timeout(&mut self, cx: &mut Context<'_>, caller: &mut impl Caller) -> Poll<CallError> {
        let progress = self.carrier.progress();
        let step = match progress.is_done {
            true => TimedStep::Read,
            false if progress.waits_for_client => {
                caller.waits_for(TimedPhase::Body);
                return Poll::Pending;
            }
            false => TimedStep::Write,
        };
        caller.waits_for(match step {
            TimedStep::Write => TimedPhase::BackendSend,
            TimedStep::Read | TimedStep::Rate => TimedPhase::BackendHead,
        });
        if self.timed != Some(step) {
            self.timed = Some(step);
            if let Some(&Timeouts { send_ms, read_ms, .. }) = self.timeouts {
                self.timer.set(if step == TimedStep::Read { read_ms } else { send_ms });
            }
        }
        ready!(self.timer.poll(cx));
        if step == TimedStep::Read {
            caller.set_action(READING_HEAD);
        }
        Poll::Ready(timed_out(caller))
    }

    /// Logs why the request could not be written, once the server has sent no reply either.
    fn unsent(&mut self, caller: &mut impl Caller) -> CallError {
        if let Some((call, error)) = self.broken.take() {
            caller.set_action(SENDING);
            caller.log(Level::Error, format_args!("{call} failed{}", Errno(&error)));
        }
        CallError::Error
    }

    /// Reads until the head of the reply is complete.
    fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
        caller: &mut impl Caller,
    ) -> Poll<Result<Answered, CallError>> {
        loop {
            let read = self.poll_read(cx);
            self.yields = read.is_pending() && !net::has_share();
            match ready!(read) {
                Ok(count @ 1..) => {
                    let received = self.received;
                    received.set(received.get() + count as u64);
                    net::spend(count * COST_OF_HEAD);
                }
                ended => {
                    caller.set_action(READING_HEAD);
                    return Poll::Ready(Err(self.ended(caller, ended)));
                }
            }
            caller.set_action(READING_HEAD);
            match self.parse(caller) {
                Ok(None) if self.interim_replies == 0 => self.timed = None,
                Ok(None) => {}
                Ok(Some(answered)) => return Poll::Ready(Ok(answered)),
                Err(error) => {
                    caller.note_text(&self.input);
                    return Poll::Ready(Err(error));
                }
            }
        }
    }

    /// Reads once. Holds no buffer until bytes have arrived.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Result<usize, CarrierError>> {
        if self.input.capacity() == 0 && self.may_be_large() {
            self.input = buffers::lend_large();
        }
        if !self.input.is_empty() && self.input.len() == self.input.capacity() {
            let reserved = memory::try_reserve(&mut self.input, buffers::BUFFER_SIZE);
            reserved.map_err(|error| CarrierError::Call("realloc()", error.into()))?;
        }
        let read = self.carrier.poll_read(cx, &mut self.input, usize::MAX);
        if self.input.is_empty() {
            buffers::give_back(std::mem::take(&mut self.input));
        }
        read
    }

    /// Whether a head may be larger than most buffers.
    fn may_be_large(&self) -> bool {
        self.head_max > buffers::BUFFER_SIZE as u64
    }

    /// Logs that the connection has ended before the head has.
    fn ended(&mut self, caller: &mut impl Caller, ended: Result<usize, CarrierError>) -> CallError {
        if self.broken.is_some() {
            return self.unsent(caller);
        }
        match ended {
            Ok(_) => {
                caller.log(Level::Error, format_args!("upstream prematurely closed connection"));
            }
            Err(error @ (CarrierError::Refused | CarrierError::Leaving)) => {
                return refused(caller, &error);
            }
            Err(CarrierError::Peer(message)) => {
                caller.log(Level::Error, format_args!("{message}"));
                return CallError::Aborted;
            }
            Err(CarrierError::Client(error)) => return CallError::Client(error),
            Err(CarrierError::Call(_, error)) if memory::is_out_of_memory(&error) => {
                caller.log(Level::Emerg, format_args!("{error}"));
                return CallError::Internal;
            }
            Err(CarrierError::Call(call, error)) => {
                caller.log(Level::Error, format_args!("{call} failed{}", Errno(&error)));
            }
        }
        CallError::Error
    }

    /// Parses the head; `None` if it is incomplete. Skips interim replies, except early hints.
    fn parse(&mut self, caller: &mut impl Caller) -> Result<Option<Answered>, CallError> {
        loop {
            let reply = self.carrier.reply_mut();
            let event = reply.head(&mut self.input, caller.reply_head());
            let event = event.map_err(|message| {
                caller.log(Level::Error, format_args!("{message}"));
                CallError::InvalidHeader
            })?;
            let (HeadEvent::Interim(bytes) | HeadEvent::Complete { bytes, .. }) = event else {
                if let HeadEvent::Log(line) = event {
                    caller.log(line.level, format_args!("{}", line.text));
                    continue;
                }
                self.check_size(self.input.len() + 1, caller)?;
                caller.note_text(&self.input);
                return Ok(None);
            };
            self.check_size(bytes, caller)?;
            let HeadEvent::Complete { body, .. } = event else {
                self.pass_over(caller, bytes)?;
                continue;
            };
            caller.note_text(&self.input[..bytes]);
            let sent = self.carrier.progress().is_done && self.broken.is_none();
            let input = std::mem::take(&mut self.input);
            return Ok(Some(Answered { body, head_bytes: bytes, input, sent }));
        }
    }

    fn check_size(&self, head_bytes: usize, caller: &mut impl Caller) -> Result<(), CallError> {
        if head_bytes as u64 <= self.head_max {
            return Ok(());
        }
        caller.log(Level::Error, format_args!("upstream sent too big header"));
        Err(CallError::InvalidHeader)
    }

    /// Skips an interim reply. From the first one on, the read timeout covers everything up to the
    /// final head.
    fn pass_over(&mut self, caller: &mut impl Caller, bytes: usize) -> Result<(), CallError> {
        self.interim_replies += 1;
        if self.interim_replies > INTERIM_REPLIES_MAX {
            let most = INTERIM_REPLIES_MAX;
            let message = format_args!("upstream sent more than {most} interim responses");
            caller.log(Level::Error, message);
            return Err(CallError::InvalidHeader);
        }
        if caller.reply_head().status == 103 {
            self.early_bytes = self.early_bytes.saturating_add(bytes as u32);
            if u64::from(self.early_bytes) > self.head_max {
                caller.log(Level::Info, format_args!("upstream sent too big early hints"));
            } else if let Some(filter) = self.early_hints {
                caller.note_text(&self.input[..bytes]);
                caller.send_early_hints(filter);
            }
        }
        caller.reply_head().reset();
        self.input.drain(..bytes);
        Ok(())
    }
}

impl<C: ?Sized> Drop for UpstreamRequest<'_, C> {
    fn drop(&mut self) {
        buffers::give_back(std::mem::take(&mut self.input));
    }
}

/// Logs that the server takes no more requests on this connection.
fn refused(caller: &mut impl Caller, error: &CarrierError) -> CallError {
    let (reason, error) = match error {
        CarrierError::Leaving => (", it ends the connection", CallError::Leaving),
        _ => ("", CallError::Refused),
    };
    caller.log(Level::Info, format_args!("upstream did not process the request{reason}"));
    error
}

pub(super) fn timed_out(caller: &mut impl Caller) -> CallError {
    let error = net::timed_out();
    caller.log(Level::Error, format_args!("upstream timed out{}", Errno(&error)));
    CallError::Timeout
}
