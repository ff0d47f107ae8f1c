//! X.509 certificates (RFC 5280), as far as variables, OCSP and logs need them.
//!
//! Deliberately absent: whether a certificate is to be trusted; rustls verifies.

mod attributes;
mod name;
mod time;

pub use name::DistinguishedName;
pub use time::CertificateTime;

use alloc::vec::Vec;

use crate::der::{DerReader, Element, InvalidDer, tag};

/// The parts of a certificate.
#[derive(Clone, Debug)]
pub struct X509<'a> {
    /// The number that its issuer gave it, as a signed integer of any length.
    pub serial: &'a [u8],
    /// Who signed it.
    pub issuer: DistinguishedName<'a>,
    /// Whose key it has.
    pub subject: DistinguishedName<'a>,
    /// When it begins to be valid.
    pub not_before: CertificateTime,
    /// When it ends to be valid.
    pub not_after: CertificateTime,
    /// Its key.
    pub public_key: PublicKeyInfo<'a>,
    /// `Extensions`, if there are any.
    extensions: &'a [u8],
    /// What was signed.
    pub signed: &'a [u8],
    /// How it was signed.
    pub signature: Signature<'a>,
}

/// A public key and its algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicKeyInfo<'a> {
    /// All of it, as DER.
    pub der: &'a [u8],
    /// The contents of its `AlgorithmIdentifier`.
    pub algorithm: &'a [u8],
    /// The bits of the key.
    pub key: &'a [u8],
}

/// A signature and its algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signature<'a> {
    /// The contents of its `AlgorithmIdentifier`.
    pub algorithm: &'a [u8],
    /// The bits of the signature.
    pub bits: &'a [u8],
}

/// An extension's identifier and contents.
pub type Extension<'a> = (&'a [u8], &'a [u8]);

/// Extensions that are looked at, at most.
const EXTENSIONS_MAX: usize = 100;

/// Object identifiers.
const AUTHORITY_INFORMATION_ACCESS: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 1, 1];
const OCSP_ACCESS: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 0x30, 1];
const EXTENDED_KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x25];
const OCSP_SIGNING: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 9];

impl<'a> X509<'a> {
    /// Reads a certificate.
    pub fn parse(der: &'a [u8]) -> Result<Self, InvalidDer> {
        let mut outer = DerReader::new(der).inside(tag::SEQUENCE)?;
        let signed = outer.element(tag::SEQUENCE)?;
        let signature = Signature::read(&mut outer)?;
        let mut tbs = DerReader::new(signed.contents);
        tbs.optional(tag::constructed(0))?;
        let serial = tbs.contents(tag::INTEGER)?;
        tbs.element(tag::SEQUENCE)?;
        let issuer = DistinguishedName::new(tbs.element(tag::SEQUENCE)?);
        let mut validity = tbs.inside(tag::SEQUENCE)?;
        let not_before = CertificateTime::read(validity.any()?)?;
        let not_after = CertificateTime::read(validity.any()?)?;
        let subject = DistinguishedName::new(tbs.element(tag::SEQUENCE)?);
        let public_key = PublicKeyInfo::read(tbs.element(tag::SEQUENCE)?)?;
        tbs.optional(tag::primitive(1))?;
        tbs.optional(tag::primitive(2))?;
        let extensions = match tbs.optional(tag::constructed(3))? {
            Some(extensions) => DerReader::new(extensions.contents).contents(tag::SEQUENCE)?,
            None => &[],
        };
        let signed = signed.whole;
        Ok(Self {
            serial,
            issuer,
            subject,
            not_before,
            not_after,
            public_key,
            extensions,
            signed,
            signature,
        })
    }

