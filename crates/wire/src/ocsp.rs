//! OCSP (RFC 6960): a request for the status of one certificate, and the parts of a response.
//!
//! Deliberately absent: hashes, signatures, transport.

use alloc::vec::Vec;

use crate::der::{DerReader, InvalidDer, tag};
use crate::der_writer::DerWriter;
use crate::x509::{CertificateTime, Signature};

/// The identity of a certificate: hashes of its issuer, and its serial number.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OcspCertificateId {
    /// SHA-1 of the issuer's name.
    pub name_hash: [u8; 20],
    /// SHA-1 of the bits of the issuer's key.
    pub key_hash: [u8; 20],
    /// The certificate's serial number, as in DER; up to [`SERIAL_MAX`] bytes.
    pub serial: Vec<u8>,
}

/// A response to a request, signed by its responder.
#[derive(Clone, Debug)]
pub struct OcspResponse<'a> {
    /// The responder's key, as named by the response.
    pub responder: OcspResponder<'a>,
    /// The signed bytes.
    pub signed: &'a [u8],
    pub signature: Signature<'a>,
    certificates: &'a [u8],
    responses: &'a [u8],
}

/// The key that signed a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OcspResponder<'a> {
    /// The key of the certificate with this name, in DER.
    Name(&'a [u8]),
    /// The key with this SHA-1.
    KeyHash(&'a [u8]),
}

/// The status of a certificate in a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OcspAnswer {
    pub status: OcspStatus,
    /// When the status was known to be correct.
    pub this_update: CertificateTime,
    /// The time of a newer response.
    pub next_update: Option<CertificateTime>,
}

/// The status of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OcspStatus {
    Good,
    Revoked,
    Unknown,
}

/// Why a response has no answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OcspResponseError {
    /// It is malformed.
    Invalid,
    /// The responder refuses to answer: the status of RFC 6960, section 4.2.1.
    Refused(u8),
}

/// The most bytes of a serial number: three times what RFC 5280 allows.
pub const SERIAL_MAX: usize = 64;

/// The most certificates that are read from a response.
const CERTIFICATES_MAX: usize = 10;

/// The most answers that are read from a response.
const ANSWERS_MAX: usize = 1000;

/// `AlgorithmIdentifier` of SHA-1, with its parameters.
const SHA1: &[u8] = &[0x30, 9, 6, 5, 0x2b, 0x0e, 3, 2, 0x1a, 5, 0];

/// `id-pkix-ocsp-basic`, the only type of response.
const BASIC: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 0x30, 1, 1];

impl OcspCertificateId {
    /// Appends a request for this certificate.
    pub fn write_request(&self, out: &mut Vec<u8>) {
        let mut id = DerWriter::default();
        id.whole(SHA1);
        id.element(tag::OCTET_STRING, &self.name_hash);
        id.element(tag::OCTET_STRING, &self.key_hash);
        id.element(tag::INTEGER, &self.serial);
        // `CertID` in `Request` in `requestList` in `TBSRequest` in `OCSPRequest`.
        for _ in 0..5 {
            let inner = core::mem::take(&mut id);
            id.element(tag::SEQUENCE, &inner.finish());
        }
        out.append(&mut id.finish());
    }

    /// Whether a `CertID` is this one.
    fn is(&self, mut id: DerReader<'_>) -> Result<bool, InvalidDer> {
        let mut algorithm = id.inside(tag::SEQUENCE)?;
        let is_sha1 = algorithm.element(tag::OBJECT_IDENTIFIER)?.whole == &SHA1[2..9];
        Ok(is_sha1
            && id.contents(tag::OCTET_STRING)? == self.name_hash
            && id.contents(tag::OCTET_STRING)? == self.key_hash
            && id.contents(tag::INTEGER)? == self.serial)
    }
}

