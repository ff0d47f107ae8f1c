//! Certificates that sign themselves: until there is a real one, and for the challenge tls-alpn-01.

use alloc::vec::Vec;

use super::written::{
    COMMON_NAME_BYTES_MAX, sign, signature_algorithm, write_extension, write_name, write_names,
    write_public_key,
};
use super::{BASIC_CONSTRAINTS, SubjectName};
use crate::der::tag;
use crate::der_writer::DerWriter;
use crate::signer::{Signer, SigningFailed};

/// `id-pe-acmeIdentifier`, 1.3.6.1.5.5.7.1.31 (RFC 8737, section 3).
const ACME_IDENTIFIER: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 1, 31];

/// What a self-signed certificate says.
#[derive(Clone, Copy, Debug)]
pub struct SelfSigned<'a> {
    /// The common name; it is left out if it is longer than 64 bytes.
    pub common_name: &'a str,
    pub names: &'a [SubjectName],
    /// Random bits: no two certificates of one issuer have the same number.
    pub serial: u64,
    pub validity: ValidityPeriod,
    /// The SHA-256 of a key authorization: the certificate answers the challenge tls-alpn-01.
    pub acme_digest: Option<&'a [u8; 32]>,
}

/// In seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValidityPeriod {
    pub not_before_s: i64,
    pub not_after_s: i64,
}

impl SelfSigned<'_> {
    /// The certificate as DER.
    pub fn write(&self, signer: &dyn Signer) -> Result<Vec<u8>, SigningFailed> {
        let is_short = |name: &&str| (1..=COMMON_NAME_BYTES_MAX).contains(&name.len());
        let common_name = Some(self.common_name).filter(is_short);
        let signed = DerWriter::sequence(|tbs| {
            tbs.nested(tag::constructed(0), |version| version.integer(&[2]));
            // Never 0, and positive.
            tbs.integer(&(self.serial | 1).to_be_bytes());
            tbs.whole(signature_algorithm(signer.kind()));
            write_name(common_name, tbs);
            tbs.nested(tag::SEQUENCE, |validity| {
                validity.time(self.validity.not_before_s);
                validity.time(self.validity.not_after_s);
            });
            write_name(common_name, tbs);
            write_public_key(signer, tbs);
            tbs.nested(tag::constructed(3), |extensions| {
                extensions.nested(tag::SEQUENCE, |list| {
                    self.write_extensions(common_name.is_none(), list);
                });
            });
        });
        sign(&signed, signer)
    }

    fn write_extensions(&self, is_nameless: bool, list: &mut DerWriter) {
        write_names(self.names, is_nameless, list);
        write_extension(BASIC_CONSTRAINTS, true, &DerWriter::sequence(|_| {}), list);
        if let Some(digest) = self.acme_digest {
            let mut contents = DerWriter::default();
            contents.element(tag::OCTET_STRING, digest);
            write_extension(ACME_IDENTIFIER, true, &contents.finish(), list);
        }
    }
}
