//! SHA-256 of small texts.

use aws_lc_rs::digest::{SHA256, digest};

/// The digest of a message.
pub fn sha256(message: &[u8]) -> [u8; 32] {
    digest(&SHA256, message).as_ref().try_into().expect("SHA-256 has 32 bytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FIPS 180-2, appendix B.1.
    #[test]
    fn the_digest_is_that_of_the_standard() {
        let digest = sha256(b"abc");
        assert_eq!(digest[..4], [0xba, 0x78, 0x16, 0xbf]);
        assert_eq!(digest[28..], [0xf2, 0x00, 0x15, 0xad]);
    }
}
