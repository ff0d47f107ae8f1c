//! Lists of revoked certificates (RFC 5280, section 5).

use super::{CertificateTime, DistinguishedName, Signature};
use crate::der::{DerReader, InvalidDer, tag};

/// The parts of a list.
#[derive(Clone, Debug)]
pub struct RevocationListParts<'a> {
    /// Whose certificates they are, and who signed the list.
    pub issuer: DistinguishedName<'a>,
    /// When it was issued.
    pub this_update: CertificateTime,
    /// When there is to be a newer one.
    pub next_update: Option<CertificateTime>,
    /// What was signed.
    pub signed: &'a [u8],
    /// How it was signed.
    pub signature: Signature<'a>,
    revoked: &'a [u8],
}

impl<'a> RevocationListParts<'a> {
    /// Reads a list.
    pub fn parse(der: &'a [u8]) -> Result<Self, InvalidDer> {
        let mut outer = DerReader::new(der).inside(tag::SEQUENCE)?;
        let signed = outer.element(tag::SEQUENCE)?;
        let signature = Signature::read(&mut outer)?;
        let mut tbs = DerReader::new(signed.contents);
        tbs.optional(tag::INTEGER)?;
        tbs.element(tag::SEQUENCE)?;
        let issuer = DistinguishedName::new(tbs.element(tag::SEQUENCE)?);
        let this_update = CertificateTime::read(tbs.any()?)?;
        let next_update = match tbs.next_tag() {
            Some(tag::UTC_TIME | tag::GENERALIZED_TIME) => Some(CertificateTime::read(tbs.any()?)?),
            _ => None,
        };
        let revoked = tbs.optional(tag::SEQUENCE)?.map_or(&[][..], |revoked| revoked.contents);
        Ok(Self { issuer, this_update, next_update, signed: signed.whole, signature, revoked })
    }

    /// Whether the certificate with this number was revoked. A broken list revokes everything.
    pub fn revokes(&self, serial: &[u8]) -> bool {
        let mut entries = DerReader::new(self.revoked);
        while !entries.is_empty() {
            let entry = entries.inside(tag::SEQUENCE);
            match entry.and_then(|mut entry| entry.contents(tag::INTEGER)) {
                Ok(number) if number != serial => {}
                _ => return true,
            }
        }
        false
    }
}
