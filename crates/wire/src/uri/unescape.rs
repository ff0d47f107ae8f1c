//! Lenient decoding of "%XX", for text that is not a request path.
//!
//! An invalid escape loses its "%" and keeps the byte after it, or loses all three bytes, as in
//! nginx: configurations see the results in `$arg_*` and rewrites.

use alloc::vec::Vec;

use super::hex;

/// The extent of decoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unescape {
    /// Everything.
    All,
    /// Up to the first "?", escaped or not; the rest stays as it is.
    Uri,
    /// As `Uri`, but only bytes that may be unescaped in a redirect: above "%" and below DEL.
    Redirect,
}

/// Appends `text` decoded.
pub fn unescape(kind: Unescape, text: &[u8], out: &mut Vec<u8>) {
    out.reserve(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'%' => match escape_at(rest) {
                Escaped::Byte(decoded) => {
                    let digits = &rest[..2];
                    rest = &rest[2..];
                    put(kind, decoded, digits, out);
                    if decoded == b'?' && kind != Unescape::All {
                        break;
                    }
                }
                Escaped::NoFirstDigit(byte) => {
                    rest = &rest[1..];
                    out.push(byte);
                }
                Escaped::NoSecondDigit => rest = &rest[2..],
                Escaped::Cut => return,
            },
            byte => {
                out.push(byte);
                if byte == b'?' && kind != Unescape::All {
                    break;
                }
            }
        }
    }
    out.extend_from_slice(rest);
}

enum Escaped {
    Byte(u8),
    NoFirstDigit(u8),
    NoSecondDigit,
    Cut,
}

fn escape_at(text: &[u8]) -> Escaped {
    let Some(&first) = text.first() else { return Escaped::Cut };
    let Some(high) = hex(first) else { return Escaped::NoFirstDigit(first) };
    let Some(&second) = text.get(1) else { return Escaped::Cut };
    match hex(second) {
        Some(low) => Escaped::Byte(high << 4 | low),
        None => Escaped::NoSecondDigit,
    }
}

fn put(kind: Unescape, decoded: u8, digits: &[u8], out: &mut Vec<u8>) {
    if kind == Unescape::Redirect && !(decoded > b'%' && decoded < 0x7f) {
        out.push(b'%');
        out.extend_from_slice(digits);
    } else {
        out.push(decoded);
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::String;

    use super::*;

    #[test]
    fn each_kind() {
        use Unescape::*;
        let table = [
            (All, "a%41%3f%41?%41", "aA?A?A"),
            (Uri, "a%41?%41", "aA?%41"),
            (Uri, "a%41%3f%41", "aA?%41"),
            (Uri, "%0d%25", "\r%"),
            (Redirect, "%41%0d%20%25%26%7f%c3", "A%0d%20%25&%7f%c3"),
            (Redirect, "%41%3F%41", "A?%41"),
            (Redirect, "%41?%41", "A?%41"),
            (All, "%zz", "zz"),
            (All, "%4zz", "z"),
            (All, "%%41", "%41"),
            (All, "a%", "a"),
            (All, "a%4", "a"),
        ];
        for (kind, text, expected) in table {
            let mut out = Vec::new();
            unescape(kind, text.as_bytes(), &mut out);
            assert_eq!(String::from_utf8_lossy(&out), expected, "{kind:?} {text}");
        }
    }
}
