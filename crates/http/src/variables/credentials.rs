//! The name and password that a client gives by `Authorization: Basic` (RFC 7617).

use wire::Known;

use crate::exchange::Exchange;

const SCHEME: &[u8] = b"Basic ";

/// Appends `name:password`, decoded; the length of the name, which is never empty. `None` where the
/// client sent neither or something else; what is appended then means nothing.
pub(crate) fn append(x: &Exchange, out: &mut Vec<u8>) -> Option<usize> {
    let field = x.request.field(Known::Authorization)?;
    let (scheme, encoded) = field.split_at_checked(SCHEME.len())?;
    if !scheme.eq_ignore_ascii_case(SCHEME) {
        return None;
    }
    let start = out.len();
    decode(encoded.trim_ascii_start(), out)?;
    memchr::memchr(b':', &out[start..]).filter(|length| *length > 0)
}

/// Base64 up to its end or its first `=`, as nginx reads it; `None` where it is not that.
fn decode(text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let text = &text[..memchr::memchr(b'=', text).unwrap_or(text.len())];
    if text.is_empty() || text.len() % 4 == 1 {
        return None;
    }
    for group in text.chunks(4) {
        let mut bits: u32 = 0;
        for byte in group {
            bits = bits << 6 | u32::from(digit(*byte)?);
        }
        bits <<= 6 * (4 - group.len()) + 8;
        out.extend_from_slice(&bits.to_be_bytes()[..group.len() - 1]);
    }
    Some(())
}

fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn base64_is_read_with_and_without_its_padding() {
        // RFC 4648, section 10.
        for (text, bytes) in [
            ("Zg==", "f"),
            ("Zm8", "fo"),
            ("Zm9v", "foo"),
            ("Zm9vYg==", "foob"),
            ("Zm9vYmE=", "fooba"),
            ("Zm9vYmFy", "foobar"),
        ] {
            let mut out = Vec::new();
            assert!(decode(text.as_bytes(), &mut out).is_some(), "{text}");
            assert_eq!(out, bytes.as_bytes(), "{text}");
        }
        for text in ["", "=", "Z", "Zm9vY", "Zm 9", "Zm9-"] {
            assert!(decode(text.as_bytes(), &mut Vec::new()).is_none(), "{text}");
        }
    }
}
