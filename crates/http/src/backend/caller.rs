//! The user of a request: an exchange or a health check.

use std::fmt;

use observe::Level;
use wire::reply::ReplyHead;

use super::head::{self, HeaderFilter};
use crate::exchange::{Exchange, TimedPhase};

/// An exchange or a health check that sends a request to a backend.
pub(crate) trait Caller {
    /// Sets the action that log lines name after `while`.
    fn set_action(&mut self, action: &'static str);
    /// Names what the request waits for next.
    fn waits_for(&mut self, _: TimedPhase) {}
    /// Writes to the error log, or keeps the message as the reason of a failure.
    fn log(&mut self, level: Level, message: fmt::Arguments<'_>);
    /// The head of the reply, empty at first.
    fn reply_head(&mut self) -> &mut ReplyHead;
    /// Keeps the text that the head points into, as far as it was read.
    fn note_text(&mut self, text: &[u8]);
    /// Sends the client the early hints (103) that are in the head and its text.
    fn send_early_hints(&mut self, _: &HeaderFilter) {}
}

impl Caller for Exchange {
    fn set_action(&mut self, action: &'static str) {
        self.action = action;
    }

    fn waits_for(&mut self, phase: TimedPhase) {
        Exchange::waits_for(self, phase);
    }

    fn log(&mut self, level: Level, message: fmt::Arguments<'_>) {
        Exchange::log(self, level, message);
    }

    fn reply_head(&mut self) -> &mut ReplyHead {
        &mut self.backends.head
    }

    fn note_text(&mut self, text: &[u8]) {
        self.backends.note_head(text);
    }

    fn send_early_hints(&mut self, filter: &HeaderFilter) {
        head::send_early_hints(self, filter);
    }
}
