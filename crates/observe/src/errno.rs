//! The system's error messages in nginx's form.

use std::fmt;
use std::io;

/// Displays an error as log lines end: ` (2: No such file or directory)`.
pub struct Errno<'e>(pub &'e io::Error);

impl fmt::Display for Errno<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.to_string();
        let Some(number) = self.0.raw_os_error() else { return write!(f, " ({text})") };
        let words = text.strip_suffix(&format!(" (os error {number})")).unwrap_or(&text);
        write!(f, " ({number}: {words})")
    }
}