    /// The serial number in hexadecimal, as OpenSSL's `i2a_ASN1_INTEGER` writes it.
    pub fn write_serial(&self, out: &mut Vec<u8>) {
        /// Bytes in a line.
        const LINE: usize = 35;
        let is_negative = self.serial.first().is_some_and(|byte| *byte >= 0x80);
        let mut magnitude = self.serial.to_vec();
        if is_negative {
            out.push(b'-');
            negate(&mut magnitude);
        }
        let zeros = magnitude.iter().take_while(|byte| **byte == 0).count();
        magnitude.drain(..zeros.min(magnitude.len().saturating_sub(1)));
        if magnitude.is_empty() {
            magnitude.push(0);
        }
        for (line, bytes) in magnitude.chunks(LINE).enumerate() {
            if line > 0 {
                out.extend_from_slice(b"\\\n");
            }
            bytes.iter().for_each(|byte| name::push_hex(*byte, out));
        }
    }

    /// Whole days until it ends to be valid; none is left on the last.
    pub fn days_left(&self, now_seconds: i64) -> i64 {
        (self.not_after.seconds().saturating_sub(now_seconds) / 86400).max(0)
    }

    /// The first address of an OCSP responder (RFC 5280, section 4.2.2.1).
    pub fn ocsp_responder(&self) -> Option<&'a [u8]> {
        /// `uniformResourceIdentifier` of `GeneralName`.
        const URI: u8 = tag::primitive(6);
        let access = self.extension(AUTHORITY_INFORMATION_ACCESS)?;
        let mut descriptions = DerReader::new(access).inside(tag::SEQUENCE).ok()?;
        while let Ok(mut description) = descriptions.inside(tag::SEQUENCE) {
            let method = description.contents(tag::OBJECT_IDENTIFIER).ok()?;
            let location = description.any().ok()?;
            if method == OCSP_ACCESS && location.tag == URI {
                return Some(location.contents);
            }
        }
        None
    }

    /// Whether its issuer lets it sign OCSP responses (RFC 6960, section 4.2.2.2).
    pub fn may_sign_ocsp(&self) -> bool {
        let usage = self.extension(EXTENDED_KEY_USAGE);
        let Some(Ok(mut purposes)) = usage.map(|der| DerReader::new(der).inside(tag::SEQUENCE))
        else {
            return false;
        };
        while let Ok(purpose) = purposes.contents(tag::OBJECT_IDENTIFIER) {
            if purpose == OCSP_SIGNING {
                return true;
            }
        }
        false
    }

    fn extension(&self, oid: &[u8]) -> Option<&'a [u8]> {
        self.extensions().find(|(other, _)| *other == oid).map(|(_, contents)| contents)
    }

    /// The extensions, as far as they can be read.
    fn extensions(&self) -> impl Iterator<Item = Extension<'a>> {
        let mut reader = DerReader::new(self.extensions);
        core::iter::from_fn(move || read_extension(&mut reader).ok()).take(EXTENSIONS_MAX)
    }
}

impl<'a> Signature<'a> {
    /// Reads `AlgorithmIdentifier` and `BIT STRING`.
    pub fn read(reader: &mut DerReader<'a>) -> Result<Self, InvalidDer> {
        Ok(Self { algorithm: reader.contents(tag::SEQUENCE)?, bits: reader.bit_string()? })
    }
}

impl<'a> PublicKeyInfo<'a> {
    fn read(element: Element<'a>) -> Result<Self, InvalidDer> {
        let mut reader = DerReader::new(element.contents);
        let algorithm = reader.contents(tag::SEQUENCE)?;
        Ok(Self { der: element.whole, algorithm, key: reader.bit_string()? })
    }
}

fn read_extension<'a>(reader: &mut DerReader<'a>) -> Result<Extension<'a>, InvalidDer> {
    let mut extension = reader.inside(tag::SEQUENCE)?;
    let oid = extension.contents(tag::OBJECT_IDENTIFIER)?;
    extension.optional(tag::BOOLEAN)?;
    Ok((oid, extension.contents(tag::OCTET_STRING)?))
}

/// The two's complement.
fn negate(bytes: &mut [u8]) {
    let mut carry = true;
    for byte in bytes.iter_mut().rev() {
        (*byte, carry) = (!*byte).overflowing_add(u8::from(carry));
    }
}

#[cfg(test)]
mod tests;
