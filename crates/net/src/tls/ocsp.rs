//! The status of a certificate by OCSP: what to ask its issuer's responder, and whether a response
//! counts.
//!
//! Deliberately absent: the transport, and when to ask.

use std::fmt;

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use wire::ocsp::{
    OcspAnswer, OcspCertificateId, OcspResponder, OcspResponse, OcspResponseError, SERIAL_MAX,
};
use wire::x509::X509;

use super::Credential;
use super::chain::is_signed;

pub use wire::ocsp::OcspStatus;

/// Who asks for the status of which certificate.
#[derive(Clone, Debug)]
pub struct OcspQuestion {
    id: OcspCertificateId,
    /// The issuer's certificate as DER.
    issuer: Vec<u8>,
    /// The address of the responder that the certificate names.
    responder: Option<Vec<u8>>,
    signers: OcspSigners,
}

/// Whose signatures count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OcspSigners {
    /// The issuer's, and those of signers that it gave a certificate for this purpose (RFC 6960,
    /// section 4.2.2.2).
    Authorized,
    /// Also those of any certificate in the response.
    Any,
}

/// What a responder says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OcspVerdict {
    /// Whether the certificate was revoked.
    pub status: OcspStatus,
    /// Until when the response may be used, in seconds since 1970.
    pub valid_until: i64,
}

/// Why a response does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OcspFault {
    /// It cannot be read.
    Unreadable,
    /// The responder refused to answer, with this status.
    Refused(u8),
    /// It is not signed by a signer that counts.
    Unverified,
    /// It is about other certificates.
    OtherCertificate,
    /// It is not valid yet, or no longer.
    Expired,
}

/// Why a client's certificate is refused by the word of responders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OcspRefusal {
    /// A responder could not be asked, or its response does not count.
    Failed,
    /// A certificate of the chain was revoked.
    Revoked,
    /// A responder does not know a certificate.
    Unknown,
}

/// How far the clocks of a responder and of this machine may differ, in seconds, as in nginx.
const SKEW_S: i64 = 300;

impl OcspQuestion {
    /// The question for the certificate of a credential. The issuer's certificate is looked for in
    /// its chain, then among `others`. `None`: it is in neither.
    pub fn new<'a>(
        credential: &'a Credential,
        others: impl Iterator<Item = &'a [u8]>,
        signers: OcspSigners,
    ) -> Option<Self> {
        let mut chain = credential.chain();
        let leaf = X509::parse(chain.next()?).ok()?;
        chain.chain(others).find_map(|issuer| Self::of_issuer(&leaf, issuer, signers))
    }

    /// The question about a certificate; `None`: this is not its issuer's certificate.
    pub(super) fn of_issuer(leaf: &X509<'_>, der: &[u8], signers: OcspSigners) -> Option<Self> {
        let issuer = X509::parse(der).ok()?;
        if issuer.subject.der != leaf.issuer.der
            || leaf.serial.len() > SERIAL_MAX
            || !is_signed(leaf.signed, &leaf.signature, &issuer.public_key)
        {
            return None;
        }
        let id = OcspCertificateId {
            name_hash: sha1(issuer.subject.der),
            key_hash: sha1(issuer.public_key.key),
            serial: leaf.serial.to_vec(),
        };
        let responder = leaf.ocsp_responder().map(<[u8]>::to_vec);
        Some(Self { id, issuer: der.to_vec(), responder, signers })
    }

    /// The address of the responder that the certificate names.
    pub fn responder(&self) -> Option<&[u8]> {
        self.responder.as_deref()
    }

    /// Which certificate the question is about.
    pub fn certificate_id(&self) -> &OcspCertificateId {
        &self.id
    }

    /// The request, as DER.
    pub fn request(&self) -> Vec<u8> {
        let mut request = Vec::new();
        self.id.write_request(&mut request);
        request
    }

    /// What a response says.
    pub fn judge(&self, response: &[u8], now_seconds: i64) -> Result<OcspVerdict, OcspFault> {
        let response = OcspResponse::parse(response).map_err(|error| match error {
            OcspResponseError::Invalid => OcspFault::Unreadable,
            OcspResponseError::Refused(status) => OcspFault::Refused(status),
        })?;
        if !self.is_verified(&response, now_seconds) {
            return Err(OcspFault::Unverified);
        }
        let answer = response.answer(&self.id).ok_or(OcspFault::OtherCertificate)?;
        let OcspAnswer { status, this_update, next_update } = answer;
        let valid_until = next_update.map_or(i64::MAX, |time| time.seconds());
        let begins = this_update.seconds().saturating_sub(SKEW_S);
        if now_seconds < begins || now_seconds > valid_until.saturating_add(SKEW_S) {
            return Err(OcspFault::Expired);
        }
        Ok(OcspVerdict { status, valid_until })
    }

    /// Whether a signer that counts has signed the response.
    fn is_verified(&self, response: &OcspResponse<'_>, now_seconds: i64) -> bool {
        let Ok(issuer) = X509::parse(&self.issuer) else { return false };
        let has_signed = |signer: &X509<'_>| {
            let is_named = match response.responder {
                OcspResponder::Name(name) => name == signer.subject.der,
                OcspResponder::KeyHash(hash) => hash == sha1(signer.public_key.key),
            };
            is_named && is_signed(response.signed, &response.signature, &signer.public_key)
        };
        if has_signed(&issuer) {
            return true;
        }
        response
            .certificates()
            .filter_map(|der| X509::parse(der).ok())
            .any(|signer| self.counts(&signer, &issuer, now_seconds) && has_signed(&signer))
    }

    fn counts(&self, signer: &X509<'_>, issuer: &X509<'_>, now_seconds: i64) -> bool {
        self.signers == OcspSigners::Any
            || signer.may_sign_ocsp()
                && signer.issuer.der == issuer.subject.der
                && (signer.not_before.seconds()..=signer.not_after.seconds()).contains(&now_seconds)
                && is_signed(signer.signed, &signer.signature, &issuer.public_key)
    }
}

impl OcspRefusal {
    /// Why a certificate with this status is refused, if it is.
    pub fn of(status: OcspStatus) -> Option<Self> {
        match status {
            OcspStatus::Good => None,
            OcspStatus::Revoked => Some(Self::Revoked),
            OcspStatus::Unknown => Some(Self::Unknown),
        }
    }
}

impl fmt::Display for OcspRefusal {
    /// In the words of nginx.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Failed => "certificate status request failed",
            Self::Revoked => "certificate revoked",
            Self::Unknown => "certificate status unknown",
        })
    }
}

impl fmt::Display for OcspFault {
    /// In the words of nginx's log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable => f.write_str("d2i_OCSP_RESPONSE() failed"),
            Self::Refused(status) => {
                let name = match status {
                    1 => "malformedrequest",
                    2 => "internalerror",
                    3 => "trylater",
                    5 => "sigrequired",
                    6 => "unauthorized",
                    _ => "(UNKNOWN)",
                };
                write!(f, "OCSP response not successful ({status}: {name})")
            }
            Self::Unverified => f.write_str("OCSP_basic_verify() failed"),
            Self::OtherCertificate => {
                f.write_str("certificate status not found in the OCSP response")
            }
            Self::Expired => f.write_str("OCSP_check_validity() failed"),
        }
    }
}

fn sha1(bytes: &[u8]) -> [u8; 20] {
    let mut hash = [0; 20];
    hash.copy_from_slice(digest(&SHA1_FOR_LEGACY_USE_ONLY, bytes).as_ref());
    hash
}

#[cfg(test)]
mod tests;
