//! The cryptography that `wire::acme` is lent.

use wire::acme::AcmeCrypto;

#[derive(Debug)]
pub(crate) struct ProcessCrypto;

impl AcmeCrypto for ProcessCrypto {
    fn sha256(&self, message: &[u8]) -> [u8; 32] {
        net::sha256(message)
    }

    fn hmac_sha256(&self, secret: &[u8], message: &[u8]) -> [u8; 32] {
        net::hmac::sign(secret, message)
    }
}
