//! Whether a certificate is the issuer that another names.

use super::{AUTHORITY_KEY_ID, SUBJECT_KEY_ID, X509};
use crate::der::{DerReader, InvalidDer, tag};

/// `directoryName` of `GeneralName`.
const DIRECTORY_NAME: u8 = tag::constructed(4);

impl X509<'_> {
    /// Whether `other` has the name of its issuer, and, if given, the key identifier and serial
    /// number (RFC 5280, section 4.2.1.1).
    pub fn names_issuer(&self, other: &X509<'_>) -> bool {
        self.issuer.der == other.subject.der
            && self.extension(AUTHORITY_KEY_ID).is_none_or(|der| is_named(der, other) == Ok(true))
    }

    /// The identifier of its issuer's key, as given by itself.
    pub fn authority_key_id(&self) -> Option<&[u8]> {
        let mut fields = DerReader::sequence(self.extension(AUTHORITY_KEY_ID)?).ok()?;
        Some(fields.optional(tag::primitive(0)).ok()??.contents)
    }

    /// Whether it names itself as its issuer.
    pub fn is_own_issuer(&self) -> bool {
        self.names_issuer(self)
    }
}

fn is_named(authority: &[u8], other: &X509<'_>) -> Result<bool, InvalidDer> {
    let mut fields = DerReader::sequence(authority)?;
    if let Some(named) = fields.optional(tag::primitive(0))?
        && let Some(own) = other.extension(SUBJECT_KEY_ID)
        && DerReader::new(own).contents(tag::OCTET_STRING)? != named.contents
    {
        return Ok(false);
    }
    if let Some(names) = fields.optional(tag::constructed(1))? {
        let mut names = DerReader::new(names.contents);
        while !names.is_empty() {
            let name = names.any()?;
            if name.tag == DIRECTORY_NAME && name.contents != other.issuer.der {
                return Ok(false);
            }
        }
    }
    let serial = fields.optional(tag::primitive(2))?;
    Ok(serial.is_none_or(|serial| serial.contents == other.serial))
}
