//! Host validation, for the `Host` header, `:authority` and the absolute form alike.
//!
//! Accepts the authority of RFC 3986 without userinfo, as nginx does since 1.29.4: a reg-name or an
//! IP literal in brackets, then an optional port. The form of IP addresses and of percent-encoding
//! is not checked: the host is only a key for finding servers.

use alloc::vec::Vec;

/// A valid host within its text, `text[..len]`, and its port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host {
    /// Length of the host, without the port and without one final dot.
    pub len: usize,
    /// The port, or 0.
    pub port: u16,
    /// Whether the host has capital letters, so that a lookup needs a copy in lower case.
    pub has_upper: bool,
}

impl Host {
    /// Reads `host`, `host:`, `host:port`, `[literal]`, `[literal]:port`. `None` if it is invalid,
    /// which is to be answered with 400.
    pub fn parse(text: &[u8]) -> Option<Host> {
        let (end, has_upper) = match text.split_first()? {
            (b'[', literal) => {
                let (close, has_upper) = scan(literal, LITERAL)?;
                (literal.get(close) == Some(&b']')).then_some((close + 2, has_upper))?
            }
            _ => scan(text, NAME)?,
        };
        let port = match text[end..].split_first() {
            None => 0,
            Some((b':', digits)) => port(digits)?,
            Some(_) => return None,
        };
        let len = if text[..end].last() == Some(&b'.') { end - 1 } else { end };
        (len > 0).then_some(Host { len, port, has_upper })
    }

    /// Appends the host in lower case.
    pub fn write_lower(&self, text: &[u8], out: &mut Vec<u8>) {
        out.extend(text[..self.len].iter().map(u8::to_ascii_lowercase));
    }
}

/// The number of leading bytes of the class `allowed`, and whether they have capitals; `None` for
/// two dots in a row.
#[inline(always)]
fn scan(text: &[u8], allowed: u8) -> Option<(usize, bool)> {
    let (mut seen, mut in_a_row, mut last) = (0, 0, 0);
    let mut end = text.len();
    for (at, &byte) in text.iter().enumerate() {
        let class = CLASS[usize::from(byte)];
        if class & allowed == 0 {
            end = at;
            break;
        }
        seen |= class;
        in_a_row |= class & last;
        last = class;
    }
    (in_a_row & DOT == 0).then_some((end, seen & UPPER != 0))
}

/// Whether a byte is allowed between the brackets of an IP literal.
pub(crate) fn is_literal_byte(byte: u8) -> bool {
    CLASS[byte as usize] & LITERAL != 0
}

fn port(digits: &[u8]) -> Option<u16> {
    digits.iter().try_fold(0u16, |port, &byte| {
        let digit = byte.is_ascii_digit().then(|| u16::from(byte - b'0'))?;
        port.checked_mul(10)?.checked_add(digit)
    })
}

const NAME: u8 = 1;
const LITERAL: u8 = 2;
const UPPER: u8 = 4;
const DOT: u8 = 8;

/// unreserved and sub-delims of RFC 3986; "%" only in names, ":" only in literals.
const CLASS: [u8; 256] = {
    let mut class = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        if (byte as u8).is_ascii_alphanumeric() {
            class[byte] = NAME | LITERAL;
        }
        if (byte as u8).is_ascii_uppercase() {
            class[byte] |= UPPER;
        }
        byte += 1;
    }
    let marks = b"-._~!$&'()*+,;=";
    let mut mark = 0;
    while mark < marks.len() {
        class[marks[mark] as usize] = NAME | LITERAL;
        mark += 1;
    }
    class[b'.' as usize] |= DOT;
    class[b'%' as usize] = NAME;
    class[b':' as usize] = LITERAL;
    class
};

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::String;

    use super::*;

    fn host_of(text: &str) -> Option<(String, u16)> {
        let host = Host::parse(text.as_bytes())?;
        let mut lower = Vec::new();
        host.write_lower(text.as_bytes(), &mut lower);
        assert_eq!(host.has_upper, lower != text.as_bytes()[..host.len], "{text}");
        Some((String::from_utf8(lower).expect("ASCII"), host.port))
    }

    #[test]
    fn valid_hosts() {
        let table = [
            ("l", "l", 0),
            ("L", "l", 0),
            ("abcd-ef.g02.xyz:", "abcd-ef.g02.xyz", 0),
            ("www.abcd-ef.g02.xyz:8080", "www.abcd-ef.g02.xyz", 8080),
            ("Abc.:88", "abc", 88),
            (".a", ".a", 0),
            ("a_b~!$&'()*+,;=%zz", "a_b~!$&'()*+,;=%zz", 0),
            ("1.2.3.4:65535", "1.2.3.4", 65535),
            ("a:00080", "a", 80),
            ("[::FFFF:12.30.67.89]:5", "[::ffff:12.30.67.89]", 5),
            ("[v0F.!$&'()*+,;=-._~:]", "[v0f.!$&'()*+,;=-._~:]", 0),
        ];
        for (text, host, port) in table {
            assert_eq!(host_of(text), Some((String::from(host), port)), "{text}");
        }
    }

    #[test]
    fn invalid_hosts() {
        let table = [
            "",
            ".",
            ":",
            ":80",
            ".:80",
            "a..b",
            "a..",
            "a b",
            "a\x02",
            "a/b",
            "a\\b",
            "a@b",
            "a?",
            "\u{e9}",
            "a:b",
            "a:1:2",
            "a:65536",
            "a:99999999999",
            "a:-1",
            "[::1",
            "[::1]a",
            "[::1].",
            "[::1]x:1",
            "[a..b]",
            "[a%b]",
            "[a/b]",
            "x[::1]",
            "a]",
        ];
        for text in table {
            assert_eq!(host_of(text), None, "{text:?}");
        }
        assert_eq!(host_of(&format!("a:{}", u64::MAX)), None);
    }
}
