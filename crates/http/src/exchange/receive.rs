//! The body of an exchange's request as it arrives: read, thrown away, or found to be wrong.

use std::task::{Context, Poll};

use observe::{Errno, Level};

use super::request_body::BodyState;
use super::{BodyRules, CloseReason, Exchange, Flow, RequestBodyError};

impl Exchange {
    /// Appends the next bytes of the body, as they come, at most as many as `out` has room for; 0
    /// is the end. For who passes the body on unbuffered; else [`Exchange::read_body`].
    pub fn poll_body(
        &mut self,
        cx: &mut Context<'_>,
        out: &mut Vec<u8>,
    ) -> Poll<Result<usize, RequestBodyError>> {
        let Some(downstream) = self.downstream.clone().filter(|_| self.request.body.is_announced())
        else {
            return Poll::Ready(Ok(0));
        };
        match self.request.body.state {
            BodyState::Unread => self.request.body.state = BodyState::Streamed,
            BodyState::Streamed => {}
            BodyState::Discarded(_) | BodyState::Kept(_) | BodyState::Shared(_) => {
                return Poll::Ready(Ok(0));
            }
        }
        let here = &self.location().core.client_body;
        let rules = BodyRules { size_max: here.size_max, timeout_ms: here.timeout_ms };
        let read = downstream.poll_body(cx, out, rules);
        self.request.length = downstream.request_length();
        read
    }

    /// A reply is on its way, and nobody has asked for the body: it is thrown away. What is wrong
    /// with it is answered instead of the reply, unless that tells of an error already.
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
        (!self.reply.without_continue).then(|| error.settle(self))
    }
}

impl RequestBodyError {
    /// Logs the reason, and says how the exchange goes on.
    pub fn settle(self, x: &mut Exchange) -> Flow {
        if matches!(x.request.body.state, BodyState::Streamed) {
            // Wherever `error_page` leads, nobody can have it any more.
            x.request.body.state = BodyState::Discarded(0);
        }
        match self {
            Self::Invalid => {
                x.log(Level::Error, format_args!("client sent invalid chunked body"));
                Flow::Status(400)
            }
            Self::Malformed(what) => {
                x.log(Level::Info, format_args!("client {what}"));
                Flow::Status(400)
            }
            Self::TooLarge { received, chunk } => {
                let message = "client intended to send too large chunked body";
                x.log(Level::Error, format_args!("{message}: {received}+{chunk} bytes"));
                Flow::Status(413)
            }
            Self::TimedOut => Flow::Drop(408),
            Self::Closed => {
                x.log(Level::Info, format_args!("client prematurely closed connection"));
                Flow::Drop(400)
            }
            Self::Connection(error) => {
                x.log(Level::Info, format_args!("recv() failed{}", Errno(&error)));
                Flow::Drop(400)
            }
            Self::File(call, path, error) => {
                let path = path.display();
                x.log(Level::Crit, format_args!("{call} \"{path}\" failed{}", Errno(&error)));
                Flow::Status(500)
            }
            Self::NoMemory(error) => {
                x.log(Level::Emerg, format_args!("{error}"));
                Flow::Status(500)
            }
        }
    }
}
