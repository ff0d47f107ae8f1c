//! What a configuration wants: certificates, each with its issuers and its slot.
//!
//! The plan is made while the configuration is read, and adopted by [`AcmeJob`](crate::AcmeJob).
//! Slots outlive it: a reload finds the certificate that is served.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use conf::{Load, Span};
use net::NewKey;
use tls::CertificateSlot;
use wire::x509::{SubjectName, ValidityPeriod};
use zones::{TwoProcesses, ZoneState, Zones};

use crate::due::NextAttempt;
use crate::issuer::AcmeIssuer;
use crate::stand_in;
use crate::state_folder::StateFolder;

/// The certificates of a subsystem's configuration.
#[derive(Default)]
pub(crate) struct AcmePlan {
    pub(crate) certificates: Vec<AcmeCertificate>,
}

/// A certificate that is wanted.
#[derive(Clone)]
pub(crate) struct AcmeCertificate {
    pub(crate) names: Vec<SubjectName>,
    pub(crate) key: NewKey,
    /// In order; at least one.
    pub(crate) issuers: Vec<Arc<AcmeIssuer>>,
    /// What the names of its files begin with.
    pub(crate) stem: String,
    pub(crate) kept: Arc<KeptCertificate>,
}

/// What outlives configurations.
pub(crate) struct KeptCertificate {
    pub(crate) slot: Arc<CertificateSlot>,
    progress: Mutex<AcmeProgress>,
}

/// How a certificate is doing, for pages about the server.
#[derive(Clone, Debug, Default)]
pub(crate) struct AcmeProgress {
    /// The number of the certificate in the slot; 0: there is none.
    pub(crate) number: u64,
    pub(crate) facts: Option<CertificateFacts>,
    pub(crate) next_attempt: Option<NextAttempt>,
    /// Failures in a row.
    pub(crate) failures: u32,
    pub(crate) last_error: Option<AcmeError>,
    /// Before this time nothing is tried, because of failures, in seconds since 1970.
    pub(crate) blocked_until_s: i64,
    pub(crate) storage_error: Option<AcmeError>,
    pub(crate) order: OrderProgress,
}

/// What is in a certificate.
#[derive(Clone, Debug)]
pub(crate) struct CertificateFacts {
    /// The name of the issuer; empty: one that the configuration does not name any more.
    pub(crate) issuer: String,
    /// In hexadecimal.
    pub(crate) serial: String,
    pub(crate) validity: ValidityPeriod,
}

/// An error, and when it happened, in seconds since 1970; 0: that is unknown.
#[derive(Clone, Debug)]
pub(crate) struct AcmeError {
    pub(crate) text: String,
    pub(crate) at_s: i64,
}

/// The step that an order is at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum OrderProgress {
    #[default]
    None,
    /// The order of an earlier attempt is stored, and will be continued.
    Stored,
    /// It waits for other orders of the account, or for the lock.
    Queued,
    UnderWay,
}

impl AcmeProgress {
    /// The newest error.
    pub(crate) fn error(&self) -> Option<&AcmeError> {
        self.storage_error.iter().chain(&self.last_error).max_by_key(|error| error.at_s)
    }
}

impl ZoneState for KeptCertificate {
    const DIRECTIVES: &'static [&'static str] = &["acme_certificate"];
    const TWO_PROCESSES: TwoProcesses = TwoProcesses::Private;
}

impl ZoneState for AcmePlan {
    const DIRECTIVES: &'static [&'static str] = &["acme_certificate"];
    const TWO_PROCESSES: TwoProcesses = TwoProcesses::Private;
}

/// The plan while it is made.
#[derive(Default)]
pub(crate) struct PlanBook(AcmePlan);

/// The folders of state, which the master makes before workers start.
#[derive(Default)]
pub struct StateFolders(pub Vec<StateFolderLine>);

pub struct StateFolderLine {
    pub path: PathBuf,
    /// The block that needs it.
    pub named: Span,
}

/// The most bytes of the first name that are in the names of files.
const STEM_NAME_BYTES_MAX: usize = 100;

impl PlanBook {
    /// Adds a certificate, unless it is there. Returns its slot.
    pub(crate) fn add(certificate: AcmeCertificate, load: &mut Load<'_>) -> Arc<CertificateSlot> {
        let slot = certificate.kept.slot.clone();
        let plan = &mut load.own.of::<Self>().0;
        if !plan.certificates.iter().any(|known| Arc::ptr_eq(&known.kept.slot, &slot)) {
            plan.certificates.push(certificate);
        }
        slot
    }

    /// Completes the plan. Returns whether there are certificates.
    pub(crate) fn finish(load: &mut Load<'_>) -> bool {
        let plan = Arc::new(std::mem::take(&mut load.own.of::<Self>().0));
        let has_any = !plan.certificates.is_empty();
        if has_any {
            Zones::of(load).keep(b"", |_| plan);
        }
        has_any
    }
}

impl StateFolders {
    pub(crate) fn add(&mut self, path: &Path, named: Span) {
        if !self.0.iter().any(|known| known.path == path) {
            self.0.push(StateFolderLine { path: path.to_owned(), named });
        }
    }
}

