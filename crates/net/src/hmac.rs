//! HMAC (RFC 2104), for proofs that somebody knows a secret: with SHA-256 unless a protocol lets
//! the user choose.

use aws_lc_rs::hmac::{self, HMAC_SHA256, HMAC_SHA384, HMAC_SHA512, Key};

/// The length of a tag in bytes.
pub const TAG_BYTES: usize = 32;

/// The tag of a message.
pub fn sign(secret: &[u8], message: &[u8]) -> [u8; TAG_BYTES] {
    let tag = hmac::sign(&Key::new(HMAC_SHA256, secret), message);
    tag.as_ref().try_into().expect("SHA-256 has 32 bytes")
}

/// The hash of [`sign_with`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HmacHash {
    Sha256,
    Sha384,
    Sha512,
}

/// The tag of a message, as long as the hash.
pub fn sign_with(hash: HmacHash, secret: &[u8], message: &[u8]) -> Vec<u8> {
    let algorithm = match hash {
        HmacHash::Sha256 => HMAC_SHA256,
        HmacHash::Sha384 => HMAC_SHA384,
        HmacHash::Sha512 => HMAC_SHA512,
    };
    hmac::sign(&Key::new(algorithm, secret), message).as_ref().to_vec()
}

/// Whether a tag is the message's, compared in constant time.
pub fn is_signed(secret: &[u8], message: &[u8], tag: &[u8]) -> bool {
    hmac::verify(&Key::new(HMAC_SHA256, secret), message, tag).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 4231, test case 2.
    #[test]
    fn tags_are_those_of_the_rfc() {
        let tag = sign(b"Jefe", b"what do ya want for nothing?");
        assert_eq!(tag[..4], [0x5b, 0xdc, 0xc1, 0x46]);
        for (hash, length, start) in [
            (HmacHash::Sha256, 32, [0x5b, 0xdc, 0xc1, 0x46]),
            (HmacHash::Sha384, 48, [0xaf, 0x45, 0xd2, 0xe3]),
            (HmacHash::Sha512, 64, [0x16, 0x4b, 0x7a, 0x7b]),
        ] {
            let tag = sign_with(hash, b"Jefe", b"what do ya want for nothing?");
            assert_eq!((tag.len(), &tag[..4]), (length, &start[..]));
        }
        assert!(is_signed(b"Jefe", b"what do ya want for nothing?", &tag));
        assert!(!is_signed(b"Jefe", b"what do ya want for nothing", &tag));
        assert!(!is_signed(b"jefe", b"what do ya want for nothing?", &tag));
        assert!(!is_signed(b"Jefe", b"what do ya want for nothing?", &tag[..31]));
    }
}
