//! The progress line on the terminal.

use std::io::{IsTerminal, Write};

use processes::machine::MachineShares;

/// Replaces the line with a text; an empty text removes it. Does nothing without a terminal.
pub(crate) fn show(text: &str) {
    let mut stderr = std::io::stderr();
    if stderr.is_terminal() {
        let _ = write!(stderr, "\r{text}\x1b[K");
    }
}

/// Shows that a busy machine is waited for.
pub(crate) fn wait(shares: MachineShares) {
    let busy = (shares.others + shares.stolen) * 100.0;
    show(&format!("waiting for an idle machine, {busy:.0} % busy "));
}
