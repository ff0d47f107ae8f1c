//! Certificates on pages about the server.

use std::sync::{Arc, Mutex, PoisonError};

use metrics::tree::{Items, StatusTree, TreeSource, Visitor, list};

use crate::plan::AcmeCertificate;

/// The certificates of the newest configuration.
static SHOWN: Mutex<Vec<AcmeCertificate>> = Mutex::new(Vec::new());

/// Shows these certificates from now on.
pub(crate) fn set(certificates: Vec<AcmeCertificate>) {
    *SHOWN.lock().unwrap_or_else(PoisonError::into_inner) = certificates;
}

/// Adds the certificates to what the program shows of itself.
pub(crate) fn show(tree: &mut StatusTree) {
    let shown = SHOWN.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let sources = shown.into_iter().map(|one| -> Arc<dyn TreeSource> {
        Arc::new(move |out: &mut dyn Visitor| show_one(&one, out))
    });
    tree.add(&[b"tls", b"acme"], Items::List(sources.collect()));
}

fn show_one(certificate: &AcmeCertificate, out: &mut dyn Visitor) {
    let progress = certificate.kept.progress().clone();
    let milliseconds = |seconds: i64| u64::try_from(seconds).unwrap_or(0).saturating_mul(1000);
    list(out, b"names", |out| {
        certificate.names.iter().for_each(|name| out.text(b"", name.to_string().as_bytes()));
    });
    list(out, b"issuers", |out| {
        certificate.issuers.iter().for_each(|issuer| out.text(b"", issuer.name.as_bytes()));
    });
    if let Some(not_after_s) = progress.not_after_s {
        out.number(b"not_after_at", milliseconds(not_after_s));
    }
    if let Some(next_s) = progress.next_attempt_s {
        out.number(b"next_attempt_at", milliseconds(next_s));
    }
    out.number(b"failures", progress.failures.into());
    if let Some(error) = &progress.last_error {
        out.text(b"last_error", error.as_bytes());
    }
}
