//! How a server verifies its clients, and the certificates that they present.
//!
//! As in nginx, a handshake accepts every certificate whose key the client proves to have. The
//! certificate is verified afterwards, so that a client with a bad one gets a reply that says so.
//! The result is not stored in resumable sessions: the chain is verified again, by the current
//! rules.

use std::cell::Cell;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use aws_lc_rs::digest;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, CommonState, DigitallySignedStruct, DistinguishedName, Error, SignatureScheme,
};
use wire::x509::X509;

use super::chain::{ChainFault, ChainPurpose, ChainRules, TrustedCertificates};
use super::ocsp::{OcspQuestion, OcspRefusal, OcspSigners};
use super::server_trust::verify_signature;
use super::tickets::now_s;

/// Maximum size of the names in a certificate request: its length has two bytes.
const NAMES_MAX: usize = 0xffff;

/// The rules for certificates of clients.
pub struct ClientTrust {
    rules: ChainRules,
    /// The names of authorities that are sent to clients.
    names: Vec<DistinguishedName>,
    /// Whether OCSP responders must confirm certificates.
    needs_ocsp: bool,
    digest: TrustDigest,
}

/// Identifies the rules.
type TrustDigest = [u8; digest::SHA256_OUTPUT_LEN];

/// The certificates that a client has presented, and whose key it has proved to have.
pub struct ClientCertificate {
    /// The client's own certificate first, in DER.
    chain: Box<[Box<[u8]>]>,
    /// IANA's number of the scheme of the handshake signature; 0: the session was resumed.
    pub(super) signature_scheme: u16,
    /// The result by the rules of the handshake.
    at_handshake: Result<(), ChainFault>,
    /// The rules of the last verification, and the result.
    last: Mutex<(TrustDigest, Result<(), ChainFault>)>,
    /// The OCSP result, if the server of the handshake has requested one.
    ocsp: OnceLock<Result<(), OcspRefusal>>,
}

/// Why a client's certificate is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientCertificateFault {
    /// The chain is invalid.
    Chain(ChainFault),
    /// No responder confirms the certificate.
    Ocsp(OcspRefusal),
}

impl ClientTrust {
    /// `announced`: the certificates whose names are sent to clients. `needs_ocsp`: responders must
    /// confirm certificates ([`ClientCertificate::set_ocsp`]). `None`: the names are too long.
    pub fn new(
        rules: ChainRules,
        announced: Option<&TrustedCertificates>,
        needs_ocsp: bool,
    ) -> Option<Self> {
        let mut names: Vec<DistinguishedName> = Vec::new();
        for der in announced.into_iter().flat_map(TrustedCertificates::iter) {
            let Ok(x509) = X509::parse(der) else { continue };
            let name = x509.subject.der;
            if names.iter().all(|other| other.as_ref() != name) {
                names.push(DistinguishedName::from(name.to_vec()));
            }
        }
        let length: usize = names.iter().map(|name| name.as_ref().len() + 2).sum();
        if length > NAMES_MAX {
            return None;
        }
        let mut digest = digest::Context::new(&digest::SHA256);
        digest.update(&[u8::from(needs_ocsp)]);
        digest.update(&(rules.depth_max as u64).to_be_bytes());
        let lists = rules.revoked.iter().flat_map(|lists| lists.iter());
        for part in rules.trusted.sections().chain([&[][..]]).chain(lists) {
            digest.update(&(part.len() as u64).to_be_bytes());
            digest.update(part);
        }
        let mut bytes = TrustDigest::default();
        bytes.copy_from_slice(digest.finish().as_ref());
        Some(Self { rules, names, needs_ocsp, digest: bytes })
    }

    /// Whether the rules accept a chain, which begins with the client's own certificate.
    fn verify(&self, chain: &[Box<[u8]>]) -> Result<(), ChainFault> {
        self.verified_chain(chain).map(drop)
    }

    /// The same; returns the certificates up to the trusted one.
    fn verified_chain(&self, chain: &[Box<[u8]>]) -> Result<Vec<Vec<u8>>, ChainFault> {
        let Some((leaf, others)) = chain.split_first() else { return Err(ChainFault::Unspecified) };
        let others: Vec<&[u8]> = others.iter().map(AsRef::as_ref).collect();
        let now_seconds = i64::try_from(now_s()).unwrap_or(i64::MAX);
        self.rules.verified_chain(leaf, &others, ChainPurpose::Client, now_seconds)
    }

    /// Differs from the digest of all other rules.
    pub fn digest(&self) -> &[u8] {
        &self.digest
    }
}

impl fmt::Debug for ClientTrust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientTrust").field("names", &self.names.len()).finish_non_exhaustive()
    }
}

