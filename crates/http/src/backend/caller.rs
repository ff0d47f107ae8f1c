//! For whom a request is made: what it needs of the exchange or the health check.

use std::fmt;
use std::task::{Context, Poll};

use observe::Level;
use wire::reply::ReplyHead;

use crate::exchange::RequestBodyError;

/// The exchange, or the health check, that a request is made for.
pub(crate) trait Caller {
    /// What log lines name after `while` from now on.
    fn set_action(&mut self, action: &'static str);
    /// Writes to the error log, or notes what went wrong.
    fn log(&mut self, level: Level, message: fmt::Arguments<'_>);
    /// The head of the reply, empty at first.
    fn reply_head(&mut self) -> &mut ReplyHead;
    /// The text that the head points into, as far as it was read.
    fn note_text(&mut self, text: &[u8]);
    /// Early hints (103), as they stand in the head and its text.
    fn early_hints(&mut self) {}
    /// The request's body, where it is in memory.
    fn body_in_memory(&self) -> &[u8] {
        &[]
    }
    /// How long the request's body is, if that is known.
    fn body_length(&self) -> Option<u64> {
        None
    }
    /// Appends what has come of the body; 0 is its end.
    fn poll_body(
        &mut self,
        _cx: &mut Context<'_>,
        _out: &mut Vec<u8>,
    ) -> Poll<Result<usize, RequestBodyError>> {
        Poll::Ready(Ok(0))
    }
}