impl<'a> OcspResponse<'a> {
    pub fn parse(der: &'a [u8]) -> Result<Self, OcspResponseError> {
        let mut outer = DerReader::new(der).inside(tag::SEQUENCE)?;
        match outer.contents(tag::ENUMERATED)? {
            [0] => {}
            [status] => return Err(OcspResponseError::Refused(*status)),
            _ => return Err(OcspResponseError::Invalid),
        }
        let mut bytes = outer.inside(tag::constructed(0))?.inside(tag::SEQUENCE)?;
        if bytes.contents(tag::OBJECT_IDENTIFIER)? != BASIC {
            return Err(OcspResponseError::Invalid);
        }
        let mut basic = bytes.inside(tag::OCTET_STRING)?.inside(tag::SEQUENCE)?;
        let signed = basic.element(tag::SEQUENCE)?;
        let signature = Signature::read(&mut basic)?;
        let certificates = match basic.optional(tag::constructed(0))? {
            Some(certificates) => DerReader::new(certificates.contents).contents(tag::SEQUENCE)?,
            None => &[],
        };
        let mut data = DerReader::new(signed.contents);
        data.optional(tag::constructed(0))?;
        let responder = OcspResponder::read(&mut data)?;
        data.element(tag::GENERALIZED_TIME)?;
        let responses = data.contents(tag::SEQUENCE)?;
        Ok(Self { responder, signed: signed.whole, signature, certificates, responses })
    }

    /// Its answer about a certificate, if it has one.
    pub fn answer(&self, id: &OcspCertificateId) -> Option<OcspAnswer> {
        let mut responses = DerReader::new(self.responses);
        for _ in 0..ANSWERS_MAX {
            let mut response = responses.inside(tag::SEQUENCE).ok()?;
            if id.is(response.inside(tag::SEQUENCE).ok()?).ok()? {
                return OcspAnswer::read(response).ok();
            }
        }
        None
    }

    /// The certificates in the response.
    pub fn certificates(&self) -> impl Iterator<Item = &'a [u8]> {
        let mut reader = DerReader::new(self.certificates);
        let next = move || reader.element(tag::SEQUENCE).ok().map(|element| element.whole);
        core::iter::from_fn(next).take(CERTIFICATES_MAX)
    }
}

impl<'a> OcspResponder<'a> {
    fn read(reader: &mut DerReader<'a>) -> Result<Self, InvalidDer> {
        if let Some(name) = reader.optional(tag::constructed(1))? {
            return Ok(Self::Name(name.contents));
        }
        Ok(Self::KeyHash(reader.inside(tag::constructed(2))?.contents(tag::OCTET_STRING)?))
    }
}

impl OcspAnswer {
    /// Reads the part of a `SingleResponse` after the `CertID`.
    fn read(mut reader: DerReader<'_>) -> Result<Self, InvalidDer> {
        let status = match reader.any()?.tag {
            0x80 => OcspStatus::Good,
            0xa1 => OcspStatus::Revoked,
            0x82 => OcspStatus::Unknown,
            _ => return Err(InvalidDer),
        };
        let this_update = CertificateTime::read(reader.any()?)?;
        let next_update = match reader.optional(tag::constructed(0))? {
            Some(time) => Some(CertificateTime::read(DerReader::new(time.contents).any()?)?),
            None => None,
        };
        Ok(Self { status, this_update, next_update })
    }
}

impl OcspStatus {
    /// OpenSSL's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Revoked => "revoked",
            Self::Unknown => "unknown",
        }
    }
}

