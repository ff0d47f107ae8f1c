//! Challenges and their answers (RFC 8555, section 8; RFC 8737; RFC 8738).

use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;
use core::net::IpAddr;

use super::jws::{AcmeCrypto, base64url};
use crate::dns::DomainName;
use crate::x509::SubjectName;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChallengeKind {
    Http01,
    TlsAlpn01,
    Dns01,
}

/// An answer that the server has to find.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcmeChallenge {
    /// The name to be proved, without `*.`.
    pub name: SubjectName,
    pub answer: ChallengeAnswer,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChallengeAnswer {
    /// The body of `http://NAME/.well-known/acme-challenge/TOKEN`. The token has only the digits of
    /// base64url.
    Http01 { token: String, key_authorization: String },
    /// A self-signed certificate with this digest, for handshakes with this server name and the
    /// protocol `acme-tls/1`: [`SelfSigned::acme_digest`](crate::x509::SelfSigned::acme_digest).
    TlsAlpn01 { server_name: String, digest: [u8; 32] },
    /// A TXT record. Other records of the same name stay: an order for a domain and all its hosts
    /// needs two.
    Dns01 { record: String, value: String },
}

impl ChallengeKind {
    pub const ALL: [Self; 3] = [Self::Http01, Self::TlsAlpn01, Self::Dns01];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Http01 => "http-01",
            Self::TlsAlpn01 => "tls-alpn-01",
            Self::Dns01 => "dns-01",
        }
    }

    /// The kind of this name.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

impl ChallengeAnswer {
    pub const fn kind(&self) -> ChallengeKind {
        match self {
            Self::Http01 { .. } => ChallengeKind::Http01,
            Self::TlsAlpn01 { .. } => ChallengeKind::TlsAlpn01,
            Self::Dns01 { .. } => ChallengeKind::Dns01,
        }
    }
}

impl AcmeChallenge {
    pub(super) fn new(
        kind: ChallengeKind,
        name: SubjectName,
        token: &str,
        thumbprint: &str,
        crypto: &dyn AcmeCrypto,
    ) -> Self {
        let key_authorization = format!("{token}.{thumbprint}");
        let digest = || crypto.sha256(key_authorization.as_bytes());
        let answer = match kind {
            ChallengeKind::Http01 => {
                ChallengeAnswer::Http01 { token: token.into(), key_authorization }
            }
            ChallengeKind::TlsAlpn01 => {
                ChallengeAnswer::TlsAlpn01 { server_name: server_name(&name), digest: digest() }
            }
            ChallengeKind::Dns01 => ChallengeAnswer::Dns01 {
                record: format!("_acme-challenge.{name}"),
                value: base64url(&digest()),
            },
        };
        Self { name, answer }
    }
}

/// The server name of the handshake; an address has the name of its PTR record (RFC 8738,
/// section 6).
fn server_name(name: &SubjectName) -> String {
    match name {
        SubjectName::Dns(host) => host.clone(),
        SubjectName::Ip(address) => reverse(*address),
    }
}

fn reverse(address: IpAddr) -> String {
    DomainName::reverse(address).to_string()
}

impl fmt::Display for ChallengeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
