//! OpenSSL's trust settings, which follow a certificate in a section `TRUSTED CERTIFICATE`.

use super::{ANY_PURPOSE, PURPOSES};
use crate::der::{DerReader, InvalidDer, tag};

/// The purposes that a certificate is trusted for, or rejected for, besides its own extensions.
#[derive(Clone, Copy, Debug, Default)]
pub struct TrustSettings<'a> {
    /// Object identifiers of purposes.
    trusted: Option<&'a [u8]>,
    rejected: Option<&'a [u8]>,
}

/// The trust in a certificate for one purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PurposeTrust {
    /// The settings do not limit trust.
    Unspecified,
    /// The certificate is trusted, whatever its issuer.
    Trusted,
    /// The certificate is not trusted.
    Rejected,
}

impl<'a> TrustSettings<'a> {
    /// Splits a section into the certificate, as DER, and the settings after it.
    pub fn split(section: &'a [u8]) -> Result<(&'a [u8], Self), InvalidDer> {
        let mut reader = DerReader::new(section);
        let certificate = reader.element(tag::SEQUENCE)?.whole;
        if reader.is_empty() {
            return Ok((certificate, Self::default()));
        }
        let mut settings = reader.inside(tag::SEQUENCE)?;
        let trusted = settings.optional(tag::SEQUENCE)?.map(|purposes| purposes.contents);
        let rejected = settings.optional(tag::constructed(0))?.map(|purposes| purposes.contents);
        reader.end()?;
        Ok((certificate, Self { trusted, rejected }))
    }

    /// The trust for a purpose, the last number of `id-kp`.
    pub fn of(&self, purpose: u8) -> PurposeTrust {
        if self.rejected.is_some_and(|purposes| names(purposes, purpose)) {
            return PurposeTrust::Rejected;
        }
        match self.trusted {
            None => PurposeTrust::Unspecified,
            Some(purposes) if names(purposes, purpose) => PurposeTrust::Trusted,
            Some(_) => PurposeTrust::Rejected,
        }
    }
}

fn names(purposes: &[u8], purpose: u8) -> bool {
    let mut reader = DerReader::new(purposes);
    while let Ok(oid) = reader.contents(tag::OBJECT_IDENTIFIER) {
        if oid == ANY_PURPOSE || oid.split_last() == Some((&purpose, PURPOSES)) {
            return true;
        }
    }
    false
}
