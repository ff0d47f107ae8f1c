//! Lines of limited length.

use std::io::{BufRead, Read as _};

/// The longest line in bytes, either way.
pub(super) const LINE_BYTES_MAX: usize = 64 * 1024;

/// The next line without its end; `None` at the end of the input. An unfinished line is ignored.
pub(super) fn next(from: &mut dyn BufRead) -> Result<Option<String>, String> {
    let mut line = Vec::new();
    let most = LINE_BYTES_MAX as u64 + 1;
    from.take(most)
        .read_until(b'\n', &mut line)
        .map_err(|error| format!("the connection ended: {error}"))?;
    if line.last() != Some(&b'\n') {
        return match line.len() > LINE_BYTES_MAX {
            true => Err(format!("a line is longer than {LINE_BYTES_MAX} bytes")),
            false => Ok(None),
        };
    }
    line.pop();
    String::from_utf8(line).map(Some).map_err(|_| "a line is no text".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_an_end_and_a_limit() {
        let long = "a".repeat(LINE_BYTES_MAX);
        let text = format!("one\n\n{long}\n{long}b\n");
        let mut from = text.as_bytes();
        assert_eq!(next(&mut from), Ok(Some("one".to_owned())));
        assert_eq!(next(&mut from), Ok(Some(String::new())));
        assert_eq!(next(&mut from), Ok(Some(long)));
        assert!(next(&mut from).is_err_and(|why| why.contains("longer than 65536 bytes")));
        assert_eq!(next(&mut &b"cut"[..]), Ok(None));
        assert_eq!(next(&mut &b"\xff\n"[..]), Err("a line is no text".to_owned()));
    }
}
