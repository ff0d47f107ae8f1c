//! What the settings of a server come to.

use std::io;

use std::sync::Arc;

use ::upstream::ResolverPolicy;
use conf::{Error, Load, Result, Template, Values};
use net::SecureSession;
use net::tls::{
    Credential, ResumptionPlan, RotatingTicketKeys, ServerTls, ServerTlsPlan, TicketKeys,
};
use session::status::{ShownCertificate, StatusBook};
use wire::client_hello::ClientHello;
use wire::x509::X509;

use super::certificates::{CertificateTemplate, ConnectionCertificates, LoadedCertificates};
use super::commands::TlsChoices;
use super::ocsp_checks::OcspChecks;
use super::on_demand::OnDemandCertificates;
use super::slot::CertificateSlot;
use super::values::CertificateFile;
use super::{Conf, files, sessions};

/// What a subsystem adds to the settings.
pub struct ServerTlsParts {
    /// Bytes of plaintext in a record, at most.
    pub record_max: usize,
    /// Application protocols (ALPN), best first.
    pub protocols: Vec<Box<[u8]>>,
    /// What makes the server different from others.
    pub identity: Vec<Box<[u8]>>,
    /// Bytes of early data, at most; 0: none.
    pub early_data_max: u32,
    /// How the hosts of OCSP responders are looked up.
    pub names: ResolverPolicy,
    /// What `$acme_certificate` stands for in the server.
    pub slot: Option<Arc<CertificateSlot>>,
}

#[derive(Debug)]
pub struct ServerTlsSetup {
    tls: ServerTls,
    computed: Option<ComputedCertificates>,
    /// Where the certificate of each session is taken from.
    slot: Option<Arc<CertificateSlot>>,
    /// Certificates for names that clients tell. They come before all others.
    on_demand: Option<Arc<dyn OnDemandCertificates>>,
    ocsp_checks: Option<Arc<OcspChecks>>,
}

/// Certificates whose names have variables.
#[derive(Debug)]
struct ComputedCertificates {
    /// The names of certificates and their keys.
    pairs: Vec<(Template, Template)>,
    loaded: Arc<LoadedCertificates>,
}

impl ServerTlsSetup {
    /// Whether the server's certificates depend on the connection: then each session needs those
    /// of [`certificates`](Self::certificates).
    pub fn has_computed_certificates(&self) -> bool {
        self.computed.is_some()
    }

    /// The certificates of one connection, whose variables these are; `None`: they are the same for
    /// all connections.
    pub fn certificates(&self, values: &mut impl Values) -> Option<ConnectionCertificates> {
        let ComputedCertificates { pairs, loaded } = self.computed.as_ref()?;
        let name = |(chain, key): &(Template, Template)| {
            let (mut chain_name, mut key_name) = (Vec::new(), Vec::new());
            chain.render(values, &mut chain_name);
            key.render(values, &mut key_name);
            (chain_name, key_name)
        };
        let names = pairs.iter().map(name).collect();
        Some(ConnectionCertificates { names, loaded: loaded.clone() })
    }

    /// Whether certificates are obtained for names that clients tell: then each session may need
    /// the one of [`demanded`](Self::demanded).
    pub fn has_on_demand(&self) -> bool {
        self.on_demand.is_some()
    }

    /// The certificate for the name that a client has told. It may be waited for. `None`: the
    /// session shows what it would show without a name.
    pub async fn demanded(&self, hello: Option<&ClientHello<'_>>) -> Option<Vec<Credential>> {
        let on_demand = self.on_demand.as_ref()?;
        let name = hello?.server_name?;
        let credential = match on_demand.known(name) {
            Some(credential) => credential,
            None => on_demand.clone().demand(name.into()).await?,
        };
        Some(vec![credential])
    }

    /// What to ask about clients' certificates after the handshake, if anything.
    pub fn ocsp_checks(&self) -> Option<&Arc<OcspChecks>> {
        self.ocsp_checks.as_ref()
    }

    /// See [`ServerTls::session`].
    pub fn session(
        &self,
        hello: Option<&ClientHello<'_>>,
        has_h2: bool,
        received: &[u8],
        certificates: Option<Vec<Credential>>,
    ) -> io::Result<Box<dyn SecureSession>> {
        let shown = || self.slot.as_ref()?.credential().map(|credential| vec![credential]);
        let certificates = certificates.or_else(shown);
        self.tls.session(hello, has_h2, received, certificates)
    }
}

/// The variables that stand for the slot of a server.
const SLOT_CHAIN: &[u8] = b"$acme_certificate";
const SLOT_KEY: &[u8] = b"$acme_certificate_key";

/// Shows a certificate on pages about the server.
fn show(credential: &Credential, file: &CertificateFile, load: &mut Load<'_>) {
    let Some(leaf) = credential.chain().next().and_then(|der| X509::parse(der).ok()) else {
        return;
    };
    let name: &[u8] = if file.text.starts_with(b"data:") { b"data:..." } else { &file.text };
    load.own.of::<StatusBook>().add_certificate(ShownCertificate {
        file: name.into(),
        names: leaf.host_names().map(Into::into).collect(),
        not_after_s: leaf.not_after.seconds(),
    });
}

impl Conf {
    /// Whether clients that reach the server are turned away.
    pub fn rejects_handshakes(&self) -> bool {
        self.reject_handshake
    }

