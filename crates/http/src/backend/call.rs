//! One request to one server: sent and, as soon as there is any of it, the reply's head read.
//!
//! If sending fails, a reply that was sent already is still read.

use std::cell::Cell;
use std::io;
use std::task::{Context, Poll, ready};

use net::{Timer, buffers, memory};
use observe::{Errno, Level};

use super::Timeouts;
use super::caller::Caller;
use super::carrier::{BackendCarrier, ReadFailure, Unsent};
use super::protocol::{HeadEvent, ReplyLength, ReplyReader};
use crate::exchange::RequestBodyError;

/// What is done while the request is written.
pub(crate) const SENDING: &str = "sending request to upstream";
/// What is done once there is something to read.
pub(crate) const READING_HEAD: &str = "reading response header from upstream";

/// Interim replies (1xx) before the final one. Each is as long as `buffer_size` at most.
const INTERIM_REPLIES_MAX: u8 = 64;

/// The cost of a byte read before the head is complete. It may belong to an application's error
/// message, which is logged.
const COST_OF_HEAD: usize = 4;

/// Why a server did not answer. What there was to say has been logged.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// No connection, or none any more.
    Error,
    /// It took too long.
    Timeout,
    /// It has not looked at the request, and never will.
    Refused,
    /// What it sent is no reply.
    InvalidHeader,
    /// Ours: no other server would do better.
    Internal,
    /// The client's: its body does not come.
    Client(RequestBodyError),
}

/// How long a request may take once it has a connection.
#[derive(Clone, Copy)]
pub(crate) enum Times {
    /// Each step.
    Steps {
        /// Between two writes.
        send_ms: u64,
        /// Between two reads.
        read_ms: u64,
    },
    /// As long as the timer runs that it was given.
    Whole,
}

/// A request to be sent.
pub(crate) struct BackendCall<'a, C: ?Sized> {
    pub(crate) carrier: &'a mut C,
    /// What stands before the body, in the protocol's own form.
    pub(crate) head: &'a [u8],
    pub(crate) timer: &'a Timer,
    pub(crate) times: Times,
    /// The longest head of a reply.
    pub(crate) head_max: u64,
    /// Counts what is received.
    pub(crate) received: &'a Cell<u64>,
}

