//! An exchange's lines in the error log, with the context nginx gives them.

use std::fmt;

use observe::{Level, Line};
use wire::Known;

use super::Exchange;

impl Exchange {
    /// Whether a message of that level would be written: ask before computing what it says.
    pub fn logs(&self, level: Level) -> bool {
        self.location().core.error_log.enabled(level, self.client.source())
    }

    /// Writes a message to the error log of the location, with client, server and request.
    pub fn log(&self, level: Level, message: fmt::Arguments<'_>) {
        let log = &self.location().core.error_log;
        log.write(level, self.client.source(), message, |line| self.describe(line));
    }

    /// `, client: ..., server: ..., request: "...", host: "...", referrer: "..."`
    fn describe(&self, line: &mut Line) {
        if !self.action.is_empty() {
            line.format(format_args!(" while {}", self.action));
        }
        line.push(b", client: ");
        line.push(self.client.address());
        line.push(b", server: ");
        line.push(&self.server().name);
        quoted(line, b"request", Some(self.request.line()).filter(|line| !line.is_empty()));
        quoted(line, b"host", self.request.field(Known::Host));
        quoted(line, b"referrer", self.request.field(Known::Referer));
    }
}

fn quoted(line: &mut Line, name: &[u8], value: Option<&[u8]>) {
    let Some(value) = value else { return };
    line.push(b", ");
    line.push(name);
    line.push(b": \"");
    line.push(value);
    line.push(b"\"");
}
