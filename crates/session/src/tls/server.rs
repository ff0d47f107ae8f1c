//! What the settings of a server come to.

use conf::{Load, Result};
use net::tls::{ServerTls, ServerTlsPlan};
use wire::tls::TlsSuite;

use super::{Conf, files};

/// What a subsystem adds to the settings.
pub struct ServerTlsParts {
    /// Bytes of plaintext in a record, at most.
    pub record_max: usize,
    /// Application protocols (ALPN), best first.
    pub protocols: Vec<Box<[u8]>>,
}

impl Conf {
    /// Whether clients that reach the server are turned away.
    pub fn rejects_handshakes(&self) -> bool {
        self.reject_handshake
    }

    /// Whether it has certificates.
    pub fn has_certificates(&self) -> bool {
        !self.certificate.is_empty()
    }

    /// How TLS is spoken; `None`: without a certificate it is not.
    pub fn server_tls(
        &self,
        parts: ServerTlsParts,
        load: &mut Load<'_>,
    ) -> Result<Option<ServerTls>> {
        let Some(first) = self.certificate.first() else { return Ok(None) };
        let mut credentials = Vec::new();
        for (index, certificate) in self.certificate.iter().enumerate() {
            let Some(key) = self.certificate_key.get(index) else {
                let name = self
                    .certificate
                    .last()
                    .map_or(certificate.from.arg(0), |certificate| certificate.from.arg(0));
                let message =
                    format!("no \"ssl_certificate_key\" is defined for certificate \"{name}\"");
                return Err(certificate.from.error(message));
            };
            credentials.push(files::credential(certificate, key, load)?);
        }
        let plan = ServerTlsPlan {
            credentials,
            has_tls12: self.protocols.has_tls12,
            has_tls13: self.protocols.has_tls13,
            suites: [&TlsSuite::TLS13[..], &self.ciphers.0].concat(),
            groups: self.ecdh_curve.0.clone(),
            prefers_own_suites: self.prefer_server_ciphers,
            record_max: parts.record_max,
            protocols: parts.protocols,
        };
        match ServerTls::new(plan) {
            Ok(tls) => Ok(Some(tls)),
            Err(reason) => Err(first.from.error(format!("TLS cannot be set up: {reason}"))),
        }
    }
}