impl From<InvalidDer> for OcspResponseError {
    fn from(InvalidDer: InvalidDer) -> Self {
        Self::Invalid
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::x509::X509;

    /// Created by `openssl ocsp`: signed by a responder with a certificate, or by the issuer.
    const BY_RESPONDER: &[u8] = include_bytes!("../../../fuzz/seeds/ocsp/by_responder");
    const BY_ISSUER: &[u8] = include_bytes!("../../../fuzz/seeds/ocsp/by_issuer");
    const UNKNOWN: &[u8] = include_bytes!("../../../fuzz/seeds/ocsp/unknown");
    const REFUSED: &[u8] = include_bytes!("../../../fuzz/seeds/ocsp/refused");

    const NAME_HASH: [u8; 20] = [
        0x69, 0x2a, 0x0c, 0xe0, 0x64, 0x52, 0x5d, 0x04, 0x54, 0x9d, 0x7e, 0x80, 0x5c, 0xcf, 0x98,
        0xeb, 0xad, 0x39, 0xbd, 0x2f,
    ];
    const KEY_HASH: [u8; 20] = [
        0x44, 0x6e, 0x47, 0x08, 0x2b, 0xae, 0xae, 0xce, 0xf0, 0x4f, 0xf7, 0x0b, 0xbe, 0x8d, 0x0b,
        0x8b, 0x07, 0x42, 0x10, 0x19,
    ];

    fn id(serial: u8) -> OcspCertificateId {
        OcspCertificateId { name_hash: NAME_HASH, key_hash: KEY_HASH, serial: vec![0x10, serial] }
    }

    fn status(response: &[u8], id: &OcspCertificateId) -> Option<OcspStatus> {
        let response = OcspResponse::parse(response).expect("a response");
        response.answer(id).map(|answer| answer.status)
    }

    #[test]
    fn a_request_is_the_one_that_openssl_writes() {
        let mut request = Vec::new();
        id(0).write_request(&mut request);
        let hashes = [&[4, 20][..], &NAME_HASH, &[4, 20], &KEY_HASH, &[2, 2, 0x10, 0]].concat();
        let begin = [0x30, 0x43, 0x30, 0x41, 0x30, 0x3f, 0x30, 0x3d, 0x30, 0x3b];
        assert_eq!(request, [&begin, SHA1, &hashes].concat());
        let long = OcspCertificateId { serial: vec![1; SERIAL_MAX], ..id(0) };
        request.clear();
        long.write_request(&mut request);
        assert!(DerReader::new(&request).inside(tag::SEQUENCE).is_ok());
        assert_eq!(request[1], 0x81);
    }

    #[test]
    fn a_response_answers_for_its_certificates_only() {
        assert_eq!(status(BY_RESPONDER, &id(0)), Some(OcspStatus::Good));
        assert_eq!(status(BY_RESPONDER, &id(1)), Some(OcspStatus::Revoked));
        assert_eq!(status(BY_RESPONDER, &id(2)), None);
        assert_eq!(status(BY_ISSUER, &id(0)), Some(OcspStatus::Good));
        assert_eq!(status(UNKNOWN, &id(0)), Some(OcspStatus::Unknown));
        let other = OcspCertificateId { key_hash: [0; 20], ..id(0) };
        assert_eq!(status(BY_ISSUER, &other), None);
    }

    #[test]
    fn a_response_says_how_long_it_is_valid() {
        let read = |response: &'static [u8]| {
            let response = OcspResponse::parse(response).expect("a response");
            response.answer(&id(0)).expect("an answer")
        };
        let limited = read(BY_RESPONDER);
        let days = |answer: OcspAnswer| {
            let next = answer.next_update?.seconds();
            Some((next - answer.this_update.seconds()) / 86_400)
        };
        assert_eq!((days(limited), days(read(BY_ISSUER))), (Some(20_000), None));
    }

    #[test]
    fn a_response_names_its_signer() {
        let response = OcspResponse::parse(BY_RESPONDER).expect("a response");
        let certificates: Vec<_> = response.certificates().collect();
        let [certificate] = certificates[..] else { panic!("{} certificates", certificates.len()) };
        let signer = X509::parse(certificate).expect("a certificate");
        assert!(signer.may_sign_ocsp());
        assert_eq!(response.responder, OcspResponder::Name(signer.subject.der));
        let response = OcspResponse::parse(BY_ISSUER).expect("a response");
        assert_eq!(response.responder, OcspResponder::KeyHash(&KEY_HASH));
        assert_eq!(response.certificates().count(), 0);
    }

    #[test]
    fn a_response_without_answers_says_why() {
        let refused = OcspResponse::parse(REFUSED).map(|_| ());
        assert_eq!(refused, Err(OcspResponseError::Refused(3)));
        for end in 0..BY_ISSUER.len() {
            let cut = OcspResponse::parse(&BY_ISSUER[..end]).map(|_| ());
            assert_eq!(cut, Err(OcspResponseError::Invalid), "{end}");
        }
    }
}