/// The request on its way, and the reply's beginning.
pub(super) struct Calling<'a, C: ?Sized> {
    call: BackendCall<'a, C>,
    /// Why no more is sent.
    broken: Option<(&'static str, io::Error)>,
    /// What the timer is for.
    waits: CallTimer,
    /// What has been received, without interim replies.
    input: Vec<u8>,
    interim_replies: u8,
    /// Bytes of early hints so far.
    early_bytes: u32,
    /// Whether others have their turn before the next read: there may be something to read.
    yields: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallTimer {
    Nothing,
    ToWrite,
    ToRead,
}

/// The head of a reply has been read.
pub(super) struct Answered {
    pub(super) body: ReplyLength,
    /// Where in the input the body begins.
    pub(super) head_bytes: usize,
    pub(super) input: Vec<u8>,
    /// Whether all of the request was sent.
    pub(super) sent: bool,
}

impl From<Timeouts> for Times {
    fn from(timeouts: Timeouts) -> Self {
        Self::Steps { send_ms: timeouts.send_ms, read_ms: timeouts.read_ms }
    }
}

impl<'a, C: BackendCarrier + ?Sized> Calling<'a, C> {
    pub(super) fn new(call: BackendCall<'a, C>) -> Self {
        Self {
            call,
            broken: None,
            waits: CallTimer::Nothing,
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
    ) -> Poll<Result<Answered, Trouble>> {
        if !self.call.carrier.progress().is_done && self.broken.is_none() {
            self.poll_send(cx, caller)?;
        }
        match self.poll_head(cx, caller) {
            Poll::Ready(answered) => Poll::Ready(answered),
            Poll::Pending if self.yields => self.poll_timeout(cx, caller).map(Err),
            Poll::Pending if self.broken.is_some() => Poll::Ready(Err(self.unsent(caller))),
            Poll::Pending => self.poll_timeout(cx, caller).map(Err),
        }
    }

    fn poll_send(&mut self, cx: &mut Context<'_>, caller: &mut impl Caller) -> Result<(), Trouble> {
        caller.set_action(SENDING);
        let BackendCall { carrier, head, .. } = &mut self.call;
        let before = carrier.progress().written;
        let sent = carrier.poll_send(cx, head);
        if carrier.progress().written > before || sent.is_ready() {
            self.waits = CallTimer::Nothing;
        }
        match sent {
            Poll::Ready(Err(Unsent::Client(error))) => Err(Trouble::Client(error)),
            Poll::Ready(Err(Unsent::Refused)) => Err(refused(caller)),
            Poll::Ready(Err(Unsent::Call(call, error))) => {
                self.broken = Some((call, error));
                Ok(())
            }
            Poll::Ready(Ok(())) | Poll::Pending => Ok(()),
        }
    }

    /// One of the two times runs: that between writes until all is written, then that between
    /// reads. While the client's body is waited for, none does: that time is the client's.
    fn poll_timeout(&mut self, cx: &mut Context<'_>, caller: &mut impl Caller) -> Poll<Trouble> {
        let progress = self.call.carrier.progress();
        let waits = match progress.is_done {
            true => CallTimer::ToRead,
            false if progress.waits_for_client => return Poll::Pending,
            false => CallTimer::ToWrite,
        };
        if self.waits != waits {
            self.waits = waits;
            if let Times::Steps { send_ms, read_ms } = self.call.times {
                self.call.timer.set(if waits == CallTimer::ToRead { read_ms } else { send_ms });
            }
        }
        ready!(self.call.timer.poll(cx));
        if waits == CallTimer::ToRead {
            caller.set_action(READING_HEAD);
        }
        Poll::Ready(timed_out(caller))
    }

    /// The request could not be written, and the server has nothing to say to that.
    fn unsent(&mut self, caller: &mut impl Caller) -> Trouble {
        if let Some((call, error)) = self.broken.take() {
            caller.set_action(SENDING);
            caller.log(Level::Error, format_args!("{call} failed{}", Errno(&error)));
        }
        Trouble::Error
    }

    /// Reads until the head of the reply is there.
    fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
        caller: &mut impl Caller,
    ) -> Poll<Result<Answered, Trouble>> {
        loop {
            let read = self.poll_read(cx);
            self.yields = read.is_pending() && !net::has_share();
            match ready!(read) {
                Ok(count @ 1..) => {
                    let received = self.call.received;
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
                Ok(None) if self.interim_replies == 0 => self.waits = CallTimer::Nothing,
                Ok(None) => {}
                Ok(Some(answered)) => return Poll::Ready(Ok(answered)),
                Err(trouble) => {
                    caller.note_text(&self.input);
                    return Poll::Ready(Err(trouble));
                }
            }
        }
    }

    /// Reads once. While nothing has come, no buffer is held.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Result<usize, ReadFailure>> {
        if self.input.capacity() == 0 && self.may_be_large() {
            self.input = buffers::lend_large();
        }
        if !self.input.is_empty() && self.input.len() == self.input.capacity() {
            let reserved = memory::try_reserve(&mut self.input, buffers::BUFFER_SIZE);
            reserved.map_err(|error| ReadFailure::Call(error.into()))?;
        }
        let read = self.call.carrier.poll_read(cx, &mut self.input, usize::MAX);
        if self.input.is_empty() {
            buffers::give_back(std::mem::take(&mut self.input));
        }
        read
    }

    /// Whether a head may be larger than most buffers.
    fn may_be_large(&self) -> bool {
        self.call.head_max > buffers::BUFFER_SIZE as u64
    }

    /// The connection has ended before the head has.
    fn ended(&mut self, caller: &mut impl Caller, ended: Result<usize, ReadFailure>) -> Trouble {
        if self.broken.is_some() {
            return self.unsent(caller);
        }
        match ended {
            Ok(_) => {
                caller.log(Level::Error, format_args!("upstream prematurely closed connection"));
            }
            Err(ReadFailure::Refused) => return refused(caller),
            Err(ReadFailure::Peer(message)) => {
                caller.log(Level::Error, format_args!("{message}"));
            }
            Err(ReadFailure::Call(error)) if memory::is_out_of_memory(&error) => {
                caller.log(Level::Emerg, format_args!("{error}"));
                return Trouble::Internal;
            }
            Err(ReadFailure::Call(error)) => {
                caller.log(Level::Error, format_args!("recv() failed{}", Errno(&error)));
            }
        }
        Trouble::Error
    }

    /// The head, if all of it is there. Interim replies are skipped, except early hints.
    fn parse(&mut self, caller: &mut impl Caller) -> Result<Option<Answered>, Trouble> {
        loop {
            let reply = self.call.carrier.reply_mut();
            let event = reply.head(&mut self.input, caller.reply_head());
            let event = event.map_err(|message| {
                caller.log(Level::Error, format_args!("{message}"));
                Trouble::InvalidHeader
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
            let sent = self.call.carrier.progress().is_done && self.broken.is_none();
            let input = std::mem::take(&mut self.input);
            return Ok(Some(Answered { body, head_bytes: bytes, input, sent }));
        }
    }

    fn check_size(&self, head_bytes: usize, caller: &mut impl Caller) -> Result<(), Trouble> {
        if head_bytes as u64 <= self.call.head_max {
            return Ok(());
        }
        caller.log(Level::Error, format_args!("upstream sent too big header"));
        Err(Trouble::InvalidHeader)
    }

    /// An interim reply: another follows. From the first of them on, the time for reading runs
    /// until the final head is there.
    fn pass_over(&mut self, caller: &mut impl Caller, bytes: usize) -> Result<(), Trouble> {
        self.interim_replies += 1;
        if self.interim_replies > INTERIM_REPLIES_MAX {
            let most = INTERIM_REPLIES_MAX;
            let message = format_args!("upstream sent more than {most} interim responses");
            caller.log(Level::Error, message);
            return Err(Trouble::InvalidHeader);
        }
        if caller.reply_head().status == 103 {
            self.early_bytes = self.early_bytes.saturating_add(bytes as u32);
            if u64::from(self.early_bytes) <= self.call.head_max {
                caller.note_text(&self.input[..bytes]);
                caller.early_hints();
            } else {
                caller.log(Level::Info, format_args!("upstream sent too big early hints"));
            }
        }
        caller.reply_head().reset();
        self.input.drain(..bytes);
        Ok(())
    }
}

impl<C: ?Sized> Drop for Calling<'_, C> {
    fn drop(&mut self) {
        buffers::give_back(std::mem::take(&mut self.input));
    }
}

/// The server takes no more requests on this connection, and that is logged.
fn refused(caller: &mut impl Caller) -> Trouble {
    caller.log(Level::Info, format_args!("upstream did not process the request"));
    Trouble::Refused
}

/// It took too long, and that is logged.
pub(super) fn timed_out(caller: &mut impl Caller) -> Trouble {
    let error = net::timed_out();
    caller.log(Level::Error, format_args!("upstream timed out{}", Errno(&error)));
    Trouble::Timeout
}
