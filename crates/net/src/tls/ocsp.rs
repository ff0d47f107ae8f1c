//! The status of a certificate by OCSP: the request for its issuer's responder, and the
//! verification of a response.
//!
//! Deliberately absent: the transport, and the schedule of requests.

use std::fmt;

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use wire::ocsp::{
    OcspAnswer, OcspCertificateId, OcspResponder, OcspResponse, OcspResponseError, SERIAL_MAX,
};
use wire::x509::X509;

use super::Credential;
use super::chain::is_signed;

pub use wire::ocsp::OcspStatus;

/// A request for the status of a certificate.
#[derive(Clone, Debug)]
pub struct OcspQuestion {
    id: OcspCertificateId,
    /// The issuer's certificate as DER.
    issuer: Vec<u8>,
    /// The responder's URL in the certificate.
    responder: Option<Vec<u8>>,
    signers: OcspSigners,
}

/// The signers that are accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OcspSigners {
    /// The issuer, and signers with a certificate of the issuer for this purpose (RFC 6960, section
    /// 4.2.2.2).
    Authorized,
    /// Also the owners of any certificate in the response.
    Any,
}

/// A verified response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OcspVerdict {
    pub status: OcspStatus,
    /// The end of the response's validity, in seconds since 1970.
    pub valid_until: i64,
}

/// Why a response is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OcspFault {
    /// It cannot be parsed.
    Unreadable,
    /// The responder has refused to answer, with this status.
    Refused(u8),
    /// It has no valid signature of an accepted signer.
    Unverified,
    /// It does not contain the certificate.
    OtherCertificate,
    /// It is not yet, or no longer, valid.
    Expired,
}

/// Why OCSP makes a client's certificate refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OcspRefusal {
    /// A request has failed, or its response is not accepted.
    Failed,
    /// A certificate of the chain is revoked.
    Revoked,
    /// A responder does not know a certificate.
    Unknown,
}

/// Permitted difference between the clocks of a responder and this machine in seconds, as in nginx.
const SKEW_S: i64 = 300;

impl OcspQuestion {
    /// The question for the certificate of a credential. The issuer's certificate is searched in
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

    /// The question for a certificate; `None`: `der` is not its issuer's certificate.
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

    /// The responder's URL in the certificate.
    pub fn responder(&self) -> Option<&[u8]> {
        self.responder.as_deref()
    }

    pub fn certificate_id(&self) -> &OcspCertificateId {
        &self.id
    }

    /// The request, as DER.
    pub fn request(&self) -> Vec<u8> {
        let mut request = Vec::new();
        self.id.write_request(&mut request);
        request
    }

    /// Verifies a response and returns its content.
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

    /// Whether an accepted signer has signed the response.
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
    /// Why a certificate with this status is refused; `None`: it is not.
    pub fn of(status: OcspStatus) -> Option<Self> {
        match status {
            OcspStatus::Good => None,
            OcspStatus::Revoked => Some(Self::Revoked),
            OcspStatus::Unknown => Some(Self::Unknown),
        }
    }
}

impl fmt::Display for OcspRefusal {
    /// nginx's messages.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Failed => "certificate status request failed",
            Self::Revoked => "certificate revoked",
            Self::Unknown => "certificate status unknown",
        })
    }
}

impl fmt::Display for OcspFault {
    /// The messages of nginx's log.
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
