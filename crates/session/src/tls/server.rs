//! What the settings of a server come to.

use conf::{Load, Result};
use net::tls::{ResumptionPlan, RotatingTicketKeys, ServerTls, ServerTlsPlan, TicketKeys};

use super::commands::TlsChoices;
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
            credentials.push(files::credential(
                certificate,
                key,
                self.password_file.as_ref(),
                load,
            )?);
        }
        let groups = &self.ecdh_curve.0;
        let choices = TlsChoices::new(self.protocols, &self.ciphers, groups, &self.conf_command);
        if let Some(credential) = choices.credential(self.password_file.as_ref(), load)? {
            credentials.push(credential);
        }
        let resumption = self.resumption(&parts, choices.tickets, load)?;
        let plan = ServerTlsPlan {
            resumption,
            credentials,
            has_tls12: choices.protocols.has_tls12,
            has_tls13: choices.protocols.has_tls13,
            suites: choices.suites(),
            groups: choices.groups,
            prefers_own_suites: choices.server_preference.unwrap_or(self.prefer_server_ciphers),
            record_max: parts.record_max,
            protocols: parts.protocols,
            early_data_max: parts.early_data_max,
            compresses_certificates: self.certificate_compression,
        };
        match ServerTls::new(plan) {
            Ok(tls) => Ok(Some(tls)),
            Err(reason) => Err(first.from.error(format!("TLS cannot be set up: {reason}"))),
        }
    }

    fn resumption(
        &self,
        parts: &ServerTlsParts,
        tickets: Option<bool>,
        load: &mut Load<'_>,
    ) -> Result<ResumptionPlan> {
        let files = &self.session_ticket_key;
        let ticket_keys = match files.is_empty() {
            true => TicketKeys::Rotating(RotatingTicketKeys::of_process().clone()),
            false => TicketKeys::Fixed(files.iter().map(|file| file.0.clone()).collect()),
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
