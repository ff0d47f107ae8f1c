//! TLS with backends: the settings that every family of backends has, and what they come to.
//!
//! The directives are declared here without their prefix; each family mounts them, as `proxy_ssl_`
//! or `uwsgi_ssl_`. Names and certificates with variables are rendered by whoever connects.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use conf::{Error, Load, Number, Result, Span, Template};
use net::Address;
use net::accept::Transport;
use net::tls::{
    ChainRules, ClientTls, ClientTlsPlan, ClientTransport, Credential, ServerTrust, TlsServerName,
};
use upstream::pool::CertificateNames;
use wire::tls::TlsGroup;

use super::certificate_cache::CertificateCacheRules;
use super::certificates::{CertificateTemplate, ConnectionCertificates, LoadedCertificates};
use super::commands::{ConfCommand, TlsChoices};
use super::files::{self, PasswordFile};
use super::values::{CertificateFile, TlsCiphers, TlsProtocols};
use super::verification;

conf::directives! {
    in MAIN | SERVER | LOCATION;

    /// Whether TLS sessions with backends are resumed, which saves most of a handshake. Each server
    /// has sessions of its own.
    ///
    /// ```nginx
    /// proxy_ssl_session_reuse off;
    /// ```
    session_reuse: bool = "on",
    /// The versions of TLS that are spoken with backends.
    ///
    /// Differs: SSLv2, SSLv3, TLSv1 and TLSv1.1 do not exist; naming them is a warning, and naming
    /// nothing else an error.
    protocols: TlsProtocols = "TLSv1.2 TLSv1.3",
    /// The cipher suites of TLS 1.2 offered to backends, in OpenSSL's notation. The suites of TLS
    /// 1.3 are always offered.
    ///
    /// Differs: there are only suites with ephemeral elliptic-curve keys and AES-GCM or
    /// ChaCha20-Poly1305. Other names select nothing; a list that leaves nothing is an error.
    ciphers: TlsCiphers = "DEFAULT",
    /// The name that a backend's certificate must have, and that the backend is told with
    /// `proxy_ssl_server_name`. A port is removed from it.
    ///
    /// Default: the host of proxy_pass
    ///
    /// ```nginx
    /// proxy_ssl_name backend.example.com;
    /// proxy_ssl_verify on;
    /// proxy_ssl_trusted_certificate /etc/weir/backends.pem;
    /// ```
    name: Option<Template>,
    /// Whether a backend is told the name it is asked under (SNI), which servers with several names
    /// need.
    ///
    /// ```nginx
    /// proxy_ssl_server_name on;
    /// ```
    server_name: bool = "off",
    /// Whether the certificates of backends are verified. A backend without a valid one is not
    /// used; if no other is left, a request is answered with 502, and a connection of `stream` is
    /// closed.
    ///
    /// ```nginx
    /// proxy_ssl_verify on;
    /// proxy_ssl_trusted_certificate /etc/ssl/certs/ca-certificates.crt;
    /// ```
    verify: bool = "off",
    /// How many certificates may stand between a backend's and the trusted one.
    verify_depth: Number = "1",
    /// A file with the certificates that are trusted, in PEM, for `proxy_ssl_verify`.
    ///
    /// Syntax: FILE
    /// Differs: a wildcard is excluded with each name that it stands for (name constraints).
    trusted_certificate: Option<CertificateFile>,
    /// A file with lists of revoked certificates, in PEM. Each authority in a backend's chain must
    /// have one.
    ///
    /// Syntax: FILE
    crl: Option<CertificateFile>,
    /// A file with a certificate for backends that ask for one, followed by its intermediate
    /// certificates, in PEM. With variables, it is read when a connection is opened. An empty name
    /// cancels what is inherited.
    ///
    /// Syntax: FILE | data:TEXT
    /// Differs: keys of OpenSSL engines and stores are not supported.
    ///
    /// ```nginx
    /// proxy_ssl_certificate /etc/weir/client.pem;
    /// proxy_ssl_certificate_key /etc/weir/client.key;
    /// ```
    certificate: Option<CertificateTemplate>,
    /// A file with the private key of the certificate, in PEM.
    ///
    /// Syntax: FILE | data:TEXT
    /// Differs: keys of OpenSSL engines and stores are not supported.
    certificate_key: Option<CertificateTemplate>,
    /// Caches certificates and keys whose names have variables: up to `max=` files, of which those
    /// that were not used for `inactive=` (10s) make room first. After `valid=` (60s), a file that
    /// has changed is read again.
    ///
    /// Syntax: max=NUMBER [inactive=TIME] [valid=TIME]
    /// Syntax: off
    /// Default: off
    ///
    /// ```nginx
    /// proxy_ssl_certificate $ssl_server_name.crt;
    /// proxy_ssl_certificate_key $ssl_server_name.key;
    /// proxy_ssl_certificate_cache max=1000 inactive=20s valid=1m;
    /// ```
    certificate_cache: CertificateCacheRules = "off",
    /// A file with passwords for encrypted keys, one in each line. Each is tried.
    ///
    /// Syntax: FILE
    password_file: Option<PasswordFile>,
    /// A command of OpenSSL's configuration: `Ciphersuites`, `CipherString`, `Protocol`,
    /// `MinProtocol`, `MaxProtocol`, `Groups`, `Curves`, `Certificate` and `PrivateKey`. `Options
    /// -SessionTicket` turns off resumption. `Options IgnoreUnexpectedEOF` is for backends that end
    /// TLS without close_notify: a reply without a length is then taken as complete.
    ///
    /// Syntax: NAME VALUE
    /// Differs: other commands have no effect, with a warning. nginx always ignores an unexpected
    /// EOF.
    ///
    /// ```nginx
    /// proxy_ssl_conf_command Ciphersuites TLS_AES_128_GCM_SHA256;
    /// ```
    conf_command: Vec<ConfCommand>,
}