impl ClientCertificate {
    /// The client's certificate, if it has presented one, verified by these rules.
    pub(super) fn of(
        agreed: &CommonState,
        trust: &ClientTrust,
        signature_scheme: u16,
    ) -> Option<Box<Self>> {
        let chain = agreed.peer_certificates().filter(|chain| !chain.is_empty())?;
        let chain: Box<[Box<[u8]>]> = chain.iter().map(|der| Box::from(der.as_ref())).collect();
        let at_handshake = trust.verify(&chain);
        let last = Mutex::new((trust.digest, at_handshake));
        let ocsp = OnceLock::new();
        Some(Box::new(Self { chain, signature_scheme, at_handshake, last, ocsp }))
    }

    /// The client's own certificate, in DER.
    pub fn leaf(&self) -> &[u8] {
        self.chain.first().map_or(&[], |leaf| leaf)
    }

    /// The SHA-1 of the client's own certificate.
    pub fn sha1(&self) -> impl AsRef<[u8]> + use<> {
        digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, self.leaf())
    }

    /// Whether the certificate is accepted: by these rules, or without rules by those of the
    /// handshake, and by the OCSP responders, if there was a request. If these rules require OCSP
    /// and the server of the handshake made no request, it is refused.
    pub fn verify(&self, trust: Option<&ClientTrust>) -> Result<(), ClientCertificateFault> {
        self.verify_chain(trust).map_err(ClientCertificateFault::Chain)?;
        let unasked = match trust {
            Some(trust) if trust.needs_ocsp => Err(OcspRefusal::Failed),
            _ => Ok(()),
        };
        let answer = self.ocsp.get().copied().unwrap_or(unasked);
        answer.map_err(ClientCertificateFault::Ocsp)
    }

    /// The OCSP requests: one for each certificate of the chain but the last one, the client's own
    /// first; with `leaf_only` just that one. `None`: the rules do not accept the chain, so no
    /// request is needed.
    pub fn ocsp_questions(
        &self,
        trust: &ClientTrust,
        leaf_only: bool,
    ) -> Option<Vec<OcspQuestion>> {
        let chain = trust.verified_chain(&self.chain).ok()?;
        let pairs = chain.windows(2).take(if leaf_only { 1 } else { usize::MAX });
        pairs
            .map(|pair| {
                let leaf = X509::parse(&pair[0]).ok()?;
                OcspQuestion::of_issuer(&leaf, &pair[1], OcspSigners::Authorized)
            })
            .collect()
    }

    /// Records the OCSP result. Only the first one counts.
    pub fn set_ocsp(&self, answer: Result<(), OcspRefusal>) {
        let _ = self.ocsp.set(answer);
    }

    /// Whether the rules accept the chain. The last result is kept, so that only a connection with
    /// requests to servers with different rules is verified more than once.
    fn verify_chain(&self, trust: Option<&ClientTrust>) -> Result<(), ChainFault> {
        let Some(trust) = trust else { return self.at_handshake };
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.0 != trust.digest {
            *last = (trust.digest, trust.verify(&self.chain));
        }
        last.1
    }
}

impl fmt::Display for ClientCertificateFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Chain(fault) => fault.fmt(f),
            Self::Ocsp(refusal) => refusal.fmt(f),
        }
    }
}

impl fmt::Debug for ClientCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientCertificate")
            .field("at_handshake", &self.at_handshake)
            .finish_non_exhaustive()
    }
}

thread_local! {
    /// The signature scheme of the last client message that rustls verified. rustls reports it only
    /// to the verifier, which all connections share.
    static SIGNED_WITH: Cell<u16> = const { Cell::new(0) };
}

/// The client's signature scheme, if rustls has verified a signature since the last call.
pub(super) fn take_signature_scheme() -> Option<u16> {
    Some(SIGNED_WITH.take()).filter(|scheme| *scheme != 0)
}

/// Requests certificates from clients, accepts any, and verifies the proof of possession of the
/// key.
#[derive(Debug)]
pub(super) struct ClientVerifier {
    pub(super) trust: Arc<ClientTrust>,
    pub(super) provider: Arc<CryptoProvider>,
}

impl ClientVerifier {
    /// Without webpki, which cannot parse every certificate that OpenSSL can.
    fn verify(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
        is_tls13: bool,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        let x509 = parse(certificate)?;
        let valid = verify_signature(message, &x509, signed, algorithms, is_tls13)?;
        SIGNED_WITH.set(signed.scheme.into());
        Ok(valid)
    }
}

impl ClientCertVerifier for ClientVerifier {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &self.trust.names
    }

    fn verify_client_cert(
        &self,
        leaf: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        parse(leaf).map(|_| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verify(message, certificate, signed, false)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verify(message, certificate, signed, true)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

fn parse<'a>(certificate: &'a CertificateDer<'_>) -> Result<X509<'a>, Error> {
    X509::parse(certificate).map_err(|_| Error::InvalidCertificate(CertificateError::BadEncoding))
}
