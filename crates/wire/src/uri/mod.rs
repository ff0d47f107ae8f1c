//! Request targets and paths: finding their parts, normalising, escaping.
//!
//! Works on bytes and appends to the caller's buffer. Deliberately absent: hosts (see `host`) and
//! files. A normal path does not lead above its root, but that is no guarantee for a file system
//! with symbolic links.

mod escape;
mod normalise;
mod target;
mod unescape;

pub use escape::{EscapeSet, escape, escape_html};
pub use normalise::{InvalidPath, Normal, normalise, parse_unsafe};
pub use target::UriTarget;
pub use unescape::{Unescape, unescape};

/// The value of a hexadecimal digit.
pub(crate) fn hex(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}
