//! The terminal on standard input and output: keys one by one, and its size.

use std::io;

use rustix::stdio::{stdin, stdout};
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetwinsize, tcsetattr,
};

/// A terminal that passes every key on at once and shows none. Dropping it restores the terminal.
pub struct RawTerminal {
    before: Termios,
}

impl RawTerminal {
    /// Fails if standard input is not a terminal.
    pub fn enter() -> io::Result<Self> {
        let before = tcgetattr(stdin())?;
        let mut raw = before.clone();
        // Ctrl-C and Ctrl-Z are keys, too: whoever reads them can restore the terminal first.
        raw.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG;
        raw.special_codes[SpecialCodeIndex::VMIN] = 1;
        raw.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(stdin(), OptionalActions::Now, &raw)?;
        Ok(Self { before })
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        // The terminal may be gone.
        let _ = tcsetattr(stdin(), OptionalActions::Now, &self.before);
    }
}

/// The columns and rows of the terminal on standard output; `None`: it is not a terminal.
pub fn terminal_size() -> Option<(usize, usize)> {
    let size = tcgetwinsize(stdout()).ok()?;
    Some((size.ws_col.into(), size.ws_row.into()))
}