/// How TLS is spoken with the backends of a location.
#[derive(Debug)]
pub struct BackendTls {
    number: u64,
    tls: ClientTls,
    name: Option<Template>,
    needs_name: bool,
    sends_name: bool,
    /// A certificate that depends on the request.
    computed: Option<ComputedCertificate>,
    /// Settings with the sessions of one server each.
    servers: Mutex<HashMap<ServerKey, ClientTls>>,
}

/// The name of a server's group, and its address.
type ServerKey = (Box<[u8]>, Address);

/// A server to connect to.
#[derive(Clone, Copy, Debug)]
pub struct TlsServer<'a> {
    /// The name of its group. As in nginx, groups do not share sessions.
    pub group: &'a [u8],
    pub address: &'a Address,
    /// Its name, without a port.
    pub name: &'a [u8],
}

/// The templates of a certificate and its key.
#[derive(Debug)]
pub struct ComputedCertificate {
    /// Its name.
    pub certificate: Template,
    /// The name of its key.
    pub key: Template,
    loaded: Arc<LoadedCertificates>,
}

/// Servers whose sessions are remembered, at most.
const SERVERS_MAX: usize = 1024;

/// Bytes of plaintext in a record.
const RECORD_MAX: usize = 16 * 1024;

/// Groups to exchange keys with, best first. The second is offered with a key as well.
const GROUPS: [TlsGroup; 4] =
    [TlsGroup::X25519, TlsGroup::X25519MlKem768, TlsGroup::Secp256r1, TlsGroup::Secp384r1];

/// What was compiled before: locations with the same settings share sessions and connections.
#[derive(Default)]
struct CompiledBackendTls(Vec<(Arc<Conf>, Arc<BackendTls>)>);

/// The settings of one backend, compiled once for all locations that share them. `prefix` is the
/// family's.
pub fn backend_tls(
    conf: &Arc<Conf>,
    prefix: &str,
    at: Span,
    load: &mut Load<'_>,
) -> Result<Arc<BackendTls>> {
    let known = &load.registry.of::<CompiledBackendTls>().0;
    if let Some((_, tls)) = known.iter().find(|(other, _)| Arc::ptr_eq(other, conf)) {
        return Ok(tls.clone());
    }
    let tls = Arc::new(conf.compile(prefix, at, load)?);
    load.registry.of::<CompiledBackendTls>().0.push((conf.clone(), tls.clone()));
    Ok(tls)
}

impl Conf {
    fn compile(&self, prefix: &str, at: Span, load: &mut Load<'_>) -> Result<BackendTls> {
        static NUMBERS: AtomicU64 = AtomicU64::new(1);
        let (fixed, computed) = self.certificates(prefix, at, load)?;
        let choices = TlsChoices::new(self.protocols, &self.ciphers, &GROUPS, &self.conf_command);
        let of_command = choices.credential(self.password_file.as_ref(), load)?;
        let plan = ClientTlsPlan {
            trust: self.trust(prefix, at, load)?,
            credential: of_command.or(fixed),
            has_tls12: choices.protocols.has_tls12(),
            has_tls13: choices.protocols.has_tls13(),
            suites: choices.suites(),
            groups: choices.groups,
            record_max: RECORD_MAX,
            protocols: Vec::new(),
            sends_name: self.server_name,
            ignores_cut: choices.ignores_cut,
            resumes: self.session_reuse && choices.tickets.unwrap_or(true),
        };
        let tls = ClientTls::new(plan)
            .map_err(|reason| Error::at(at, format!("TLS cannot be set up: {reason}")))?;
        Ok(BackendTls {
            number: NUMBERS.fetch_add(1, Relaxed),
            tls,
            name: self.name.clone(),
            needs_name: self.server_name || self.verify,
            sends_name: self.server_name,
            computed,
            servers: Mutex::default(),
        })
    }

