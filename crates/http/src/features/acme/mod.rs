//! Certificates that the server obtains by itself (`acme`), and the answers to http-01.
//!
//! A challenge is answered before the rules of the site: a redirect to HTTPS does not disturb it. A
//! token that nobody has published is not ours, and takes the way of every request: another ACME
//! client may serve its challenges from a folder.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use ::acme::{AcmeVariables, HasCertificateSlot, PublishedChallenges, ServerNameText};
pub use ::acme::{Conf, Layer};
use ::tls::CertificateSlot;
use conf::{Load, Result};
use net::LentFuture;
use wire::Method;

use super::{Layers, resolver};
use crate::exchange::{Exchange, Flow};
use crate::site::{LocationBuilder, ServerName};
use crate::status_page;
use crate::variables::VariableTable;

/// Where http-01 looks for the answer (RFC 8555, section 8.3).
const PATH: &[u8] = b"/.well-known/acme-challenge/";

pub(crate) const VARIABLES: VariableTable =
    VariableTable::new("ngx_http_acme_module", AcmeVariables::<Exchange>::TABLE);

impl HasCertificateSlot for Exchange {
    fn certificate_slot(&self) -> Option<&CertificateSlot> {
        self.server().tls.slot.as_deref()
    }
}

/// Completes the issuers, after the whole configuration was read. `main` are the settings of
/// `http {}`.
pub(crate) fn build(main: &Layers, load: &mut Load<'_>) -> Result<()> {
    let names = resolver::policy_of_main(main, load);
    ::acme::build_issuers(&names, load)
}

/// The slot of a server with `acme_certificate`.
pub(crate) fn slot(
    conf: &Conf,
    names: &[ServerName],
    load: &mut Load<'_>,
) -> Result<Option<Arc<CertificateSlot>>> {
    let Some(line) = conf.line() else { return Ok(None) };
    let texts = names
        .iter()
        .map(|name| ServerNameText { text: &name.text, is_pattern: name.pattern.is_some() });
    line.slot(texts, load).map(Some)
}

pub fn install(_: &Arc<Conf>, location: &mut LocationBuilder<'_, '_>) -> Result<()> {
    if ::acme::answers_http(location.load) {
        location.postread(answer);
    }
    Ok(())
}

fn answer(x: &mut Exchange) -> Flow {
    let Some(token) = x.request.uri.strip_prefix(PATH) else { return Flow::Next };
    let may_ask = matches!(x.request.head.method, Method::Get | Method::Head);
    if !may_ask || !::acme::is_token(token) {
        return Flow::Next;
    }
    let token = String::from_utf8_lossy(token).into_owned();
    match PublishedChallenges::of_process().http_answer(&token) {
        Some(authorization) => reply(x, authorization),
        None => Flow::wait(|x| LentFuture::new(answer_stored(x, token))),
    }
}

/// The token may be another process's.
async fn answer_stored(x: &mut Exchange, token: String) -> Flow {
    let read = move || PublishedChallenges::of_process().stored_http_answer(&token);
    match net::offload(read).await {
        Some(authorization) => reply(x, authorization),
        None => Flow::Next,
    }
}

fn reply(x: &mut Exchange, authorization: String) -> Flow {
    status_page::text(x, 200, b"text/plain", authorization.into_bytes())
}
