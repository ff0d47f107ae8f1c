//! Keys: the text that names a reply, and its MD5, which names the file.

use md5::{Digest, Md5};

use crate::checksum::crc32;

/// The MD5 of a key or of a variant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyDigest(pub [u8; 16]);

/// A key.
#[derive(Clone, Debug)]
pub struct CacheKey {
    text: Box<[u8]>,
    digest: KeyDigest,
    crc32: u32,
}

impl KeyDigest {
    /// The MD5 of a text.
    pub fn of(text: &[u8]) -> Self {
        Self(Md5::digest(text).into())
    }

    /// The digest whose 32 hexadecimal digits these are.
    pub fn from_hexadecimal(digits: &[u8]) -> Option<Self> {
        let value = |digit: u8| (digit as char).to_digit(16).map(|value| value as u8);
        let mut digest = Self::default();
        if digits.len() != 2 * digest.0.len() {
            return None;
        }
        for (byte, pair) in digest.0.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = value(pair[0])? << 4 | value(pair[1])?;
        }
        Some(digest)
    }

    /// Its 32 hexadecimal digits.
    pub fn hexadecimal(&self) -> [u8; 32] {
        let mut digits = [0; 32];
        for (pair, byte) in digits.chunks_exact_mut(2).zip(self.0) {
            pair[0] = b"0123456789abcdef"[usize::from(byte >> 4)];
            pair[1] = b"0123456789abcdef"[usize::from(byte & 15)];
        }
        digits
    }
}

impl CacheKey {
    pub fn new(text: &[u8]) -> Self {
        Self { text: text.into(), digest: KeyDigest::of(text), crc32: crc32(text) }
    }

    pub fn text(&self) -> &[u8] {
        &self.text
    }

    pub fn digest(&self) -> KeyDigest {
        self.digest
    }

    pub fn crc32(&self) -> u32 {
        self.crc32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_the_md5_in_hexadecimal() {
        let key = CacheKey::new(b"http://app/x");
        assert_eq!(&key.digest().hexadecimal(), b"ff9293b384b90905a92d838812323ad0");
        assert_eq!(KeyDigest::from_hexadecimal(&key.digest().hexadecimal()), Some(key.digest()));
        for wrong in [&b""[..], &[b'a'; 31], &[b'g'; 32], &[b'a'; 33]] {
            assert_eq!(KeyDigest::from_hexadecimal(wrong), None);
        }
    }
}
