//! TLS with servers: how it is spoken, and a session for each connection.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{
    ClientSessionStore, ResolvesClientCert, Resumption, Tls12ClientSessionValue,
    Tls13ClientSessionValue, UnbufferedClientConnection, WebPkiServerVerifier,
};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::sign::CertifiedKey;
use rustls::{
    ClientConfig, DigitallySignedStruct, Error, NamedGroup, RootCertStore, SignatureScheme,
};
use wire::tls::{TlsGroup, TlsSuite};

use super::private_key::{Credential, KeyError, read_certificates};
use super::server::{group_of, suite_of, versions};
use super::session::TlsSession;
use super::side::ClientSide;
use crate::SecureSession;
use crate::accept::Transport;

/// Tickets of TLS 1.3 that wait to be used, at most. Each is used once.
const TICKETS_MAX: usize = 1024;

/// How TLS is to be spoken with servers.
#[derive(Clone, Debug, Default)]
pub struct ClientTlsPlan {
    /// Whom to believe.
    pub trust: ServerTrust,
    /// The certificate for servers that ask for one.
    pub credential: Option<Credential>,
    /// Whether TLS 1.2 is spoken.
    pub has_tls12: bool,
    /// Whether TLS 1.3 is spoken.
    pub has_tls13: bool,
    /// Cipher suites, best first.
    pub suites: Vec<TlsSuite>,
    /// Groups to exchange keys with, best first. The key share is for the first one.
    pub groups: Vec<TlsGroup>,
    /// Bytes of plaintext in a record, at most.
    pub record_max: usize,
    /// Application protocols (ALPN), best first.
    pub protocols: Vec<Box<[u8]>>,
    /// Whether the server is told its name (SNI).
    pub sends_name: bool,
    /// Whether earlier sessions are resumed.
    pub resumes: bool,
}

/// Which certificates a server may have.
#[derive(Clone, Debug, Default)]
pub enum ServerTrust {
    /// Any whose key it has.
    #[default]
    Any,
    /// Those for its name that one of these has signed.
    Roots(TrustedRoots),
}

/// Certificates whose signatures are trusted.
#[derive(Clone, Debug)]
pub struct TrustedRoots(Arc<RootCertStore>);

impl TrustedRoots {
    /// Reads a PEM file. Certificates that cannot sign anything are skipped, as long as one can.
    pub fn read(text: &[u8]) -> Result<Self, KeyError> {
        let mut roots = RootCertStore::empty();
        let (added, _) = roots.add_parsable_certificates(read_certificates(text)?);
        if added == 0 { Err(KeyError::InvalidCertificate) } else { Ok(Self(Arc::new(roots))) }
    }
}

/// The name of a server, for SNI and for its certificate: of the DNS, or an IP address.
#[derive(Clone, Debug)]
pub struct TlsServerName(ServerName<'static>);

impl TlsServerName {
    /// `None` if it is neither.
    pub fn parse(text: &str) -> Option<Self> {
        ServerName::try_from(text.to_owned()).ok().map(Self)
    }
}

/// How TLS is spoken with servers.
#[derive(Clone)]
pub struct ClientTls {
    config: Arc<ClientConfig>,
    record_max: usize,
    resumes: bool,
}

impl ClientTls {
    /// Fails with a reason if no cipher suite and group is left.
    pub fn new(plan: ClientTlsPlan) -> Result<Self, String> {
        let provider = Arc::new(CryptoProvider {
            cipher_suites: plan.suites.iter().filter_map(|suite| suite_of(*suite)).collect(),
            kx_groups: plan.groups.iter().map(|group| group_of(*group)).collect(),
            ..aws_lc_rs::default_provider()
        });
        let verifier = verifier(plan.trust, &provider)?;
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&versions(plan.has_tls12, plan.has_tls13))
            .map_err(|error| error.to_string())?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let mut config = match plan.credential {
            None => builder.with_no_client_auth(),
            Some(Credential(key)) => builder.with_client_cert_resolver(Arc::new(OwnKey(key))),
        };
        config.alpn_protocols = plan.protocols.into_iter().map(Vec::from).collect();
        config.enable_sni = plan.sends_name;
        config.enable_secret_extraction = true;
        config.resumption = if plan.resumes { own_sessions() } else { Resumption::disabled() };
        let (config, record_max) = (Arc::new(config), plan.record_max);
        Ok(Self { config, record_max, resumes: plan.resumes })
    }

    /// The same for another server: it does not resume the sessions of this one.
    pub fn with_own_sessions(&self) -> Self {
        if !self.resumes {
            return self.clone();
        }
        let mut config = ClientConfig::clone(&self.config);
        config.resumption = own_sessions();
        Self { config: Arc::new(config), ..*self }
    }

    /// A session with a server.
    pub fn session(&self, name: &TlsServerName) -> io::Result<Box<dyn SecureSession>> {
        let connection = UnbufferedClientConnection::new(self.config.clone(), name.0.clone());
        let connection = connection.map_err(io::Error::other)?;
        Ok(Box::new(TlsSession::new(ClientSide(connection), self.record_max, &[])))
    }
}

