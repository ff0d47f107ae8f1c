//! Base64 (RFC 4648). As in nginx, decoding stops at the end or at the first `=`; padding is
//! optional.

use alloc::vec::Vec;

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Appends the bytes in base64, padded.
pub fn encode(bytes: &[u8], out: &mut Vec<u8>) {
    for group in bytes.chunks(3) {
        let mut bits = [0; 4];
        bits[1..=group.len()].copy_from_slice(group);
        let bits = u32::from_be_bytes(bits);
        for place in 0..4 {
            let digit = bits >> (18 - 6 * place) & 63;
            out.push(if place <= group.len() { DIGITS[digit as usize] } else { b'=' });
        }
    }
}

/// Appends the bytes in the alphabet for URLs, with `-` and `_`, without padding.
pub fn encode_url(bytes: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    encode(bytes, out);
    let padding = out[start..].iter().rev().take_while(|byte| **byte == b'=').count();
    out.truncate(out.len() - padding);
    for byte in &mut out[start..] {
        match byte {
            b'+' => *byte = b'-',
            b'/' => *byte = b'_',
            _ => {}
        }
    }
}

/// Appends the decoded bytes. `None` if the text is not base64; the appended bytes are then
/// meaningless.
pub fn decode(text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    decode_by(digit, text, out)
}

/// Like [`decode`], in the alphabet for URLs, with `-` and `_`.
pub fn decode_url(text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let digit = |byte| match byte {
        b'-' => Some(62),
        b'_' => Some(63),
        b'+' | b'/' => None,
        other => digit(other),
    };
    decode_by(digit, text, out)
}

fn decode_by(digit: impl Fn(u8) -> Option<u8>, text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let text = &text[..memchr::memchr(b'=', text).unwrap_or(text.len())];
    if text.len() % 4 == 1 {
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
    use super::*;

    /// RFC 4648, section 10.
    const VECTORS: [(&str, &str); 7] = [
        ("", ""),
        ("Zg==", "f"),
        ("Zm8=", "fo"),
        ("Zm9v", "foo"),
        ("Zm9vYg==", "foob"),
        ("Zm9vYmE=", "fooba"),
        ("Zm9vYmFy", "foobar"),
    ];

    #[test]
    fn padding_is_optional_in_decoding() {
        for (text, bytes) in VECTORS {
            for text in [text, text.trim_end_matches('=')] {
                let mut out = Vec::new();
                assert!(decode(text.as_bytes(), &mut out).is_some(), "{text}");
                assert_eq!(out, bytes.as_bytes(), "{text}");
            }
        }
        for text in ["Z", "Zm9vY", "Zm 9", "Zm9-"] {
            assert!(decode(text.as_bytes(), &mut Vec::new()).is_none(), "{text}");
        }
    }

    #[test]
    fn encoding_writes_padding() {
        for (text, bytes) in VECTORS {
            let mut out = Vec::new();
            encode(bytes.as_bytes(), &mut out);
            assert_eq!(out, text.as_bytes());
        }
    }

    #[test]
    fn the_url_alphabet_has_two_other_digits() {
        let (mut plain, mut url) = (Vec::new(), Vec::new());
        assert!(decode(b"+/+/", &mut plain).is_some() && decode_url(b"-_-_", &mut url).is_some());
        assert_eq!(plain, url);
        assert!(decode_url(b"+/+/", &mut Vec::new()).is_none());
        let mut text = b"x".to_vec();
        encode_url(&plain, &mut text);
        encode_url(b"f", &mut text);
        assert_eq!(text, b"x-_-_Zg");
    }
}
