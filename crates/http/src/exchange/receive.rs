//! The body of an exchange's request as it arrives: read, discarded, or rejected.

use std::fmt;
use std::rc::Rc;
use std::task::{Context, Poll};

use net::Timer;
use observe::{Errno, Level};

use super::request_body::BodyState;
use super::{
    BodyRules, CloseReason, Downstream, Exchange, Fields, Flow, RequestBodyError, TimedPhase,
};

/// A request's body as it arrives. It does not need the exchange, so it can be sent on while the
/// reply is sent.
pub(crate) struct ArrivingBody {
    downstream: Rc<dyn Downstream>,
    rules: BodyRules,
    length: Option<u64>,
    /// Limits the time between two reads once the connection's own timer limits the reply.
    timer: Option<Timer>,
    is_timed: bool,
}

impl ArrivingBody {
    /// Its length, if the head announces it.
    pub(crate) fn length(&self) -> Option<u64> {
        self.length
    }

    /// The fields that followed it, once it has ended.
    pub(crate) fn trailers(&self) -> Option<Rc<Fields>> {
        self.downstream.trailers()
    }

    /// Called when the reply begins: from now on, the body has a timer of its own.
    pub(crate) fn continue_beside_reply(&mut self) {
        self.timer = Some(Timer::new());
    }

    /// Appends the next bytes that arrive, up to the capacity of `out`; 0 is the end.
    pub(crate) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        out: &mut Vec<u8>,
    ) -> Poll<Result<usize, RequestBodyError>> {
        let Some(timer) = &self.timer else {
            return self.downstream.poll_body(cx, out, self.rules);
        };
        let untimed = BodyRules { timeout_ms: None, ..self.rules };
        let read = self.downstream.poll_body(cx, out, untimed);
        let (Poll::Pending, Some(timeout_ms)) = (&read, self.rules.timeout_ms) else {
            self.is_timed = false;
            return read;
        };
        if !std::mem::replace(&mut self.is_timed, true) {
            timer.set(timeout_ms);
        }
        timer.poll(cx).map(|()| Err(RequestBodyError::TimedOut))
    }
}

impl Exchange {
    /// Appends the next bytes of the body that arrive, up to the capacity of `out`; 0 is the end.
    pub fn poll_body(
        &mut self,
        cx: &mut Context<'_>,
        out: &mut Vec<u8>,
    ) -> Poll<Result<usize, RequestBodyError>> {
        match self.claim_body() {
            Some((downstream, rules)) => {
                let read = downstream.poll_body(cx, out, rules);
                if read.is_pending() {
                    self.waits_for(TimedPhase::Body);
                }
                read
            }
            None => Poll::Ready(Ok(0)),
        }
    }

    /// The body, to be passed on as it arrives; `None`: no body will arrive.
    pub(crate) fn arriving_body(&mut self) -> Option<ArrivingBody> {
        let length = self.request.body.length();
        let (downstream, rules) = self.claim_body()?;
        Some(ArrivingBody { downstream, rules, length, timer: None, is_timed: false })
    }

    /// The source of a body that was neither read nor discarded, and the location's limits for it.
    fn claim_body(&mut self) -> Option<(Rc<dyn Downstream>, BodyRules)> {
        let downstream = self.downstream.clone().filter(|_| self.request.body.is_announced())?;
        match self.request.body.state {
            BodyState::Unread => self.request.body.state = BodyState::Streamed,
            BodyState::Streamed => {}
            BodyState::Discarded(_) | BodyState::Kept(_) => return None,
        }
        let here = &self.location().core.client_body;
        let rules = BodyRules { size_max: here.size_max, timeout_ms: Some(here.timeout_ms) };
        Some((downstream, rules))
    }

    /// The number of bytes read of the request: `$request_length`.
    pub fn request_length(&self) -> u64 {
        match &self.downstream {
            Some(downstream) => downstream.request_length(),
            None => self.request.length,
        }
    }

    /// Discards a body that is still unread when the reply is sent. An invalid body is answered
    /// with its error instead of the reply, unless the reply is an error already.
    pub(crate) fn discard_body(&mut self) -> Option<Flow> {
        if !self.request.body.is_announced() || !self.request.body.is_unread() {
            return None;
        }
        let downstream = self.downstream.clone()?;
        let discarded = downstream.discard_body();
        let to_come = match discarded {
            Ok(true) => 0,
            _ => self.server().reading.head.large_client_header_buffers.1 as u64,
        };
        self.request.body.state = BodyState::Discarded(to_come);
        let error = discarded.err()?;
        self.close_after(CloseReason::RequestBody);
        (!self.reply.without_continue).then(|| error.into_flow(self))
    }
}

impl RequestBodyError {
    /// Logs the reason, and returns the next step of the exchange.
    pub fn into_flow(self, x: &mut Exchange) -> Flow {
        if matches!(x.request.body.state, BodyState::Streamed) {
            // No target of `error_page` can read it any more.
            x.request.body.state = BodyState::Discarded(0);
        }
        self.log(x);
        match self {
            Self::Invalid | Self::Malformed(_) => Flow::Status(400),
            Self::TooLarge { .. } => Flow::Status(413),
            Self::TimedOut => Flow::Drop(408),
            Self::Closed | Self::Connection(_) => Flow::Drop(400),
            Self::File(..) | Self::NoMemory(_) => Flow::Status(500),
        }
    }

    pub(super) fn log(&self, x: &Exchange) {
        let log = |level, message: fmt::Arguments<'_>| x.log(level, message);
        match self {
            Self::Invalid => {
                log(Level::Error, format_args!("client sent invalid chunked body"));
            }
            Self::Malformed(what) => log(Level::Info, format_args!("client {what}")),
            Self::TooLarge { received, chunk } => {
                let message = "client intended to send too large chunked body";
                log(Level::Error, format_args!("{message}: {received}+{chunk} bytes"));
            }
            Self::TimedOut => {}
            Self::Closed => {
                log(Level::Info, format_args!("client prematurely closed connection"));
            }
            Self::Connection(error) => {
                log(Level::Info, format_args!("recv() failed{}", Errno(error)));
            }
            Self::File(call, path, error) => {
                let path = path.display();
                log(Level::Crit, format_args!("{call} \"{path}\" failed{}", Errno(error)));
            }
            Self::NoMemory(error) => log(Level::Emerg, format_args!("{error}")),
        }
    }
}
