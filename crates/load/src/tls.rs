//! The options of TLS, and a description of the negotiated session.

use net::tls::{
    ClientTls, ClientTlsPlan, ClientTransport, Credential, CredentialError, ServerTrust,
    TlsDetails, TlsServerName, TrustedRoots,
};
use wire::tls::{CipherList, GroupList, TlsGroup, TlsSuite, parse_tls13_suites};

use crate::target::{LoadTarget, TargetScheme};

/// The most bytes of plaintext in a record.
const RECORD_MAX: usize = 1 << 14;

/// The groups that are offered by default. The key share is for the first group, which all servers
/// support; post-quantum groups have to be requested.
const GROUPS: [TlsGroup; 3] = [TlsGroup::X25519, TlsGroup::Secp256r1, TlsGroup::Secp384r1];

const HTTP_1_1: &[u8] = b"http/1.1";
const HTTP_2: &[u8] = b"h2";

/// Options of TLS, as they were given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TlsOptions {
    version: Option<TlsVersion>,
    suites_1_2: Option<Vec<TlsSuite>>,
    suites_1_3: Option<Vec<TlsSuite>>,
    groups: Option<Vec<TlsGroup>>,
    protocols: Option<Vec<Box<[u8]>>>,
    server_name: Option<String>,
    authorities: Option<String>,
    certificate: Option<String>,
    key: Option<String>,
    resumes: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TlsVersion {
    Tls12,
    Tls13,
}

impl TlsOptions {
    pub(crate) fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "tls" => {
                self.version = Some(match value {
                    "1.2" => TlsVersion::Tls12,
                    "1.3" => TlsVersion::Tls13,
                    other => return Err(format!("\"{other}\" is neither 1.2 nor 1.3")),
                });
            }
            "ciphers" => self.set_ciphers(value)?,
            "groups" => self.groups = Some(groups(value)?),
            "alpn" => {
                self.protocols =
                    Some(value.split(',').map(|one| one.trim().as_bytes().into()).collect())
            }
            "sni" => self.server_name = Some(value.to_owned()),
            "cacert" => self.authorities = Some(value.to_owned()),
            "cert" => self.certificate = Some(value.to_owned()),
            "key" => self.key = Some(value.to_owned()),
            "resume" => self.resumes = true,
            other => unreachable!("{other} is in the table"),
        }
        Ok(())
    }

    /// Names of TLS 1.3 begin with `TLS_`; the others are a cipher string of TLS 1.2.
    fn set_ciphers(&mut self, text: &str) -> Result<(), String> {
        let (of_1_3, of_1_2): (Vec<_>, Vec<_>) =
            text.split(':').partition(|name| name.starts_with("TLS_"));
        if !of_1_3.is_empty() {
            let suites = parse_tls13_suites(of_1_3.join(":").as_bytes());
            if suites.len() < of_1_3.len() {
                let known = TlsSuite::TLS13.map(TlsSuite::name).join(", ");
                return Err(format!("an unknown name; TLS 1.3 has {known}"));
            }
            self.suites_1_3 = Some(suites);
        }
        if !of_1_2.is_empty() {
            let list = CipherList::parse(of_1_2.join(":").as_bytes());
            self.suites_1_2 = Some(list.map_err(|error| error.to_string())?.suites);
        }
        Ok(())
    }

    /// The transport of connections to a server; `None` without TLS.
    pub(crate) fn transport(
        &self,
        target: &LoadTarget,
        is_http2: bool,
    ) -> Result<Option<ClientTransport>, String> {
        if target.scheme != TargetScheme::Https {
            return Ok(None);
        }
        let name = self.server_name.as_ref().unwrap_or(&target.host);
        let name = TlsServerName::parse(name)
            .ok_or_else(|| format!("\"{name}\" is not a valid server name"))?;
        Ok(Some(ClientTransport { tls: ClientTls::new(self.plan(is_http2)?)?, name }))
    }

    fn plan(&self, is_http2: bool) -> Result<ClientTlsPlan, String> {
        // Cipher suites of only one version exclude the other.
        let has_tls12 = match self.version {
            Some(version) => version == TlsVersion::Tls12,
            None => self.suites_1_2.is_some() || self.suites_1_3.is_none(),
        };
        let has_tls13 = match self.version {
            Some(version) => version == TlsVersion::Tls13,
            None => self.suites_1_3.is_some() || self.suites_1_2.is_none(),
        };
        let suites_1_3 = self.suites_1_3.clone().unwrap_or_else(|| TlsSuite::TLS13.into());
        let suites_1_2 = self.suites_1_2.clone().unwrap_or_else(|| TlsSuite::TLS12.into());
        Ok(ClientTlsPlan {
            trust: self.trust()?,
            credential: self.credential()?,
            has_tls12,
            has_tls13,
            suites: suites_1_3.into_iter().chain(suites_1_2).collect(),
            groups: self.groups.clone().unwrap_or_else(|| GROUPS.into()),
            record_max: RECORD_MAX,
            protocols: match &self.protocols {
                Some(protocols) => protocols.clone(),
                None => vec![if is_http2 { HTTP_2 } else { HTTP_1_1 }.into()],
            },
            sends_name: true,
            ignores_cut: false,
            resumes: self.resumes,
        })
    }

    fn trust(&self) -> Result<ServerTrust, String> {
        let Some(path) = &self.authorities else { return Ok(ServerTrust::Any) };
        let roots = TrustedRoots::read(&read(path)?);
        Ok(ServerTrust::Roots(roots.map_err(|error| format!("--cacert {path}: {error}"))?))
    }

    fn credential(&self) -> Result<Option<Credential>, String> {
        let Some(certificate) = &self.certificate else {
            return match self.key {
                Some(_) => Err("--key requires --cert".into()),
                None => Ok(None),
            };
        };
        let key = self.key.as_ref().unwrap_or(certificate);
        let credential = Credential::read(&read(certificate)?, &read(key)?, &[]);
        credential.map(Some).map_err(|error| match error {
            CredentialError::Certificate(error) => format!("--cert {certificate}: {error}"),
            CredentialError::Key(error) => format!("--key {key}: {error}"),
        })
    }
}

fn groups(text: &str) -> Result<Vec<TlsGroup>, String> {
    match GroupList::parse(text.as_bytes()) {
        Ok(GroupList::Auto) => Ok(GROUPS.into()),
        Ok(GroupList::Groups { groups, .. }) => Ok(groups),
        Err(error) => Err(error.to_string()),
    }
}

fn read(path: &str) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| format!("{path}: {error}"))
}

/// Version, cipher suite, group and application protocol, for people.
pub(crate) fn agreed(details: &TlsDetails) -> String {
    let (mut cipher, mut group) = (Vec::new(), Vec::new());
    details.write_cipher(&mut cipher);
    details.write_group(&mut group);
    let protocol = details.protocol.as_deref().unwrap_or_default();
    let parts = [details.version.as_bytes(), &cipher, &group, protocol];
    let parts = parts.into_iter().filter(|part| !part.is_empty()).map(String::from_utf8_lossy);
    parts.collect::<Vec<_>>().join(", ")
}