impl AcmeCertificate {
    pub(crate) fn new(
        names: Vec<SubjectName>,
        key: NewKey,
        issuers: Vec<Arc<AcmeIssuer>>,
        load: &mut Load<'_>,
    ) -> Self {
        let stem = stem(&names, key);
        let place = place(&issuers[0].folder, &stem);
        let stand_in_names = names.clone();
        let make = || {
            let make_stand_in = Box::new(move || stand_in::make(&stand_in_names));
            let slot = Arc::new(CertificateSlot::new(make_stand_in));
            Arc::new(KeptCertificate { slot, progress: Mutex::default() })
        };
        let kept = Zones::of(load).keep(place.as_bytes(), |old| old.unwrap_or_else(make));
        Self { names, key, issuers, stem, kept }
    }

    /// The same for a name that a client has told. `before`: the state of an earlier configuration.
    pub(crate) fn demanded(
        name: &str,
        key: NewKey,
        issuers: Vec<Arc<AcmeIssuer>>,
        before: Option<Arc<KeptCertificate>>,
    ) -> Self {
        let make = || {
            let slot = Arc::new(CertificateSlot::new(Box::new(|| None)));
            Arc::new(KeptCertificate { slot, progress: Mutex::default() })
        };
        let (names, kept) = (vec![SubjectName::of(name)], before.unwrap_or_else(make));
        Self { stem: stem(&names, key), names, key, issuers, kept }
    }

    /// What the names of the files of such a certificate begin with.
    pub(crate) fn stem_of(name: &str, key: NewKey) -> String {
        stem(&[SubjectName::of(name)], key)
    }

    /// The same outside of any configuration.
    #[cfg(test)]
    pub(crate) fn sample(
        names: Vec<SubjectName>,
        key: NewKey,
        issuers: Vec<Arc<AcmeIssuer>>,
    ) -> Self {
        let slot = Arc::new(CertificateSlot::new(Box::new(|| None)));
        let kept = Arc::new(KeptCertificate { slot, progress: Mutex::default() });
        Self { stem: stem(&names, key), names, key, issuers, kept }
    }

    /// Where the certificate is stored.
    pub(crate) fn folder(&self) -> &Arc<StateFolder> {
        &self.issuers[0].folder
    }

    /// What makes it different from all others.
    pub(crate) fn place(&self) -> String {
        place(self.folder(), &self.stem)
    }

    /// The first name, for log lines.
    pub(crate) fn shown(&self) -> String {
        self.names[0].to_string()
    }

    /// Whether it is for the name, as it is written in configurations.
    pub(crate) fn has_name(&self, name: &str) -> bool {
        self.stem == name || self.names.iter().any(|own| own.to_string().eq_ignore_ascii_case(name))
    }

    /// Whether the other one is obtained in the same way.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let issuers = |one: &Self| -> Vec<_> {
            one.issuers.iter().map(|issuer| (issuer.name.clone(), issuer.text.clone())).collect()
        };
        Arc::ptr_eq(&self.kept, &other.kept) && issuers(self) == issuers(other)
    }
}

impl KeptCertificate {
    pub(crate) fn progress(&self) -> MutexGuard<'_, AcmeProgress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn place(folder: &StateFolder, stem: &str) -> String {
    format!("{}\n{stem}", folder.shown())
}

/// The first name and a digest of all that makes the certificate different from others.
fn stem(names: &[SubjectName], key: NewKey) -> String {
    let mut text = format!("{key:?}\n");
    names.iter().for_each(|name| text.extend([name.to_string().as_str(), "\n"]));
    let digest: String =
        net::sha256(text.as_bytes())[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    let is_plain = |byte: char| byte.is_ascii_alphanumeric() || matches!(byte, '-' | '.');
    let first = names[0].to_string();
    let first: String = first
        .chars()
        .take(STEM_NAME_BYTES_MAX)
        .map(|byte| if is_plain(byte) { byte } else { '_' })
        .collect();
    format!("{first}-{digest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn issuers_without_folders_do_not_share_certificates() {
        let folders = ["a", "b"].map(StateFolder::in_memory_of);
        assert_ne!(place(&folders[0], "stem"), place(&folders[1], "stem"));
    }

    #[test]
    fn certificates_that_differ_have_different_files() {
        let names =
            |list: &[&str]| -> Vec<_> { list.iter().map(|name| SubjectName::of(name)).collect() };
        let one = stem(&names(&["a.test"]), NewKey::EcdsaP256);
        assert!(one.starts_with("a.test-") && one.len() == 7 + 16, "{one}");
        assert_eq!(one, stem(&names(&["a.test"]), NewKey::EcdsaP256));
        assert_ne!(one, stem(&names(&["a.test"]), NewKey::Rsa2048));
        assert_ne!(one, stem(&names(&["a.test", "b.test"]), NewKey::EcdsaP256));
        assert!(stem(&names(&["*.a.test"]), NewKey::Rsa2048).starts_with("_.a.test-"));
    }
}
