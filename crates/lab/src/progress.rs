//! A line on the terminal that is written over while something is measured.

use std::io::{IsTerminal, Write};

/// Shows a text in place of the last one; an empty text removes it. Without a terminal, nothing.
pub(crate) fn show(text: &str) {
    let mut stderr = std::io::stderr();
    if stderr.is_terminal() {
        let _ = write!(stderr, "\r{text}\x1b[K");
    }
}
