//! For whom a request is made: what it needs of the exchange or the health check.

use std::fmt;

use observe::Level;
use wire::reply::ReplyHead;

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
}
