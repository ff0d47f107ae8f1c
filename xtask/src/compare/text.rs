//! Bytes as a case file writes them, and bytes as a report shows them.
//!
//! Reading: `\r \n \t \0 \\ \{ \} \xHH` and `{COUNT*TEXT}`, which repeats TEXT; everything else
//! stands for itself. This is not a configuration grammar: quotes mean nothing here.

/// The longest text that one repetition may make, against a slip of the finger in a case.
const REPEATED_BYTES_MAX: usize = 64 << 20;

/// A line longer than this is shown by its beginning, its length and its checksum.
const SHOWN_CHARS_MAX: usize = 200;

/// The bytes that `text` stands for.
pub(super) fn bytes(text: &str) -> Result<Vec<u8>, String> {
    let mut rest = text.as_bytes();
    let mut out = Vec::with_capacity(rest.len());
    while let Some((&byte, tail)) = rest.split_first() {
        rest = match byte {
            b'\\' => escape(tail, &mut out)?,
            b'{' => repeat(tail, &mut out)?,
            _ => {
                out.push(byte);
                tail
            }
        };
    }
    Ok(out)
}

/// The bytes that a line of `text` stands for: it ends with CRLF unless a lone backslash ends it.
pub(super) fn line(text: &str) -> Result<Vec<u8>, String> {
    let slashes = text.bytes().rev().take_while(|&b| b == b'\\').count();
    match text.strip_suffix('\\') {
        Some(text) if slashes % 2 == 1 => bytes(text),
        _ => Ok([bytes(text)?, b"\r\n".to_vec()].concat()),
    }
}

fn escape<'a>(tail: &'a [u8], out: &mut Vec<u8>) -> Result<&'a [u8], String> {
    let (&name, tail) = tail.split_first().ok_or("a backslash ends the text")?;
    match name {
        b'r' => out.push(b'\r'),
        b'n' => out.push(b'\n'),
        b't' => out.push(b'\t'),
        b'0' => out.push(0),
        b'\\' | b'{' | b'}' => out.push(name),
        b'x' => {
            let digits = tail.get(..2).and_then(|d| std::str::from_utf8(d).ok());
            let byte = digits.and_then(|d| u8::from_str_radix(d, 16).ok());
            out.push(byte.ok_or("\\x wants two hexadecimal digits")?);
            return Ok(&tail[2..]);
        }
        _ => return Err(format!("unknown escape \\{}", char::from(name))),
    }
    Ok(tail)
}

fn repeat<'a>(tail: &'a [u8], out: &mut Vec<u8>) -> Result<&'a [u8], String> {
    let end = closing_brace(tail).ok_or("no } after {")?;
    let inner = std::str::from_utf8(&tail[..end]).map_err(|e| e.to_string())?;
    let (count, text) = inner.split_once('*').ok_or("{ wants COUNT*TEXT}; write \\{ for itself")?;
    let count: usize = count.parse().map_err(|_| format!("\"{count}\" is no count"))?;
    let unit = bytes(text)?;
    if unit.len().saturating_mul(count) > REPEATED_BYTES_MAX {
        return Err(format!("{{{inner}}} is too long"));
    }
    out.extend_from_slice(&unit.repeat(count));
    Ok(&tail[end + 1..])
}

fn closing_brace(tail: &[u8]) -> Option<usize> {
    let mut escaped = false;
    tail.iter().position(|&byte| {
        let found = byte == b'}' && !escaped;
        escaped = byte == b'\\' && !escaped;
        found
    })
}

/// One line of ASCII for a person: control and non-ASCII bytes escaped, long text cut.
pub(super) fn shown(bytes: &[u8]) -> String {
    let mut line = String::with_capacity(bytes.len().min(SHOWN_CHARS_MAX) + 40);
    for &byte in bytes {
        match byte {
            b'\r' => line.push_str("\\r"),
            b'\n' => line.push_str("\\n"),
            b' '..=b'~' => line.push(char::from(byte)),
            _ => line.push_str(&format!("\\x{byte:02x}")),
        }
        if line.len() > SHOWN_CHARS_MAX {
            line.push_str(&format!("... ({} bytes, checksum {:016x})", bytes.len(), fnv(bytes)));
            return line;
        }
    }
    // A space that no reader and no editor would see.
    match line.strip_suffix(' ') {
        Some(start) => format!("{start}\\x20"),
        None => line,
    }
}

/// FNV-1a: two bodies that differ anywhere differ here, which is all that is asked of it.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}

/// `bytes` with every `from` turned into `to`, where `at_border` agrees to what stands around it.
pub(super) fn replaced(
    bytes: &[u8],
    from: &[u8],
    to: &[u8],
    at_border: impl Fn(Option<&u8>, Option<&u8>) -> bool,
) -> Vec<u8> {
    let Some(first) = from.first() else { return bytes.to_vec() };
    let mut out = Vec::with_capacity(bytes.len());
    let mut done = 0;
    let mut at = 0;
    while let Some(skipped) = bytes[at..].iter().position(|byte| byte == first) {
        at += skipped;
        let before = at.checked_sub(1).and_then(|i| bytes.get(i));
        let end = at + from.len();
        if bytes[at..].starts_with(from) && at_border(before, bytes.get(end)) {
            out.extend_from_slice(&bytes[done..at]);
            out.extend_from_slice(to);
            (done, at) = (end, end);
        } else {
            at += 1;
        }
    }
    out.extend_from_slice(&bytes[done..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_and_repetitions_become_bytes() {
        assert_eq!(bytes(r"a\r\n\t\0\x7f\\\{\}").unwrap(), b"a\r\n\t\0\x7f\\{}");
        assert_eq!(bytes(r"<{3*ab}{2*\}}>").unwrap(), b"<ababab}}>");
    }

    #[test]
    fn slips_are_refused() {
        for slip in [r"\q", r"\x4", "\\", "{3*a", "{a}", "{x*a}", "{99999999999*a}"] {
            assert!(bytes(slip).is_err(), "{slip}");
        }
    }

    #[test]
    fn long_lines_are_shown_by_checksum() {
        let (one, two) = (vec![b'x'; 5000], [vec![b'x'; 4999], vec![b'y']].concat());
        assert!(shown(&one).len() < 260);
        assert_ne!(shown(&one), shown(&two));
        assert_eq!(shown(b"a\r\n\xff"), r"a\r\n\xff");
        assert_eq!(shown(b"a b "), r"a b\x20");
    }

    #[test]
    fn replacing_minds_the_border() {
        let digit = |b: Option<&u8>| b.is_some_and(u8::is_ascii_digit);
        let out = replaced(b"80 180 80", b"80", b"P", |a, b| !digit(a) && !digit(b));
        assert_eq!(out, b"P 180 P");
    }
}
