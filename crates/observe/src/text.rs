//! Bytes in a message.

use std::fmt;

/// Displays bytes as text without allocating; invalid UTF-8 is shown as replacement characters.
pub struct Text<'b>(pub &'b [u8]);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            f.write_str(chunk.valid())?;
            if !chunk.invalid().is_empty() {
                f.write_str("\u{fffd}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Text;

    #[test]
    fn what_is_not_utf8_is_replaced() {
        assert_eq!(Text(b"/caf\xc3\xa9/\xff\xfe!").to_string(), "/café/\u{fffd}\u{fffd}!");
    }
}