impl fmt::Debug for ClientTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientTls").field("record_max", &self.record_max).finish_non_exhaustive()
    }
}

/// TLS with one server.
#[derive(Clone, Debug)]
pub struct ClientTransport {
    /// How it is spoken.
    pub tls: ClientTls,
    /// The server's name.
    pub name: TlsServerName,
}

impl Transport for ClientTransport {
    fn session(&self, _: &[u8]) -> io::Result<Box<dyn SecureSession>> {
        self.tls.session(&self.name)
    }
}

/// Shows servers the same certificate, whomever they trust.
#[derive(Debug)]
struct OwnKey(Arc<CertifiedKey>);

impl ResolvesClientCert for OwnKey {
    fn resolve(&self, _: &[&[u8]], schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        self.0.key.choose_scheme(schemes).map(|_| self.0.clone())
    }

    fn has_certs(&self) -> bool {
        true
    }
}

fn verifier(
    trust: ServerTrust,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, String> {
    match trust {
        ServerTrust::Any => Ok(Arc::new(AnyCertificate(provider.clone()))),
        ServerTrust::Roots(TrustedRoots(roots)) => {
            let builder = WebPkiServerVerifier::builder_with_provider(roots, provider.clone());
            Ok(builder.build().map_err(|error| error.to_string())?)
        }
    }
}

/// Accepts every certificate, but the server must prove that it has the key.
#[derive(Debug)]
pub(crate) struct AnyCertificate(pub(crate) Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

fn own_sessions() -> Resumption {
    Resumption::store(Arc::<ClientSessions>::default())
}

/// Sessions with one server. Of TLS 1.2 the last one, resumed by every connection; of TLS 1.3 a
/// ticket for each connection to come (RFC 8446 appendix C.4).
#[derive(Debug, Default)]
struct ClientSessions(Mutex<ClientSessionsState>);

#[derive(Debug, Default)]
struct ClientSessionsState {
    group: Option<NamedGroup>,
    tls12: Option<(ServerName<'static>, Tls12ClientSessionValue)>,
    tickets: VecDeque<(ServerName<'static>, Tls13ClientSessionValue)>,
}

impl ClientSessions {
    fn with<T>(&self, work: impl FnOnce(&mut ClientSessionsState) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl ClientSessionStore for ClientSessions {
    fn set_kx_hint(&self, _: ServerName<'static>, group: NamedGroup) {
        self.with(|state| state.group = Some(group));
    }

    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        self.with(|state| state.group)
    }

    fn set_tls12_session(&self, name: ServerName<'static>, session: Tls12ClientSessionValue) {
        self.with(|state| state.tls12 = Some((name, session)));
    }

    fn tls12_session(&self, name: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.with(|state| {
            let (of, session) = state.tls12.as_ref()?;
            (of == name).then(|| session.clone())
        })
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {
        self.with(|state| state.tls12 = None);
    }

    fn insert_tls13_ticket(&self, name: ServerName<'static>, ticket: Tls13ClientSessionValue) {
        self.with(|state| {
            if state.tickets.len() == TICKETS_MAX {
                state.tickets.pop_front();
            }
            state.tickets.push_back((name, ticket));
        });
    }

    fn take_tls13_ticket(&self, name: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.with(|state| {
            let (of, ticket) = state.tickets.pop_back()?;
            (of == *name).then_some(ticket)
        })
    }
}

#[cfg(test)]
mod tests;
