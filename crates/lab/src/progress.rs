//! The progress line on the terminal.

use std::io::{IsTerminal, Write};

/// Replaces the line with a text; an empty text removes it. Does nothing without a terminal.
pub(crate) fn show(text: &str) {
    let mut stderr = std::io::stderr();
    if stderr.is_terminal() {
        let _ = write!(stderr, "\r{text}\x1b[K");
    }
}