    /// How TLS is spoken; `None`: without a certificate it is not.
    pub fn server_tls(
        &self,
        mut parts: ServerTlsParts,
        load: &mut Load<'_>,
    ) -> Result<Option<ServerTlsSetup>> {
        let slot = parts.slot.take();
        let on_demand = slot.as_ref().and_then(|slot| slot.on_demand().cloned());
        let slot = slot.filter(|_| self.shows_slot());
        if slot.is_none() && self.certificate.is_empty() {
            return Ok(None);
        }
        self.check_keys()?;
        let computed = match slot {
            Some(_) => None,
            None => self.computed_certificates(load),
        };
        let mut credentials = match (&computed, &slot) {
            (None, None) => self.fixed_certificates(&parts.names, load)?,
            _ => Vec::new(),
        };
        let groups = &self.ecdh_curve.0;
        let choices = TlsChoices::new(self.protocols, &self.ciphers, groups, &self.conf_command);
        if let Some(credential) = choices.credential(self.password_file.as_ref(), load)? {
            credentials.push(credential);
        }
        let clients = self.client_verification(true, load)?.and_then(|one| one.trust);
        if let Some(trust) = &clients {
            // A session is not resumed where other clients are admitted.
            parts.identity.push(trust.digest().into());
        }
        let ocsp_checks = match &clients {
            Some(trust) => self.ocsp_checks(trust.clone(), parts.names.clone(), load)?,
            None => None,
        };
        let ocsp_checks = ocsp_checks.map(Arc::new);
        let resumption = self.resumption(&parts, choices.tickets, load)?;
        let plan = ServerTlsPlan {
            resumption,
            credentials,
            has_tls12: choices.protocols.has_tls12(),
            has_tls13: choices.protocols.has_tls13(),
            suites: choices.suites(),
            groups: choices.groups,
            prefers_own_suites: choices.server_preference.unwrap_or(self.prefer_server_ciphers),
            record_max: parts.record_max,
            protocols: parts.protocols,
            early_data_max: parts.early_data_max,
            clients,
            compresses_certificates: self.certificate_compression,
        };
        match ServerTls::new(plan) {
            Ok(tls) => Ok(Some(ServerTlsSetup { tls, computed, slot, on_demand, ocsp_checks })),
            Err(reason) => {
                let message = format!("TLS cannot be set up: {reason}");
                Err(match self.certificate.first() {
                    Some(first) => first.file.from.error(message),
                    None => Error::bare(message),
                })
            }
        }
    }

    /// Whether the server's only certificate is the slot's: named as nginx-acme names it, or not
    /// at all.
    fn shows_slot(&self) -> bool {
        let is = |line: &CertificateTemplate, name: &[u8]| *line.file.text == *name;
        match (&self.certificate[..], &self.certificate_key[..]) {
            ([], _) => true,
            ([chain], [key, ..]) => is(chain, SLOT_CHAIN) && is(key, SLOT_KEY),
            _ => false,
        }
    }

    /// Each certificate needs a key.
    fn check_keys(&self) -> Result<()> {
        match (self.certificate.get(self.certificate_key.len()), self.certificate.last()) {
            (Some(without), Some(last)) => {
                let name = last.file.from.arg(0);
                let message =
                    format!("no \"ssl_certificate_key\" is defined for certificate \"{name}\"");
                Err(without.file.from.error(message))
            }
            _ => Ok(()),
        }
    }

    fn fixed_certificates(
        &self,
        names: &ResolverPolicy,
        load: &mut Load<'_>,
    ) -> Result<Vec<Credential>> {
        let passwords = self.password_file.as_ref();
        let mut credentials = Vec::new();
        for (chain, key) in self.certificate.iter().zip(&self.certificate_key) {
            if let Some(one) = files::credential(&chain.file, &key.file, passwords, load)? {
                show(&one, &chain.file, load);
                credentials.push(self.stapled(one, &chain.file, names, load)?);
            }
        }
        Ok(credentials)
    }

    /// As in nginx, one name with variables makes all of them read for each connection.
    fn computed_certificates(&self, load: &Load<'_>) -> Option<ComputedCertificates> {
        let mut names = self.certificate.iter().chain(&self.certificate_key);
        if names.all(CertificateTemplate::is_fixed) {
            return None;
        }
        let pairs = self.certificate.iter().zip(&self.certificate_key);
        let pairs = pairs.map(|(chain, key)| (chain.template.clone(), key.template.clone()));
        let (folder, passwords) = (load.conf_path(b""), self.password_file.clone());
        let rules = self.certificate_cache.clone();
        let loaded = Arc::new(LoadedCertificates::new(rules, passwords, folder));
        Some(ComputedCertificates { pairs: pairs.collect(), loaded })
    }

    fn resumption(
        &self,
        parts: &ServerTlsParts,
        tickets: Option<bool>,
        load: &mut Load<'_>,
    ) -> Result<ResumptionPlan> {
        let keys: Vec<_> =
            self.session_ticket_key.iter().filter_map(|file| file.0.clone()).collect();
        let ticket_keys = match keys.is_empty() {
            true => TicketKeys::Rotating(RotatingTicketKeys::of_process().clone()),
            false => TicketKeys::Fixed(keys),
        };
        let mut cache = self.session_cache.open(load)?;
        if parts.early_data_max > 0 {
            cache = cache.or_else(|| Some(sessions::early_data_cache(load)));
        }
        Ok(ResumptionPlan {
            identity: parts.identity.clone(),
            lifetime_s: self.session_timeout.0,
            ticket_keys: tickets.unwrap_or(self.session_tickets).then_some(ticket_keys),
            cache,
        })
    }
}
