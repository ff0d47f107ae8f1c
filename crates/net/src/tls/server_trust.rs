//! How a client verifies the certificates of servers.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, DigitallySignedStruct, Error, OtherError, RootCertStore, SignatureScheme,
};
use wire::x509::X509;

use super::chain::{ChainFault, ChainPurpose, ChainRules};
use super::private_key::{KeyError, read_certificates};

/// Accepted certificates of servers. In any case the server must prove that it has the key.
#[derive(Clone, Debug, Default)]
pub enum ServerTrust {
    /// Any certificate.
    #[default]
    Any,
    /// Certificates for the server's name, signed by one of these roots.
    Roots(TrustedRoots),
    /// Certificates for the server's DNS name, verified by OpenSSL's rules.
    Chain(ChainRules),
}

/// Trusted root certificates.
#[derive(Clone, Debug)]
pub struct TrustedRoots(Arc<RootCertStore>);

impl TrustedRoots {
    /// Reads a PEM file. Certificates that cannot sign are skipped, as long as one can.
    pub fn read(text: &[u8]) -> Result<Self, KeyError> {
        let mut roots = RootCertStore::empty();
        let (added, _) = roots.add_parsable_certificates(read_certificates(text)?);
        if added == 0 { Err(KeyError::InvalidCertificate) } else { Ok(Self(Arc::new(roots))) }
    }
}

/// The name of a server, for SNI and for its certificate: a DNS name or an IP address.
#[derive(Clone, Debug)]
pub struct TlsServerName(pub(super) ServerName<'static>);

/// Represents a missing name: rustls sends no SNI for addresses.
const NO_NAME: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

impl TlsServerName {
    /// A server without a name. SNI is not sent, and no certificate matches.
    pub fn none() -> Self {
        Self(ServerName::from(NO_NAME))
    }

    /// `None` if the text is neither a DNS name nor an IP address.
    pub fn parse(text: &str) -> Option<Self> {
        ServerName::try_from(text.to_owned()).ok().map(Self)
    }
}

/// Why a server's certificate is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CertificateFault {
    /// The chain is invalid.
    Chain(ChainFault),
    /// The certificate belongs to another host.
    OtherName,
}

impl CertificateFault {
    /// The certificate fault that made a handshake fail, if there was one.
    pub fn of(error: &io::Error) -> Option<Self> {
        let error = error.get_ref()?.downcast_ref::<Error>()?;
        match error {
            Error::InvalidCertificate(CertificateError::Other(OtherError(fault))) => {
                fault.downcast_ref().copied()
            }
            _ => None,
        }
    }
}

impl fmt::Display for CertificateFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Chain(fault) => write!(f, "{fault}"),
            Self::OtherName => f.write_str("hostname mismatch"),
        }
    }
}

impl std::error::Error for CertificateFault {}

pub(super) fn verifier(
    trust: ServerTrust,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, String> {
    let provider = provider.clone();
    match trust {
        ServerTrust::Any => Ok(Arc::new(ServerVerifier { rules: None, provider })),
        ServerTrust::Chain(rules) => Ok(Arc::new(ServerVerifier { rules: Some(rules), provider })),
        ServerTrust::Roots(TrustedRoots(roots)) => {
            let builder = WebPkiServerVerifier::builder_with_provider(roots, provider);
            Ok(builder.build().map_err(|error| error.to_string())?)
        }
    }
}

/// Verifies certificates by OpenSSL's rules, or accepts any certificate; verifies the proof that
/// the server has the key.
#[derive(Debug)]
pub(crate) struct ServerVerifier {
    rules: Option<ChainRules>,
    provider: Arc<CryptoProvider>,
}

impl ServerVerifier {
    /// Accepts every certificate.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn of_any(provider: Arc<CryptoProvider>) -> Self {
        Self { rules: None, provider }
    }

    fn algorithms(&self) -> &WebPkiSupportedAlgorithms {
        &self.provider.signature_verification_algorithms
    }
}

impl ServerCertVerifier for ServerVerifier {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(rules) = &self.rules else { return Ok(ServerCertVerified::assertion()) };
        let now_seconds = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        let others: Vec<&[u8]> = others.iter().map(|certificate| &certificate[..]).collect();
        let verified = rules.verify(leaf, &others, ChainPurpose::Server, now_seconds);
        verified.map_err(|fault| rejected(CertificateFault::Chain(fault)))?;
        match has_name(leaf, name) {
            true => Ok(ServerCertVerified::assertion()),
            false => Err(rejected(CertificateFault::OtherName)),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        match before_version_3(certificate) {
            Some(x509) => verify_signature(message, &x509, signed, self.algorithms(), false),
            None => verify_tls12_signature(message, certificate, signed, self.algorithms()),
        }
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        match before_version_3(certificate) {
            Some(x509) => verify_signature(message, &x509, signed, self.algorithms(), true),
            None => verify_tls13_signature(message, certificate, signed, self.algorithms()),
        }
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms().supported_schemes()
    }
}

fn has_name(leaf: &[u8], name: &ServerName<'_>) -> bool {
    *name != ServerName::from(NO_NAME)
        && X509::parse(leaf).is_ok_and(|x509| x509.is_of_host(name.to_str().as_bytes()))
}

fn rejected(fault: CertificateFault) -> Error {
    Error::InvalidCertificate(CertificateError::Other(OtherError(Arc::new(fault))))
}

/// A certificate of version 1 or 2, which rustls cannot parse.
fn before_version_3<'a>(certificate: &'a CertificateDer<'_>) -> Option<X509<'a>> {
    X509::parse(certificate).ok().filter(|x509| x509.version < 3)
}

/// Verifies the signature of a handshake with the key of a certificate.
pub(super) fn verify_signature(
    message: &[u8],
    x509: &X509<'_>,
    signed: &DigitallySignedStruct,
    algorithms: &WebPkiSupportedAlgorithms,
    is_tls13: bool,
) -> Result<HandshakeSignatureValid, Error> {
    let bad = || Error::InvalidCertificate(CertificateError::BadSignature);
    let (scheme, key) = (signed.scheme, x509.public_key);
    let is_pkcs1 = matches!(
        scheme,
        SignatureScheme::RSA_PKCS1_SHA256
            | SignatureScheme::RSA_PKCS1_SHA384
            | SignatureScheme::RSA_PKCS1_SHA512
    );
    if is_tls13 && is_pkcs1 {
        return Err(bad());
    }
    let (_, known) =
        algorithms.mapping.iter().find(|(other, _)| *other == scheme).ok_or_else(bad)?;
    // In TLS 1.3 a scheme implies one curve, the first in the list.
    let known = if is_tls13 { &known[..known.len().min(1)] } else { known };
    let is_valid = known.iter().any(|algorithm| {
        algorithm.public_key_alg_id().as_ref() == key.algorithm
            && algorithm.verify_signature(key.key, message, signed.signature()).is_ok()
    });
    if is_valid { Ok(HandshakeSignatureValid::assertion()) } else { Err(bad()) }
}
