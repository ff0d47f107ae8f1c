//! `ssl_ocsp`: whether certificates of clients were revoked, by the word of their issuers'
//! responders.
//!
//! As in nginx, responders are asked once for each connection, after the handshake and before the
//! first request. The certificate keeps the answer (`ClientCertificate::set_ocsp`).

use std::fmt;
use std::sync::Arc;

use ::upstream::ResolverPolicy;
use conf::{Load, Result, Text as TextValue};
use net::clock;
use net::tls::{ClientTrust, OcspQuestion, OcspRefusal, OcspStatus, TlsDetails};
use observe::Text;

use super::Conf;
use super::ocsp_cache::{OcspCache, OcspCacheKey};
use super::ocsp_responder::OcspResponderUrl;
use super::values::{OcspMode, VerifyClient};

/// Asks responders about the certificates of a server's clients.
pub struct OcspChecks {
    leaf_only: bool,
    /// `None`: the one that a certificate names.
    responder: Option<OcspResponderUrl>,
    cache: Option<Arc<OcspCache>>,
    trust: Arc<ClientTrust>,
    names: ResolverPolicy,
}

impl Conf {
    /// The checks of a server that verifies clients by `trust`; `None`: there are none.
    pub(super) fn ocsp_checks(
        &self,
        trust: Arc<ClientTrust>,
        names: ResolverPolicy,
        load: &mut Load<'_>,
    ) -> Result<Option<OcspChecks>> {
        if self.ocsp == OcspMode::Off {
            return Ok(None);
        }
        if self.verify_client.mode == VerifyClient::OptionalNoCa {
            let message = "\"ssl_ocsp\" is incompatible with \"ssl_verify_client optional_no_ca\"";
            return Err(conf::Error::bare(message));
        }
        let url = self.ocsp_responder.as_ref().filter(|url| !url.0.is_empty());
        Ok(Some(OcspChecks {
            leaf_only: self.ocsp == OcspMode::Leaf,
            responder: url.map(responder).transpose()?,
            cache: self.ocsp_cache.open(load)?,
            trust,
            names,
        }))
    }
}

fn responder(url: &TextValue) -> Result<OcspResponderUrl> {
    OcspResponderUrl::read(&url.0).map_err(|reason| {
        let url = Text(&url.0);
        let message = format!("{reason} in OCSP responder \"{url}\" in \"ssl_ocsp_responder\"");
        conf::Error::bare(message)
    })
}

impl OcspChecks {
    /// Finds out whether responders call the certificates of a client good, if it has shown any
    /// that the server trusts. The error is a line for the log.
    pub async fn check(&self, tls: &TlsDetails) -> std::result::Result<(), String> {
        let Some(shown) = &tls.client_certificate else { return Ok(()) };
        let Some(questions) = shown.ocsp_questions(&self.trust, self.leaf_only) else {
            shown.set_ocsp(Err(OcspRefusal::Failed));
            return Ok(());
        };
        for question in questions {
            let status = self.status(&question).await;
            let refusal = match &status {
                Ok(status) => OcspRefusal::of(*status),
                Err(_) => Some(OcspRefusal::Failed),
            };
            if let Some(refusal) = refusal {
                shown.set_ocsp(Err(refusal));
                return status.map(drop);
            }
        }
        shown.set_ocsp(Ok(()));
        Ok(())
    }

    async fn status(&self, question: &OcspQuestion) -> std::result::Result<OcspStatus, String> {
        let in_certificate;
        let responder = match &self.responder {
            Some(responder) => responder,
            None => {
                in_certificate = named_responder(question)?;
                &in_certificate
            }
        };
        let cache = match &self.cache {
            Some(cache) => {
                let key = OcspCacheKey::of(question.certificate_id());
                Some((cache, key.ok_or("the serial number of the certificate is too long")?))
            }
            None => None,
        };
        if let Some((cache, key)) = &cache
            && let Some(status) = cache.status(key, now_seconds())
        {
            return Ok(status);
        }
        let fetched = responder.fetch(&question.request(), &self.names).await;
        let now = now_seconds();
        let verdict = fetched
            .map_err(|failure| failure.to_string())
            .and_then(|response| question.judge(&response, now).map_err(|fault| fault.to_string()));
        let verdict =
            verdict.map_err(|reason| format!("{reason}, responder: {}", Text(&responder.host)))?;
        if let Some((cache, key)) = cache {
            cache.store(key, verdict, now);
        }
        Ok(verdict.status)
    }
}

/// The responder that a certificate names.
fn named_responder(question: &OcspQuestion) -> std::result::Result<OcspResponderUrl, String> {
    let url = question.responder().ok_or("no OCSP responder URL in certificate")?;
    OcspResponderUrl::parse(url)
        .map_err(|reason| format!("{reason} in OCSP responder \"{}\" in certificate", Text(url)))
}

pub(super) fn now_seconds() -> i64 {
    i64::try_from(clock::unix_ms() / 1000).unwrap_or(i64::MAX)
}

impl fmt::Debug for OcspChecks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OcspChecks").field("leaf_only", &self.leaf_only).finish_non_exhaustive()
    }
}
