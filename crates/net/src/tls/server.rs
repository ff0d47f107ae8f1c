//! TLS with the clients of a server: settings, and a session for each connection.

use std::fmt;
use std::io;
use std::sync::{Arc, OnceLock};

use rustls::crypto::{CryptoProvider, SupportedKxGroup, aws_lc_rs};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{
    NoServerSessionStorage, ServerConfig, UnbufferedServerConnection, WebPkiClientVerifier,
};
use rustls::{SupportedCipherSuite, SupportedProtocolVersion, version};
use wire::client_hello::ClientHello;
use wire::tls::{TlsGroup, TlsSuite};

use super::Credential;
use super::certificate_compression;
use super::client_trust::{ClientTrust, ClientVerifier};
use super::details::OfferedByClient;
use super::server_credentials::ServerCredentials;
use super::session::TlsSession;
use super::session_cache::{ServerSessions, TlsSessionCache};
use super::side::{ServerHello, ServerSide};
use super::tickets::{self, ServerTickets, TicketKeys};
use super::warm_up;
use crate::SecureSession;

/// Settings of TLS with clients.
#[derive(Clone, Debug, Default)]
pub struct ServerTlsPlan {
    /// Certificates with their keys. Of several with the same kind of key, the last one is used. If
    /// there are none, each [session](ServerTls::session) needs its own.
    pub credentials: Vec<Credential>,
    /// Whether TLS 1.2 is spoken.
    pub has_tls12: bool,
    /// Whether TLS 1.3 is spoken.
    pub has_tls13: bool,
    /// Cipher suites, best first.
    pub suites: Vec<TlsSuite>,
    /// Key exchange groups, best first.
    pub groups: Vec<TlsGroup>,
    /// Whether the server's order of cipher suites counts instead of the client's.
    pub prefers_own_suites: bool,
    /// Maximum number of bytes of plaintext in a record.
    pub record_max: usize,
    /// Application protocols (ALPN), best first.
    pub protocols: Vec<Box<[u8]>>,
    pub resumption: ResumptionPlan,
    /// Maximum number of bytes that a client may send with its first message when it resumes a
    /// session; 0: none. Requires a session cache, which replaces tickets: a session must be
    /// resumed only once, or the bytes could be replayed.
    pub early_data_max: u32,
    /// How client certificates are verified; `None`: none is requested.
    pub clients: Option<Arc<ClientTrust>>,
    /// Whether certificates are compressed for clients that can decompress them (RFC 8879).
    pub compresses_certificates: bool,
}

/// How a server resumes sessions.
#[derive(Clone, Default)]
pub struct ResumptionPlan {
    /// Identifies the server: other servers do not accept its sessions.
    pub identity: Vec<Box<[u8]>>,
    /// Lifetime of a session in seconds.
    pub lifetime_s: u64,
    /// The keys of tickets; `None`: there are no tickets.
    pub ticket_keys: Option<TicketKeys>,
    /// Stores sessions for clients without tickets.
    pub cache: Option<Arc<TlsSessionCache>>,
}

/// TLS with clients, ready for use.
pub struct ServerTls {
    credentials: Arc<ServerCredentials>,
    clients: Option<Arc<ClientTrust>>,
    config: Arc<ServerConfig>,
    /// The same with HTTP/2 before the other application protocols, made on first use.
    with_h2: OnceLock<Arc<ServerConfig>>,
    record_max: usize,
}

/// The name of HTTP/2 as an application protocol.
pub const H2: &[u8] = b"h2";

