//! Certificates for names that only clients tell: what workers and the control thread share.
//!
//! ```text
//! handshake --known--> certificate
//!    |--refused lately, no name of a host, too many wait--> the server's own certificate
//!    '--call--> OnDemandKeeper of the control thread --ask, order--> certificate, or no
//! ```
//!
//! The invariants: a handshake waits no longer than its limit, and a name that the permission
//! endpoint has not allowed costs neither an order nor more than an entry in a bounded table.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use net::tls::Credential;
use net::{MailboxSender, Timer, clock};
use tls::{DemandedCredential, OnDemandCertificates};
use zones::{TwoProcesses, ZoneState};

use crate::host_name::host_of;
use crate::now::now_s;
use crate::plan::AcmeCertificate;

/// The most names that are remembered as refused.
const REFUSED_MAX: usize = 10_000;
/// The most handshakes that wait at once.
const WAITING_MAX: usize = 1000;
/// How exactly the time of the last use is known, in seconds.
const USED_S: i64 = 60;

/// The names of an issuer that clients have told.
#[derive(Default)]
pub(crate) struct OnDemandNames {
    known: RwLock<HashMap<Box<str>, Arc<DemandedName>>>,
    /// Until when a name is not asked about again, in milliseconds of the clock.
    refused: Mutex<HashMap<Box<str>, u64>>,
    waiting: AtomicUsize,
    keeper: Mutex<Option<MailboxSender<DemandCall>>>,
}

/// A name with its certificate.
pub(crate) struct DemandedName {
    pub(crate) certificate: AcmeCertificate,
    /// When a client has named it last, in seconds since 1970, and what of that is stored.
    used_s: AtomicI64,
    stored_s: AtomicI64,
    /// Whether it is not allowed any more.
    is_given_up: AtomicBool,
}

/// A name that is not known yet, or has no certificate. The sender is dropped, or told, when there
/// is nothing more to wait for.
pub(crate) struct DemandCall {
    pub(crate) name: Box<str>,
    pub(crate) settled: MailboxSender<()>,
}

/// The certificates of a server.
pub(crate) struct OnDemandServer {
    pub(crate) names: Arc<OnDemandNames>,
    pub(crate) wait_ms: u64,
}

impl ZoneState for OnDemandNames {
    const DIRECTIVES: &'static [&'static str] = &["acme_certificate"];
    const TWO_PROCESSES: TwoProcesses = TwoProcesses::Reread;
}

impl fmt::Debug for OnDemandServer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("OnDemandServer").finish_non_exhaustive()
    }
}

impl DemandedName {
    pub(crate) fn new(certificate: AcmeCertificate, used_s: i64) -> Self {
        let is_given_up = AtomicBool::new(false);
        let (used_s, stored_s) = (AtomicI64::new(used_s), AtomicI64::new(used_s));
        Self { certificate, used_s, stored_s, is_given_up }
    }

    pub(crate) fn used_s(&self) -> i64 {
        self.used_s.load(Relaxed)
    }

    /// For how long it was used after the time that is stored, in seconds.
    pub(crate) fn unstored_s(&self) -> i64 {
        self.used_s() - self.stored_s.load(Relaxed)
    }

    pub(crate) fn note_stored(&self, used_s: i64) {
        self.stored_s.store(used_s, Relaxed);
    }

    /// Whether it is not allowed any more, or nobody has used it for so long.
    pub(crate) fn is_unused(&self, unused_s: i64) -> bool {
        self.is_given_up.load(Relaxed) || now_s() - self.used_s() > unused_s
    }

    pub(crate) fn give_up(&self, is_given_up: bool) {
        self.is_given_up.store(is_given_up, Relaxed);
    }

    fn note_use(&self) {
        let now_s = now_s();
        if now_s - self.used_s() > USED_S {
            self.used_s.store(now_s, Relaxed);
        }
    }
}

impl OnDemandNames {
    pub(crate) fn find(&self, name: &str) -> Option<Arc<DemandedName>> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    pub(crate) fn all(&self) -> Vec<Arc<DemandedName>> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.known.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    pub(crate) fn add(&self, name: &str, demanded: Arc<DemandedName>) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.insert(name.into(), demanded);
    }

    pub(crate) fn remove(&self, name: &str) {
        self.known.write().unwrap_or_else(PoisonError::into_inner).remove(name);
    }

    /// Refuses a name for some time without asking the endpoint.
    pub(crate) fn refuse(&self, name: &str, for_ms: u64) {
        let (now_ms, mut refused) = (clock::now_ms(), self.refused());
        if refused.len() >= REFUSED_MAX {
            refused.retain(|_, until_ms| *until_ms > now_ms);
        }
        // A full table only makes questions more frequent, of which few are under way at once.
        if refused.len() < REFUSED_MAX {
            refused.insert(name.into(), now_ms + for_ms);
        }
    }

    fn is_refused(&self, name: &str) -> bool {
        self.refused().get(name).is_some_and(|until_ms| *until_ms > clock::now_ms())
    }

    fn refused(&self) -> MutexGuard<'_, HashMap<Box<str>, u64>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the keeper that takes calls from now on; `None`: there is none.
    pub(crate) fn serve_by(&self, keeper: Option<MailboxSender<DemandCall>>) {
        *self.keeper.lock().unwrap_or_else(PoisonError::into_inner) = keeper;
    }

    /// The certificate of a name, if there is one.
    fn current(&self, name: &str) -> Option<Credential> {
        let demanded = self.find(name)?;
        demanded.note_use();
        Some(demanded.certificate.kept.slot.current()?.credential.clone())
    }

    /// Asks the control thread for a certificate, and waits for it.
    async fn demand(&self, name: Box<str>, wait_ms: u64) -> Option<Credential> {
        if self.is_refused(&name) {
            return None;
        }
        let keeper = self.keeper.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        if self.waiting.fetch_add(1, Relaxed) >= WAITING_MAX {
            self.waiting.fetch_sub(1, Relaxed);
            return None;
        }
        let _waiting = Waiting(&self.waiting);
        let (settled, mut answers) = net::mailbox();
        keeper.send(DemandCall { name: name.clone(), settled });
        if wait_ms == 0 {
            return None;
        }
        let timer = Timer::new();
        timer.set(wait_ms);
        timer.limit(answers.next()).await;
        self.current(&name)
    }
}

/// One of the handshakes that wait.
struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

impl OnDemandCertificates for OnDemandServer {
    fn known(&self, server_name: &[u8]) -> Option<Credential> {
        self.names.current(&host_of(server_name)?)
    }

    fn demand(self: Arc<Self>, server_name: Box<[u8]>) -> DemandedCredential {
        Box::pin(async move {
            let name = host_of(&server_name)?;
            self.names.demand(name, self.wait_ms).await
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_names_are_forgotten_in_time_and_never_too_many() {
        net::run(async {
            net::testing::stop_clock();
            let names = OnDemandNames::default();
            names.refuse("a.test", 1000);
            assert!(names.is_refused("a.test") && !names.is_refused("b.test"));
            net::testing::advance(1001).await;
            assert!(!names.is_refused("a.test"));
            for number in 0..2 * REFUSED_MAX {
                names.refuse(&format!("{number}.test"), 1000);
            }
            assert_eq!(names.refused().len(), REFUSED_MAX);
            net::testing::advance(1001).await;
            names.refuse("a.test", 1000);
            assert_eq!(names.refused().len(), 1);
        })
        .unwrap();
    }
}
