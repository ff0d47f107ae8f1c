//! Certificates of clients: which are asked for, and which requests are refused for theirs.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use conf::{Load, Result};
use net::tls::{
    ChainRules, ClientCertificateFault, ClientTrust, RevocationLists, TlsDetails,
    TrustedCertificates,
};

use super::Conf;
use super::values::{CertificateFile, OcspMode, VerifyClient, VerifyClientLine};

/// What a server asks of its clients.
#[derive(Clone, Debug)]
pub struct ClientVerification {
    mode: VerifyClient,
    /// `None`: the server has no certificate itself, so the default server asks.
    pub(super) trust: Option<Arc<ClientTrust>>,
}

/// Why a client is turned away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientRefusal {
    Untrusted(ClientCertificateFault),
    NoCertificate,
}

impl fmt::Display for ClientRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Untrusted(ClientCertificateFault::Chain(fault)) => {
                let code = fault.code();
                write!(f, "client SSL certificate verify error: ({code}:{fault})")
            }
            Self::Untrusted(ClientCertificateFault::Ocsp(refusal)) => {
                write!(f, "client SSL certificate verify error: {refusal}")
            }
            Self::NoCertificate => f.write_str("client sent no required SSL certificate"),
        }
    }
}

impl ClientVerification {
    pub fn trust(&self) -> Option<&ClientTrust> {
        self.trust.as_deref()
    }

    /// Why the client of this session is turned away, if it is.
    pub fn refusal(&self, tls: &TlsDetails) -> Option<ClientRefusal> {
        let Some(shown) = &tls.client_certificate else {
            return (self.mode == VerifyClient::On).then_some(ClientRefusal::NoCertificate);
        };
        let fault = shown.verify(self.trust.as_deref()).err()?;
        let is_of_unknown_authority = matches!(
            fault, ClientCertificateFault::Chain(fault) if fault.is_of_unknown_authority()
        );
        let is_admitted = self.mode == VerifyClient::OptionalNoCa && is_of_unknown_authority;
        (!is_admitted).then_some(ClientRefusal::Untrusted(fault))
    }
}

/// The rules that were compiled, by what they come from: servers that name the same files share
/// them.
#[derive(Default)]
struct CompiledClientTrust(HashMap<ClientTrustSource, Arc<ClientTrust>>);

/// The names of three files, the depth, and whether responders are asked.
type ClientTrustSource = ([Option<Box<[u8]>>; 3], u64, bool);

impl Conf {
    /// What is asked of clients; `None`: nothing. `has_tls`: the server has a certificate itself.
    pub fn client_verification(
        &self,
        has_tls: bool,
        load: &mut Load<'_>,
    ) -> Result<Option<ClientVerification>> {
        let VerifyClientLine { mode, from } = &self.verify_client;
        let (mode, is_on) = (*mode, *mode != VerifyClient::Off);
        if !has_tls {
            let verification = ClientVerification { mode, trust: None };
            return Ok(is_on.then_some(verification));
        }
        let is_without = self.client_certificate.is_none() && self.trusted_certificate.is_none();
        if is_on && mode != VerifyClient::OptionalNoCa && is_without {
            let message =
                "no ssl_client_certificate or ssl_trusted_certificate for ssl_verify_client";
            return Err(from.error(message));
        }
        // As in nginx, the files are read in any case.
        let trust = self.client_trust(load)?;
        Ok(is_on.then_some(ClientVerification { mode, trust: Some(trust) }))
    }

    /// The rules by which certificates are verified.
    fn client_trust(&self, load: &mut Load<'_>) -> Result<Arc<ClientTrust>> {
        let [announced, trusted, crl] =
            [&self.client_certificate, &self.trusted_certificate, &self.crl]
                .map(|file| file.as_ref().filter(|file| !file.text.is_empty()));
        let names = [announced, trusted, crl].map(|file| file.map(|file| file.text.clone()));
        let needs_ocsp = self.ocsp != OcspMode::Off;
        let source = (names, self.verify_depth.0, needs_ocsp);
        if let Some(known) = load.registry.of::<CompiledClientTrust>().0.get(&source) {
            return Ok(known.clone());
        }
        let announced_certificates = announced.map(|file| certificates(file, load)).transpose()?;
        let others = trusted.map(|file| certificates(file, load)).transpose()?;
        let revoked = crl.map(|file| revocations(file, load)).transpose()?.flatten();
        let known = [&announced_certificates, &others].into_iter().flatten();
        let trusted = known.fold(TrustedCertificates::none(), |all, some| all.with(some));
        let depth_max = usize::try_from(self.verify_depth.0).unwrap_or(usize::MAX);
        let rules = ChainRules { trusted, revoked, depth_max };
        let trust = ClientTrust::new(rules, announced_certificates.as_ref(), needs_ocsp);
        let trust = match (trust, announced) {
            (Some(trust), _) => Arc::new(trust),
            (None, Some(file)) => {
                let reason = "the names of its certificates are longer than a handshake can have";
                return Err(file.refuse("certificate", &reason, load));
            }
            // Nothing is announced, which is short enough.
            (None, None) => return Err(conf::Error::bare("no rules for certificates of clients")),
        };
        load.registry.of::<CompiledClientTrust>().0.insert(source, trust.clone());
        Ok(trust)
    }
}

pub(super) fn certificates(
    file: &CertificateFile,
    load: &mut Load<'_>,
) -> Result<TrustedCertificates> {
    match file.read_if_here("certificate", load)? {
        Some(text) => TrustedCertificates::read(&text)
            .map_err(|reason| file.refuse("certificate", &reason, load)),
        None => Ok(TrustedCertificates::none()),
    }
}

/// The lists of a file.
pub(super) fn revocations(
    file: &CertificateFile,
    load: &mut Load<'_>,
) -> Result<Option<RevocationLists>> {
    let text = file.read_if_here("CRL", load)?;
    let read = text.map(|text| RevocationLists::read(&text)).transpose();
    read.map_err(|reason| file.refuse("CRL", &reason, load))
}
