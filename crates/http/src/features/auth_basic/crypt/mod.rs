//! The formats of crypt(3): each computes the hash of a password with the parameters of a stored
//! hash. `None` if the stored hash does not have the format.
//!
//! Absent: the other formats of libxcrypt, which are hardly used in password files: `$7$`, `$gy$`,
//! `$2x$`, `$sha1$`, `$md5$`, `$3$` and `_`.

pub(super) mod blowfish;
pub(super) mod des;
pub(super) mod md5;
pub(super) mod sha;
pub(super) mod yescrypt;

/// The longest password, as in libxcrypt: the time of some formats grows with its square.
pub(super) const PASSWORD_LENGTH_MAX: usize = 512;

/// The digits, of six bits each.
const DIGITS: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Appends `count` digits, the lowest six bits first.
fn write_low_first(mut bits: u32, count: usize, out: &mut Vec<u8>) {
    for _ in 0..count {
        out.push(DIGITS[(bits & 63) as usize]);
        bits >>= 6;
    }
}

/// Appends bytes in digits; the first byte of three has the lowest bits.
fn write_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    for group in bytes.chunks(3) {
        let bits = group.iter().rev().fold(0, |bits, byte| bits << 8 | u32::from(*byte));
        write_low_first(bits, group.len() + 1, out);
    }
}

/// Decodes bytes that [`write_bytes`] has written.
fn read_bytes(text: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    for group in text.chunks(4) {
        let mut bits = 0;
        for digit in group.iter().rev() {
            bits = bits << 6 | u32::from(value(*digit)?);
        }
        bytes.extend_from_slice(&bits.to_le_bytes()[..group.len() - 1]);
    }
    (text.len() % 4 != 1).then_some(bytes)
}

fn value(digit: u8) -> Option<u8> {
    memchr::memchr(digit, DIGITS).map(|at| at as u8)
}

/// The bytes before the first `$`.
fn before_dollar(text: &[u8]) -> &[u8] {
    &text[..memchr::memchr(b'$', text).unwrap_or(text.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_encoded_as_digits() {
        for bytes in [&b""[..], b"a", b"ab", b"abc", b"abcdefgh\xff\0"] {
            let mut text = Vec::new();
            write_bytes(bytes, &mut text);
            assert_eq!(read_bytes(&text).as_deref(), Some(bytes));
        }
        assert_eq!((read_bytes(b"a"), read_bytes(b"ab!")), (None, None));
    }
}