    fn trust(&self, prefix: &str, at: Span, load: &mut Load<'_>) -> Result<ServerTrust> {
        if !self.verify {
            return Ok(ServerTrust::Any);
        }
        let Some(trusted) = &self.trusted_certificate else {
            let message = format!("no {prefix}trusted_certificate for {prefix}verify");
            return Err(Error::at(at, message));
        };
        let certificates = verification::certificates(trusted, load)?;
        let crl = self.crl.as_ref();
        let revoked = crl.map(|file| verification::revocations(file, load)).transpose()?.flatten();
        let depth_max = usize::try_from(self.verify_depth.0).unwrap_or(usize::MAX);
        Ok(ServerTrust::Chain(ChainRules { trusted: certificates, revoked, depth_max }))
    }

    /// The certificate, read now or with the request.
    fn certificates(
        &self,
        prefix: &str,
        at: Span,
        load: &mut Load<'_>,
    ) -> Result<(Option<Credential>, Option<ComputedCertificate>)> {
        let Some(certificate) = self.certificate.as_ref().filter(|one| !one.is_empty()) else {
            return Ok((None, None));
        };
        let Some(key) = &self.certificate_key else {
            let message = format!(
                "no \"{prefix}certificate_key\" is defined for certificate \"{}\"",
                certificate.file.from.arg(0)
            );
            return Err(Error::at(at, message));
        };
        if certificate.is_fixed() && key.is_fixed() {
            let passwords = self.password_file.as_ref();
            let read = files::credential(&certificate.file, &key.file, passwords, load)?;
            return Ok((read, None));
        }
        let (folder, passwords) = (load.conf_path(b""), self.password_file.clone());
        let loaded = LoadedCertificates::new(self.certificate_cache.clone(), passwords, folder);
        let (certificate, key) = (certificate.template.clone(), key.template.clone());
        Ok((None, Some(ComputedCertificate { certificate, key, loaded: Arc::new(loaded) })))
    }
}

impl BackendTls {
    /// Differs from settings to settings.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The template of the server's name; `None`: that of its group.
    pub fn name(&self) -> Option<&Template> {
        self.name.as_ref()
    }

    /// Whether it matters what the server is called.
    pub fn needs_name(&self) -> bool {
        self.needs_name
    }

    /// The certificate that depends on the request.
    pub fn computed(&self) -> Option<&ComputedCertificate> {
        self.computed.as_ref()
    }

    /// How the connection to a server becomes a secure one. `protocols` are
    /// those it is offered (ALPN). `None`: such a name cannot be sent.
    pub fn transport(
        &self,
        server: TlsServer<'_>,
        credential: Option<Credential>,
        protocols: &[Box<[u8]>],
    ) -> Option<Arc<dyn Transport>> {
        let name = match self.needs_name && !server.name.is_empty() {
            true => server_name(server.name).or_else(|| {
                // One that only a certificate could have: it has not.
                (!self.sends_name).then(TlsServerName::none)
            })?,
            false => TlsServerName::none(),
        };
        let tls = self.of_server(server);
        let tls = match credential {
            Some(credential) => tls.with_credential(credential),
            None => tls,
        };
        let tls = if protocols.is_empty() { tls } else { tls.offering(protocols) };
        Some(Arc::new(ClientTransport { tls, name }))
    }

    /// The settings with the sessions of one server.
    fn of_server(&self, server: TlsServer<'_>) -> ClientTls {
        let key = (server.group.into(), server.address.clone());
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tls) = servers.get(&key) {
            return tls.clone();
        }
        if servers.len() >= SERVERS_MAX {
            servers.clear();
        }
        let tls = self.tls.with_own_sessions();
        servers.insert(key, tls.clone());
        tls
    }
}

impl ComputedCertificate {
    /// The certificate and key with these names.
    pub(crate) fn named(&self, names: &CertificateNames) -> ConnectionCertificates {
        let pair = (names.certificate.to_vec(), names.key.to_vec());
        ConnectionCertificates { names: vec![pair], loaded: self.loaded.clone() }
    }
}

/// A name without its port, as nginx cuts it.
pub fn without_port(name: &[u8]) -> &[u8] {
    let start = match name.first() {
        Some(b'[') => name.iter().position(|byte| *byte == b']').unwrap_or(0),
        _ => 0,
    };
    let colon = name[start..].iter().position(|byte| *byte == b':');
    colon.map_or(name, |colon| &name[..start + colon])
}

fn server_name(name: &[u8]) -> Option<TlsServerName> {
    let name = std::str::from_utf8(name).ok()?;
    TlsServerName::parse(name.trim_start_matches('[').trim_end_matches(']'))
}
