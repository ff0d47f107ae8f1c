//! Certificates that the server obtains by itself (`acme`).

use std::sync::Arc;

use ::acme::{AcmeVariables, HasCertificateSlot, ServerNameText};
pub use ::acme::{Conf, Layer};
use ::session::variables::VariableTable;
use ::tls::CertificateSlot;
use conf::{Load, Result};

use super::{Layers, resolver};
use crate::session::StreamSession;
use crate::site::ServerBuilder;

pub(crate) const VARIABLES: VariableTable<StreamSession> =
    VariableTable::new("ngx_stream_acme_module", AcmeVariables::<StreamSession>::TABLE);

impl HasCertificateSlot for StreamSession {
    fn certificate_slot(&self) -> Option<&CertificateSlot> {
        self.server().tls.slot.as_deref()
    }
}

/// Completes the issuers, after the whole configuration was read. `main` are the settings of
/// `stream {}`.
pub(crate) fn build(main: &Layers, load: &mut Load<'_>) -> Result<()> {
    let names = resolver::policy_of_main(main, load);
    ::acme::build_issuers(&names, load)
}

/// Sets the slot of a server with `acme_certificate`.
pub fn install(conf: &Arc<Conf>, place: &mut ServerBuilder<'_, '_>) -> Result<()> {
    let Some(line) = conf.line() else { return Ok(()) };
    let names = place.names.clone();
    let texts = names
        .iter()
        .map(|name| ServerNameText { text: &name.text, is_pattern: name.pattern.is_some() });
    place.server.tls.slot = Some(line.slot(texts, place.load)?);
    Ok(())
}
