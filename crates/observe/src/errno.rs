//! The system's error messages in nginx's form.

use std::fmt;
use std::io;

/// Displays an error as log lines end: ` (2: No such file or directory)`.
pub struct Errno<'e>(pub &'e io::Error);

impl Errno<'_> {
    /// The error in words: `No such file or directory`.
    pub(crate) fn words(&self) -> String {
        let mut text = self.0.to_string();
        if let Some(number) = self.0.raw_os_error()
            && let Some(words) = text.strip_suffix(&format!(" (os error {number})"))
        {
            text.truncate(words.len());
        }
        text
    }
}

impl fmt::Display for Errno<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = self.words();
        match self.0.raw_os_error() {
            Some(number) => write!(f, " ({number}: {words})"),
            None => write!(f, " ({words})"),
        }
    }
}

/// Takes the system's error off the end of a message, if it ends with one. Only the system's own
/// words count, so no text of a client is mistaken for an error.
pub(crate) fn split_errno(message: &[u8]) -> (&[u8], Option<io::Error>) {
    let found = || {
        let start = message.windows(2).rposition(|pair| pair == b" (")?;
        let digits = message[start + 2..].split(|byte| *byte == b':').next()?;
        let number = str::from_utf8(digits).ok()?.parse().ok()?;
        let error = io::Error::from_raw_os_error(number);
        let before = message.strip_suffix(Errno(&error).to_string().as_bytes())?;
        Some((before, Some(error)))
    };
    found().unwrap_or((message, None))
}

#[cfg(test)]
mod tests {
    use super::split_errno;

    #[test]
    fn only_an_error_of_the_system_is_taken_off() {
        let (before, error) =
            split_errno(b"open() \"/a (1: b)\" failed (2: No such file or directory)");
        assert_eq!(before, b"open() \"/a (1: b)\" failed");
        assert_eq!(error.and_then(|error| error.raw_os_error()), Some(2));
        let others: [&[u8]; 5] = [
            b"open() \"/a (2: b)\"",
            b"it failed (2: Nonsense)",
            b"it failed (99999999999: Nonsense)",
            b"send() failed (111: Connection refused), retried",
            b" (",
        ];
        for other in others {
            assert!(matches!(split_errno(other), (all, None) if all == other), "{other:?}");
        }
    }
}
