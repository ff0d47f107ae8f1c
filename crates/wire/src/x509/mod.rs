//! X.509 certificates and revocation lists (RFC 5280): their parts, and checks of single
//! certificates.
//!
//! Deliberately absent: signatures and chains; `net::tls` verifies them.

mod attributes;
mod extensions;
mod host;
mod issuer;
mod name;
mod name_constraints;
mod purpose;
mod request;
mod revocation;
mod self_signed;
mod subject_name;
mod time;
mod trust;
mod written;

pub use name::DistinguishedName;
pub use name_constraints::{NAME_COMPARISONS_MAX, NameFault};
pub use request::write_request;
pub use revocation::{ListScope, RevocationListParts};
pub use self_signed::{SelfSigned, ValidityPeriod};
pub use subject_name::SubjectName;
pub use time::CertificateTime;
pub use trust::{PurposeTrust, TrustSettings};

use alloc::vec::Vec;

use crate::der::{DerReader, Element, InvalidDer, tag};

/// The parts of a certificate.
#[derive(Clone, Debug)]
pub struct X509<'a> {
    /// The whole certificate as DER.
    pub der: &'a [u8],
    /// The version: 1, 2 or 3.
    pub version: u32,
    /// The serial number from its issuer, as a signed integer of any length.
    pub serial: &'a [u8],
    pub issuer: DistinguishedName<'a>,
    /// The owner of the key.
    pub subject: DistinguishedName<'a>,
    pub not_before: CertificateTime,
    pub not_after: CertificateTime,
    pub public_key: PublicKeyInfo<'a>,
    /// `Extensions`, if there are any.
    extensions: &'a [u8],
    /// The signed bytes.
    pub signed: &'a [u8],
    pub signature: Signature<'a>,
    /// The signature's algorithm, as given in the signed bytes.
    signed_algorithm: &'a [u8],
}

/// A public key and its algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicKeyInfo<'a> {
    /// The whole structure as DER.
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

/// Object identifiers.
const AUTHORITY_INFORMATION_ACCESS: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 1, 1];
const OCSP_ACCESS: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 0x30, 1];
const EXTENDED_KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x25];
const BASIC_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 0x13];
const KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x0f];
const ANY_PURPOSE: &[u8] = &[0x55, 0x1d, 0x25, 0];
/// `id-kp`
const PURPOSES: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3];
const SUBJECT_ALT_NAME: &[u8] = &[0x55, 0x1d, 0x11];
const NAME_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 0x1e];
const DISTRIBUTION_POINTS: &[u8] = &[0x55, 0x1d, 0x1f];
const SUBJECT_KEY_ID: &[u8] = &[0x55, 0x1d, 0x0e];
const AUTHORITY_KEY_ID: &[u8] = &[0x55, 0x1d, 0x23];
/// Netscape's certificate type.
const CERTIFICATE_TYPE: &[u8] = &[0x60, 0x86, 0x48, 0x01, 0x86, 0xf8, 0x42, 1, 1];
const OCSP_SIGNING: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 9];

impl<'a> X509<'a> {
    /// Reads a certificate.
    pub fn parse(der: &'a [u8]) -> Result<Self, InvalidDer> {
        let mut reader = DerReader::new(der);
        let whole = reader.element(tag::SEQUENCE)?;
        reader.end()?;
        let mut outer = DerReader::new(whole.contents);
        let signed = outer.element(tag::SEQUENCE)?;
        let signature = Signature::read(&mut outer)?;
        outer.end()?;
        let mut tbs = DerReader::new(signed.contents);
        let version = match tbs.optional(tag::constructed(0))? {
            Some(version) => DerReader::new(version.contents).number()?.saturating_add(1),
            None => 1,
        };
        let serial = tbs.contents(tag::INTEGER)?;
        let signed_algorithm = tbs.contents(tag::SEQUENCE)?;
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
        tbs.end()?;
        let signed = signed.whole;
        Ok(Self {
            der: whole.whole,
            version,
            serial,
            issuer,
            subject,
            not_before,
            not_after,
            public_key,
            extensions,
            signed,
            signature,
            signed_algorithm,
        })
    }

    /// The serial number in hexadecimal, as OpenSSL's `i2a_ASN1_INTEGER` writes it.
    pub fn write_serial(&self, out: &mut Vec<u8>) {
        /// The bytes in a line.
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

    /// Whole days until it expires; 0 on the last one.
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

    /// Whether the signature's algorithm matches the one in the signed part (RFC 5280, 4.1.1.2).
    pub fn is_signed_as_said(&self) -> bool {
        self.signature.algorithm == self.signed_algorithm
    }

    /// Whether subject and issuer are the same.
    pub fn is_self_issued(&self) -> bool {
        self.subject.der == self.issuer.der
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

/// Negates a number in two's complement.
fn negate(bytes: &mut [u8]) {
    let mut carry = true;
    for byte in bytes.iter_mut().rev() {
        (*byte, carry) = (!*byte).overflowing_add(u8::from(carry));
    }
}

#[cfg(test)]
mod tests;
