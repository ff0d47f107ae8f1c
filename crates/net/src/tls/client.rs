//! TLS with servers: settings, and a session for each connection.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use rustls::client::{
    ClientSessionStore, ResolvesClientCert, Resumption, Tls12ClientSessionValue,
    Tls13ClientSessionValue, UnbufferedClientConnection,
};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::ServerName;
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, NamedGroup, SignatureScheme};
use wire::tls::{TlsGroup, TlsSuite};

use super::private_key::Credential;
use super::server::{group_of, suite_of, versions};
use super::server_trust::{ServerTrust, TlsServerName, verifier};
use super::session::TlsSession;
use super::side::ClientSide;
use super::warm_up;
use crate::SecureSession;
use crate::accept::Transport;

/// Maximum number of stored TLS 1.3 tickets. Each is used once.
const TICKETS_MAX: usize = 1024;

/// Settings of TLS with servers.
#[derive(Clone, Debug, Default)]
pub struct ClientTlsPlan {
    /// How servers are verified.
    pub trust: ServerTrust,
    /// The certificate for servers that request one.
    pub credential: Option<Credential>,
    /// Whether TLS 1.2 is spoken.
    pub has_tls12: bool,
    /// Whether TLS 1.3 is spoken.
    pub has_tls13: bool,
    /// Cipher suites, best first.
    pub suites: Vec<TlsSuite>,
    /// Key exchange groups, best first. The key share is for the first one.
    pub groups: Vec<TlsGroup>,
    /// Maximum number of bytes of plaintext in a record.
    pub record_max: usize,
    /// Application protocols (ALPN), best first.
    pub protocols: Vec<Box<[u8]>>,
    /// Whether the server's name is sent (SNI).
    pub sends_name: bool,
    /// Whether an end without close_notify counts as a proper end.
    pub ignores_cut: bool,
    /// Whether earlier sessions are resumed.
    pub resumes: bool,
}

/// TLS with servers, ready for use.
#[derive(Clone)]
pub struct ClientTls {
    config: Arc<ClientConfig>,
    record_max: usize,
    ignores_cut: bool,
    resumes: bool,
}

impl ClientTls {
    /// Fails with a reason if no cipher suite or group is left.
    pub fn new(plan: ClientTlsPlan) -> Result<Self, String> {
        warm_up::note_use();
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
            Some(Credential { key, .. }) => {
                builder.with_client_cert_resolver(Arc::new(OwnKey(key)))
            }
        };
        config.alpn_protocols = plan.protocols.into_iter().map(Vec::from).collect();
        config.enable_sni = plan.sends_name;
        config.enable_secret_extraction = true;
        config.resumption = if plan.resumes { own_sessions() } else { Resumption::disabled() };
        let ClientTlsPlan { record_max, ignores_cut, resumes, .. } = plan;
        Ok(Self { config: Arc::new(config), record_max, ignores_cut, resumes })
    }

    /// A copy with another client certificate.
    pub fn with_credential(&self, credential: Credential) -> Self {
        let mut config = ClientConfig::clone(&self.config);
        config.client_auth_cert_resolver = Arc::new(OwnKey(credential.key));
        // A session that was begun with another certificate must not be resumed with this one.
        config.resumption = if self.resumes { own_sessions() } else { Resumption::disabled() };
        Self { config: Arc::new(config), ..*self }
    }

    /// A copy that offers these application protocols (ALPN), best first.
    pub fn offering(&self, protocols: &[Box<[u8]>]) -> Self {
        let mut config = ClientConfig::clone(&self.config);
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        Self { config: Arc::new(config), ..*self }
    }

    /// A copy for another server, with sessions of its own.
    pub fn with_own_sessions(&self) -> Self {
        if !self.resumes {
            return self.clone();
        }
        let mut config = ClientConfig::clone(&self.config);
        config.resumption = own_sessions();
        Self { config: Arc::new(config), ..*self }
    }

    /// A new session with a server.
    pub fn session(&self, name: &TlsServerName) -> io::Result<Box<dyn SecureSession>> {
        let connection = UnbufferedClientConnection::new(self.config.clone(), name.0.clone());
        let connection = connection.map_err(io::Error::other)?;
        let session = TlsSession::new(ClientSide(connection), self.record_max, &[]);
        Ok(Box::new(session.ignoring_cut(self.ignores_cut)))
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
    pub tls: ClientTls,
    pub name: TlsServerName,
}

impl Transport for ClientTransport {
    fn session(&self, _: &[u8]) -> io::Result<Box<dyn SecureSession>> {
        self.tls.session(&self.name)
    }
}

/// Presents the same certificate to all servers, regardless of the authorities that they name.
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

fn own_sessions() -> Resumption {
    Resumption::store(Arc::<ClientSessions>::default())
}

/// Sessions with one server. For TLS 1.2 the last one, which every connection resumes; for TLS 1.3
/// tickets for one connection each (RFC 8446 appendix C.4).
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
