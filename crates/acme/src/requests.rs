//! Renewing or forgetting a certificate when the control socket asks for it.
//!
//! A request may end a pause after failures, if it says so. It never makes an attempt that the
//! authority has asked not to make, or that would use up one of its limits.

use std::io;
use std::sync::Arc;

use upstream::api::SpecRefusal;
use wire::date;

use crate::certificate::CertificateKeeper;
use crate::due::RequestedRenewal;
use crate::failures;
use crate::lock::{LockWatch, NameLock};
use crate::now::now_s;
use crate::pace;
use crate::plan::OrderProgress;
use crate::state_folder::StateFolder;
use crate::stored::StoredCertificate;

impl CertificateKeeper {
    /// The renewal that is to be done. Another process may have done it.
    pub(crate) fn requested(&self) -> Option<RequestedRenewal> {
        let requested = self.requested.get()?;
        (requested.number == self.known.borrow().newest.number).then_some(requested)
    }

    /// Renews the certificate soon. Returns the number of the pair that it has now.
    pub(crate) async fn request_renewal(&self, is_forced: bool) -> Result<u64, SpecRefusal> {
        self.look().await.map_err(|error| storage_failed(&error))?;
        let order = self.certificate.kept.progress().order;
        if matches!(order, OrderProgress::Queued | OrderProgress::UnderWay) {
            return Err(refused("an order is under way already", "OrderUnderWay"));
        }
        self.allow_order(is_forced)?;
        let number = self.known.borrow().newest.number;
        self.requested.set(Some(RequestedRenewal { number, is_forced }));
        // A status that is read right after this shows the renewal as not done yet.
        self.note_due();
        self.urge();
        Ok(number)
    }

    /// Refuses an order that has to wait.
    fn allow_order(&self, is_forced: bool) -> Result<(), SpecRefusal> {
        let (known, now_s) = (self.known.borrow(), now_s());
        let limit_s = pace::request_allowed_s(&known.newest.obtained, known.lifetime_s(), now_s);
        if limit_s > now_s {
            let why = "so many certificates were obtained lately that the authority would soon \
                       refuse more";
            return Err(refused(&until(why, limit_s), "TooManyCertificates"));
        }
        let forced_s = |name: &str| failures::forced_s(&known.failures, name, now_s);
        let forced_s = self.issuer_names().map(forced_s).min().unwrap_or(0);
        if forced_s > now_s {
            let why = "the authority has asked to wait, or would after another failure";
            return Err(refused(&until(why, forced_s), "AuthorityLimit"));
        }
        let failed_s = failures::next_s(&known.failures, self.issuer_names());
        let pause_s = failed_s.max(self.haste_until_s());
        if pause_s > now_s && !is_forced {
            let why = match failed_s > now_s {
                true => "the last attempt has failed",
                false => "certificates have followed each other quickly",
            };
            let text = format!("{}; \"force\" does not wait", until(why, pause_s));
            return Err(refused(&text, "Pause"));
        }
        Ok(())
    }

    /// Removes what is stored of the certificate; then another one is ordered.
    pub(crate) async fn forget(&self, watch: &mut LockWatch) -> Result<(), SpecRefusal> {
        self.look().await.map_err(|error| storage_failed(&error))?;
        self.allow_order(true)?;
        let certificate = &self.certificate;
        forget(certificate.folder(), &certificate.stem, watch, |stored| stored.forget()).await?;
        self.look().await.map_err(|error| storage_failed(&error))?;
        self.urge();
        Ok(())
    }
}

/// Removes files of a certificate under the lock of its name.
pub(crate) async fn forget(
    folder: &Arc<StateFolder>,
    stem: &str,
    watch: &mut LockWatch,
    remove: fn(&StoredCertificate<'_>) -> io::Result<()>,
) -> Result<(), SpecRefusal> {
    let failed = |error: io::Error| storage_failed(&error);
    let Some(lock) = NameLock::take(folder, stem, watch).await.map_err(failed)? else {
        let why = "an order is under way; if its process has ended, try again in 10 s";
        return Err(refused(why, "OrderUnderWay"));
    };
    let (state, name) = (folder.clone(), stem.to_owned());
    let removed =
        net::offload(move || remove(&StoredCertificate { folder: &state, stem: &name })).await;
    lock.release().await;
    removed.map_err(failed)
}

pub(crate) fn refused(text: &str, code: &'static str) -> SpecRefusal {
    SpecRefusal::new(409, text, code)
}

fn storage_failed(error: &io::Error) -> SpecRefusal {
    SpecRefusal::new(500, format!("the state folder failed: {error}"), "StorageFailed")
}

fn until(why: &str, time_s: i64) -> String {
    let time = date::iso8601(time_s, 0);
    format!("{why}; possible again at {}Z", String::from_utf8_lossy(&time[..19]))
}
