//! HMAC-SHA256 (RFC 2104), for proofs that somebody knows a secret.

use aws_lc_rs::hmac::{self, HMAC_SHA256, Key};

/// The length of a tag in bytes.
pub const TAG_BYTES: usize = 32;

/// The tag of a message.
pub fn sign(secret: &[u8], message: &[u8]) -> [u8; TAG_BYTES] {
    let tag = hmac::sign(&Key::new(HMAC_SHA256, secret), message);
    tag.as_ref().try_into().expect("SHA-256 has 32 bytes")
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
        assert!(is_signed(b"Jefe", b"what do ya want for nothing?", &tag));
        assert!(!is_signed(b"Jefe", b"what do ya want for nothing", &tag));
        assert!(!is_signed(b"jefe", b"what do ya want for nothing?", &tag));
        assert!(!is_signed(b"Jefe", b"what do ya want for nothing?", &tag[..31]));
    }
}
