//! The chain of certificates that an order leads to.

use alloc::string::String;
use alloc::vec::Vec;

use super::renewal::renewal_id_of;
use crate::pem::{self, PemSections};
use crate::signer::Signer;
use crate::x509::{SubjectName, ValidityPeriod, X509};

/// The most certificates of a chain.
const CERTIFICATES_MAX: usize = 10;

/// A certificate and the certificates of its issuers, checked against key and names, not against
/// any root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssuedChain {
    /// As PEM, with nothing between the certificates.
    pub pem: Vec<u8>,
    pub validity: ValidityPeriod,
    /// Its id for [`renewal_info`](super::renewal_info), if it has one.
    pub renewal_id: Option<String>,
    /// The common name of the issuer of the last certificate.
    pub(super) root: Option<String>,
}

impl IssuedChain {
    /// Reads a chain. The error says what it is not.
    pub fn parse(
        text: &[u8],
        key: &dyn Signer,
        names: &[SubjectName],
    ) -> Result<Self, &'static str> {
        let mut certificates = Vec::new();
        for section in PemSections::new(text) {
            let section = section.map_err(|_| "the chain is not PEM")?;
            if section.label != b"CERTIFICATE" || certificates.len() == CERTIFICATES_MAX {
                return Err("the chain has something besides certificates, or too many of them");
            }
            certificates.push(section.contents);
        }
        let parsed: Result<Vec<_>, _> = certificates.iter().map(|der| X509::parse(der)).collect();
        let parsed = parsed.map_err(|_| "a certificate of the chain is broken")?;
        let (Some(first), Some(last)) = (parsed.first(), parsed.last()) else {
            return Err("the chain is empty");
        };
        if first.public_key.key != key.public_bits() {
            return Err("the certificate is for another key");
        }
        if !names.iter().all(|name| first.has_subject_name(name)) {
            return Err("the certificate lacks a name");
        }
        if !parsed.windows(2).all(|pair| pair[0].names_issuer(&pair[1])) {
            return Err("the certificates are not a chain");
        }
        let validity = ValidityPeriod {
            not_before_s: first.not_before.seconds(),
            not_after_s: first.not_after.seconds(),
        };
        let mut root = Vec::new();
        let has_root = last.issuer.write_common_name(&mut root);
        let mut pem = Vec::new();
        certificates.iter().for_each(|der| pem::encode("CERTIFICATE", der, &mut pem));
        Ok(Self {
            pem,
            validity,
            renewal_id: renewal_id_of(first),
            root: has_root.then(|| String::from_utf8_lossy(&root).into_owned()),
        })
    }
}
