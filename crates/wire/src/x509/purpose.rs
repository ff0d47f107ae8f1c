//! The permitted uses of a certificate's key, by the rules of OpenSSL's `X509_check_purpose`.

use alloc::vec::Vec;

use super::{CERTIFICATE_TYPE, EXTENDED_KEY_USAGE, KEY_USAGE, OCSP_SIGNING, PURPOSES, X509};
use crate::der::{DerReader, tag};

/// Bits of the key's usage.
const DIGITAL_SIGNATURE: u8 = 0x80;
const KEY_ENCIPHERMENT: u8 = 0x20;
const KEY_AGREEMENT: u8 = 0x08;
const KEY_CERT_SIGN: u8 = 0x04;
const CRL_SIGN: u8 = 0x02;

/// Bits of Netscape's certificate type, which OpenSSL checks.
const SSL_CLIENT: u8 = 0x80;
const SSL_SERVER: u8 = 0x40;
const SSL_CA: u8 = 0x04;

/// Last numbers of `id-kp`.
const SERVER_AUTH: u8 = 1;

impl<'a> X509<'a> {
    /// Whether its issuer allows it to sign OCSP responses (RFC 6960, section 4.2.2.2).
    pub fn may_sign_ocsp(&self) -> bool {
        self.extended_key_usage().is_some_and(|purposes| purposes.contains(&OCSP_SIGNING))
    }

    /// Whether it may be used for this purpose (the last number of `id-kp`), or may issue
    /// certificates for it. As in OpenSSL, `anyExtendedKeyUsage` names no purpose.
    pub fn has_purpose(&self, purpose: u8) -> bool {
        let is = |oid: &&[u8]| oid.split_last() == Some((&purpose, PURPOSES));
        self.extended_key_usage().is_none_or(|purposes| purposes.iter().any(is))
    }

    /// Whether its key may be used in the handshake of a client or of a server.
    pub fn may_shake_hands(&self, purpose: u8) -> bool {
        let (usage, kind) = match purpose {
            SERVER_AUTH => (DIGITAL_SIGNATURE | KEY_ENCIPHERMENT | KEY_AGREEMENT, SSL_SERVER),
            _ => (DIGITAL_SIGNATURE | KEY_AGREEMENT, SSL_CLIENT),
        };
        self.has_bit(KEY_USAGE, usage) && self.has_bit(CERTIFICATE_TYPE, kind)
    }

    /// Whether it may issue certificates, with `below` issuers between it and the last certificate
    /// (RFC 5280, sections 4.2.1.9 and 4.2.1.3).
    pub fn may_issue(&self, below: usize) -> bool {
        let Some(constraints) = self.basic_constraints() else { return false };
        let is_short = constraints.path_max.is_none_or(|most| below <= most as usize);
        constraints.is_ca
            && is_short
            && self.has_bit(KEY_USAGE, KEY_CERT_SIGN)
            && self.has_bit(CERTIFICATE_TYPE, SSL_CA)
    }

    /// Whether its key may sign revocation lists.
    pub fn may_sign_revocations(&self) -> bool {
        self.has_bit(KEY_USAGE, CRL_SIGN)
    }

    /// Whether the bit string in an extension has one of these bits, or the extension is missing.
    fn has_bit(&self, oid: &[u8], bits: u8) -> bool {
        let Some(contents) = self.extension(oid) else { return true };
        match DerReader::new(contents).contents(tag::BIT_STRING) {
            Ok([_, first, ..]) => first & bits != 0,
            _ => false,
        }
    }

    /// The purposes that it is limited to, if it is.
    fn extended_key_usage(&self) -> Option<Vec<&'a [u8]>> {
        let mut reader = DerReader::new(self.extension(EXTENDED_KEY_USAGE)?);
        let mut purposes = Vec::new();
        let Ok(mut reader) = reader.inside(tag::SEQUENCE) else { return Some(purposes) };
        while let Ok(purpose) = reader.contents(tag::OBJECT_IDENTIFIER) {
            purposes.push(purpose);
        }
        Some(purposes)
    }
}