impl ServerTls {
    /// Fails with a reason if no cipher suite or group is left.
    pub fn new(plan: ServerTlsPlan) -> Result<Self, String> {
        warm_up::note_use();
        let provider = Arc::new(CryptoProvider {
            cipher_suites: plan.suites.iter().filter_map(|suite| suite_of(*suite)).collect(),
            kx_groups: plan.groups.iter().map(|group| group_of(*group)).collect(),
            ..aws_lc_rs::default_provider()
        });
        let credentials = Arc::new(ServerCredentials::new(plan.credentials));
        let mut config = ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&versions(plan.has_tls12, plan.has_tls13))
            .map_err(|error| error.to_string())?
            .with_client_cert_verifier(verifier(plan.clients.as_ref(), provider))
            .with_cert_resolver(credentials.clone());
        config.ignore_client_order = plan.prefers_own_suites;
        config.alpn_protocols = plan.protocols.into_iter().map(Vec::from).collect();
        config.enable_secret_extraction = true;
        if plan.compresses_certificates {
            config.cert_compressors = certificate_compression::COMPRESSORS.to_vec();
        }
        config.max_early_data_size = plan.early_data_max;
        config.send_half_rtt_data = plan.early_data_max > 0;
        plan.resumption.apply(&mut config);
        let (config, with_h2) = (Arc::new(config), OnceLock::new());
        Ok(Self {
            credentials,
            clients: plan.clients,
            config,
            with_h2,
            record_max: plan.record_max,
        })
    }

    /// A session with a client. `received` contains all bytes received so far, which begin with
    /// `hello`; an invalid message is refused in the handshake. `credentials` replace those of the
    /// server.
    pub fn session(
        &self,
        hello: Option<&ClientHello<'_>>,
        has_h2: bool,
        received: &[u8],
        credentials: Option<Vec<Credential>>,
    ) -> io::Result<Box<dyn SecureSession>> {
        let config = if has_h2 { self.with_h2() } else { &self.config };
        let (config, credentials) = match credentials {
            None => (config.clone(), self.credentials.clone()),
            Some(own) => {
                let credentials = Arc::new(ServerCredentials::new(own));
                let mut config = ServerConfig::clone(config);
                config.cert_resolver = credentials.clone();
                (Arc::new(config), credentials)
            }
        };
        let connection = UnbufferedServerConnection::new(config).map_err(io::Error::other)?;
        let offered = hello.map(OfferedByClient::of).unwrap_or_default();
        let side = ServerSide {
            connection,
            offered,
            credentials,
            hello: ServerHello::default(),
            trust: self.clients.clone(),
            signed_with: 0,
        };
        Ok(Box::new(TlsSession::new(side, self.record_max, received)))
    }

    fn with_h2(&self) -> &Arc<ServerConfig> {
        self.with_h2.get_or_init(|| {
            let mut config = ServerConfig::clone(&self.config);
            config.alpn_protocols.insert(0, H2.to_vec());
            Arc::new(config)
        })
    }
}

impl fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerTls").field("record_max", &self.record_max).finish_non_exhaustive()
    }
}

impl ResumptionPlan {
    fn apply(self, config: &mut ServerConfig) {
        let parts: Vec<&[u8]> = self.identity.iter().map(|part| &**part).collect();
        let identity = tickets::identity(&parts);
        let lifetime_s = u32::try_from(self.lifetime_s).unwrap_or(u32::MAX);
        if let Some(keys) = self.ticket_keys.filter(|_| config.max_early_data_size == 0) {
            if let TicketKeys::Rotating(keys) = &keys {
                keys.keep_for(self.lifetime_s);
            }
            config.ticketer = Arc::new(ServerTickets { keys, identity, lifetime_s });
        }
        config.session_storage = match self.cache {
            None => Arc::new(NoServerSessionStorage {}),
            Some(cache) => {
                Arc::new(ServerSessions { cache, identity, lifetime_s: self.lifetime_s })
            }
        };
    }
}

impl fmt::Debug for ResumptionPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResumptionPlan")
            .field("lifetime_s", &self.lifetime_s)
            .finish_non_exhaustive()
    }
}

/// Requests client certificates if there are rules for them.
fn verifier(
    clients: Option<&Arc<ClientTrust>>,
    provider: Arc<CryptoProvider>,
) -> Arc<dyn ClientCertVerifier> {
    match clients {
        Some(trust) => Arc::new(ClientVerifier { trust: trust.clone(), provider }),
        None => WebPkiClientVerifier::no_client_auth(),
    }
}

pub(crate) fn versions(has_tls12: bool, has_tls13: bool) -> Vec<&'static SupportedProtocolVersion> {
    let tls12 = has_tls12.then_some(&version::TLS12);
    tls12.into_iter().chain(has_tls13.then_some(&version::TLS13)).collect()
}

/// rustls's object for a suite.
pub(crate) fn suite_of(suite: TlsSuite) -> Option<SupportedCipherSuite> {
    let all = aws_lc_rs::ALL_CIPHER_SUITES.iter();
    all.copied().find(|other| u16::from(other.suite()) == suite.code())
}

/// rustls's object for a group.
pub(crate) fn group_of(group: TlsGroup) -> &'static dyn SupportedKxGroup {
    match group {
        TlsGroup::Secp256r1 => aws_lc_rs::kx_group::SECP256R1,
        TlsGroup::Secp384r1 => aws_lc_rs::kx_group::SECP384R1,
        TlsGroup::X25519 => aws_lc_rs::kx_group::X25519,
        TlsGroup::Secp256r1MlKem768 => aws_lc_rs::kx_group::SECP256R1MLKEM768,
        TlsGroup::X25519MlKem768 => aws_lc_rs::kx_group::X25519MLKEM768,
        TlsGroup::MlKem768 => aws_lc_rs::kx_group::MLKEM768,
    }
}
