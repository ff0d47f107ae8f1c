//! Text in header lines. Paths are decoded, so `$uri`, captures and values made of them may contain
//! CR, LF and NUL, which would end a line or the head early. nginx sends them.
//!
//! A value that the configuration spreads over several lines is one value (RFC 9112, section 5.2),
//! and is written as one line; line breaks at its end are dropped. Writing a head with any other
//! line break or NUL fails.

use memchr::memchr3;

/// The text contains a character that no header line may have.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Forbidden;

/// The description in log lines.
pub(crate) const FORBIDDEN: &str = "contains a line break or NUL";

/// Whether a text can be written unchanged.
#[inline]
pub(crate) fn is_clean(text: &[u8]) -> bool {
    text.is_empty() || memchr3(b'\r', b'\n', 0, text).is_none()
}

/// Prepares the value from `start` on for a header line: a line break before a space or a tab
/// becomes one space, together with all blanks around it. Line breaks at the end are removed.
pub(crate) fn unfold(text: &mut Vec<u8>, start: usize) -> Result<(), Forbidden> {
    let is_blank = |byte: u8| byte == b' ' || byte == b'\t';
    while let [rest @ .., b'\r', b'\n'] | [rest @ .., b'\n'] = &text[start..] {
        let blanks = rest.iter().rev().take_while(|byte| is_blank(**byte)).count();
        let length = rest.len() - blanks;
        text.truncate(start + length);
    }
    let mut at = start;
    while let Some(offset) = memchr3(b'\r', b'\n', 0, &text[at..]) {
        let first = at + offset;
        let end = match &text[first..] {
            [b'\r', b'\n', ..] => first + 2,
            [b'\n', ..] => first + 1,
            _ => return Err(Forbidden),
        };
        let blanks = text[end..].iter().take_while(|byte| is_blank(**byte)).count();
        if blanks == 0 {
            return Err(Forbidden);
        }
        let before = text[start..first].iter().rev().take_while(|byte| is_blank(**byte)).count();
        text.splice(first - before..end + blanks, [b' ']);
        at = first - before + 1;
    }
    Ok(())
}

/// Prepares the target from `start` on for a request line, where a space would end it: spaces and
/// control characters are encoded as in paths.
pub(crate) fn encode_target(text: &mut Vec<u8>, start: usize) -> Result<(), Forbidden> {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let splits = |byte: &u8| *byte <= b' ' || *byte == 0x7f;
    let Some(first) = text[start..].iter().position(splits) else { return Ok(()) };
    if !is_clean(&text[start..]) {
        return Err(Forbidden);
    }
    for byte in text.split_off(start + first) {
        if splits(&byte) {
            let (high, low) = (HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]);
            text.extend_from_slice(&[b'%', high, low]);
        } else {
            text.push(byte);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unfolded(text: &str) -> Result<String, Forbidden> {
        let mut out = format!("\n{text}").into_bytes();
        unfold(&mut out, 1)?;
        Ok(String::from_utf8(out[1..].to_vec()).unwrap())
    }

    #[test]
    fn a_multiline_value_becomes_one_line() {
        for (text, expected) in [
            ("a b", "a b"),
            ("a\n b", "a b"),
            ("a; \r\n\t  b;\n c", "a; b; c"),
            ("\n a", " a"),
            ("a\n \n b", "a b"),
            ("a\n", "a"),
            ("a\n b \r\n\n \n", "a b"),
            ("\n", ""),
        ] {
            assert_eq!(unfolded(text), Ok(expected.to_owned()), "{text:?}");
        }
    }

    #[test]
    fn other_line_breaks_are_refused() {
        for text in
            ["a\nb", "a\r\nb: c", "a\rb", "a\r b", "a\0", "\r", "a\r\r\n", "a\n \r\nb", "a\r\r\n b"]
        {
            assert_eq!(unfolded(text), Err(Forbidden), "{text:?}");
        }
    }

    #[test]
    fn spaces_in_targets_are_encoded() {
        let encoded = |text: &str| {
            let mut out = format!("GET {text}").into_bytes();
            encode_target(&mut out, 4).map(|()| String::from_utf8(out).unwrap())
        };
        assert_eq!(encoded("/a?b=%20"), Ok("GET /a?b=%20".into()));
        assert_eq!(encoded("/a b\t\x7f\u{e9}"), Ok("GET /a%20b%09%7F\u{e9}".into()));
        for text in ["/\r", "/ \n", "/\0"] {
            assert_eq!(encoded(text), Err(Forbidden), "{text:?}");
        }
    }
}
