//! Keeps one certificate: waits until it is due, and obtains it.
//!
//! ```text
//! look at the storage --> wait until due --> permit of the issuer --> lock of the name
//!   ^                                                                        |
//!   | obtained: shown and stored                                             v
//!   +-------- order <-- test the storage <-- look at the storage again <-----+
//!     failed: recorded, perhaps the next issuer
//! ```
//!
//! The invariant: the storage is tested under the lock before an order begins, so every ordered
//! certificate can be kept, and is ordered once.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::{Poll, Waker};

use net::{KeyPair, Timer, clock};
use observe::Level;
use wire::acme::{AcmeFailure, IssuedChain, RenewalInfo, schedule};
use wire::x509::ValidityPeriod;

use crate::account::{IssuerInUse, IssuerPermit};
use crate::attempt::{self, OrderAttempt};
use crate::failures;
use crate::lock::{LockWatch, NameLock, RENEWAL_INTERVAL};
use crate::plan::AcmeCertificate;
use crate::stored::{CurrentCertificate, Failures, Manifest, OrderUnderWay};

/// The storage is looked at this often at least, in seconds.
const LOOK_MAX_S: i64 = 600;
/// Pauses after the storage has failed double from the first to the second.
const STORAGE_PAUSE_MIN_S: i64 = 60;
const STORAGE_PAUSE_MAX_S: i64 = 3600;
const DAY_S: i64 = 24 * 60 * 60;
/// How far in the future a certificate may begin before our clock is doubted.
const CLOCK_DOUBT_S: i64 = 3600;

/// The keeper of one certificate.
pub(crate) struct CertificateKeeper {
    pub(crate) certificate: AcmeCertificate,
    issuers: Vec<Rc<IssuerInUse>>,
    known: RefCell<KnownState>,
    window: RefCell<RenewalWindow>,
    /// Nothing is tried before this time, in seconds since 1970: the storage has failed.
    held_until_s: Cell<i64>,
    /// When a certificate was obtained last, and how many in a row soon after another.
    obtained_s: Cell<i64>,
    in_haste: Cell<u32>,
    storage_pause_s: Cell<i64>,
    is_urged: Cell<bool>,
    waker: Cell<Option<Waker>>,
    /// Whether it waits for time to pass.
    #[cfg(test)]
    pub(crate) is_waiting: Cell<bool>,
}

/// What the storage says.
#[derive(Default)]
struct KnownState {
    current: Option<KnownCertificate>,
    failures: Failures,
    order: Option<OrderUnderWay>,
}

/// The certificate that is shown.
#[derive(Clone)]
struct KnownCertificate {
    manifest: Manifest,
    validity: ValidityPeriod,
    renewal_id: Option<String>,
    /// Any number of the certificate.
    draw: u64,
}

/// What the authority says about renewing the certificate with this number.
#[derive(Default)]
struct RenewalWindow {
    number: u64,
    info: Option<RenewalInfo>,
    /// When to ask again.
    ask_s: i64,
}

/// Why no certificate was obtained.
enum NotObtained {
    Storage(io::Error),
    Failure(AcmeFailure),
}

impl CertificateKeeper {
    pub(crate) fn new(certificate: AcmeCertificate, issuers: Vec<Rc<IssuerInUse>>) -> Rc<Self> {
        Rc::new(Self {
            certificate,
            issuers,
            known: RefCell::default(),
            window: RefCell::default(),
            held_until_s: Cell::new(0),
            obtained_s: Cell::new(0),
            in_haste: Cell::new(0),
            storage_pause_s: Cell::new(STORAGE_PAUSE_MIN_S),
            is_urged: Cell::new(false),
            waker: Cell::new(None),
            #[cfg(test)]
            is_waiting: Cell::new(false),
        })
    }

    /// Shows the stored certificate. Blocks on the disk.
    pub(crate) fn show_stored(&self) {
        match self.certificate.stored().current() {
            Ok(None) => {}
            Ok(Some(current)) => self.show(current),
            Err(error) => self.log(Level::Error, format_args!("cannot be read: {error}")),
        }
    }

    /// Looks at the storage soon: somebody has changed it.
    pub(crate) fn urge(&self) {
        self.is_urged.set(true);
        self.waker.take().into_iter().for_each(Waker::wake);
    }

    pub(crate) async fn run(self: Rc<Self>) {
        loop {
            if let Err(error) = self.step().await {
                self.hold(&error);
            }
        }
    }

    /// Waits until something is due, and does it.
    async fn step(&self) -> io::Result<()> {
        self.look().await?;
        if self.asks_for_window() {
            self.ask_for_window().await;
        }
        let (now_s, due_s) = (now_s(), self.due_s());
        self.certificate.kept.progress().next_attempt_s = Some(due_s);
        if due_s > now_s {
            self.wait(self.next_look_s(due_s) - now_s).await;
            return Ok(());
        }
        self.attend().await
    }

    /// Waits this long, or until it is urged.
    async fn wait(&self, seconds: i64) {
        let timer = Timer::new();
        timer.set(u64::try_from(seconds.max(1)).unwrap_or(1) * 1000);
        #[cfg(test)]
        self.is_waiting.set(true);
        poll_fn(|cx| {
            if self.is_urged.take() {
                return Poll::Ready(());
            }
            self.waker.set(Some(cx.waker().clone()));
            timer.poll(cx)
        })
        .await;
        #[cfg(test)]
        self.is_waiting.set(false);
    }

    fn next_look_s(&self, due_s: i64) -> i64 {
        let look_s = now_s() + LOOK_MAX_S;
        match self.has_window() {
            true => due_s.min(look_s).min(self.window.borrow().ask_s),
            false => due_s.min(look_s),
        }
    }

    /// Reads what the storage says, and shows a certificate that is new.
    async fn look(&self) -> io::Result<()> {
        let certificate = self.certificate.clone();
        let shown = self.known.borrow().current.as_ref().map(|known| known.manifest.number);
        let read = net::offload(move || -> io::Result<_> {
            let stored = certificate.stored();
            let number = stored.manifest()?.map(|manifest| manifest.number);
            let current = if number == shown { None } else { stored.current()? };
            Ok((current, stored.failures()?, stored.order()?))
        });
        let (current, failures, order) = read.await?;
        if let Some(current) = current {
            self.show(current);
        }
        let mut known = self.known.borrow_mut();
        (known.failures, known.order) = (failures, order);
        let mut progress = self.certificate.kept.progress();
        let worst = known.failures.values().max_by_key(|one| one.count);
        progress.failures = worst.map_or(0, |one| one.count);
        progress.last_error = worst.map(|one| one.error.clone());
        Ok(())
    }

    /// Shows a certificate from now on.
    fn show(&self, current: CurrentCertificate) {
        let CurrentCertificate { manifest, certificate, not_before_s, not_after_s } = current;
        let leaf = certificate.credential.chain().next().map(<[u8]>::to_vec).unwrap_or_default();
        let digest = net::sha256(&leaf);
        let draw = digest.first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes));
        let renewal_id = wire::acme::renewal_id(&leaf);
        let validity = ValidityPeriod { not_before_s, not_after_s };
        let kept = &self.certificate.kept;
        let mut progress = kept.progress();
        (progress.number, progress.not_after_s) = (manifest.number, Some(not_after_s));
        drop(progress);
        let known = KnownCertificate { manifest, validity, renewal_id, draw };
        self.known.borrow_mut().current = Some(known);
        kept.slot.put(certificate);
    }

    /// When the certificate is to be obtained, in seconds since 1970.
    fn due_s(&self) -> i64 {
        let known = self.known.borrow();
        let allowed_s = failures::next_s(&known.failures, self.issuer_names());
        let wanted_s = known.current.as_ref().map_or(0, |current| self.renewal_s(current));
        wanted_s.max(allowed_s).max(self.held_until_s.get())
    }

    /// A certificate of a directory that is no more in the configuration is replaced at once.
    fn renewal_s(&self, current: &KnownCertificate) -> i64 {
        if !self.issuers.iter().any(|one| one.issuer.uri == current.manifest.directory) {
            return 0;
        }
        if !schedule::is_clock_plausible(current.validity, now_s() + CLOCK_DOUBT_S) {
            let text = format_args!("is not valid yet: is the clock of this machine right?");
            self.log(Level::Error, text);
            return now_s() + LOOK_MAX_S;
        }
        let window = self.window.borrow();
        let info = window.info.as_ref().filter(|_| window.number == current.manifest.number);
        let renewal_s = match info {
            Some(window) => schedule::suggested_time(window, current.draw),
            None => schedule::renewal_time(current.validity, None, current.draw),
        };
        // A window behind the end of the certificate would be an outage.
        renewal_s.min(current.validity.not_after_s)
    }

    fn issuer_names(&self) -> impl Iterator<Item = &str> {
        self.issuers.iter().map(|one| one.issuer.name.as_str())
    }

    /// The issuer of the current certificate.
    fn current_issuer(&self) -> Option<(&Rc<IssuerInUse>, KnownCertificate)> {
        let current = self.known.borrow().current.clone()?;
        let is_its = |one: &&Rc<IssuerInUse>| one.issuer.uri == current.manifest.directory;
        Some((self.issuers.iter().find(is_its)?, current))
    }

    /// Whether there is a certificate whose window could be asked for.
    fn has_window(&self) -> bool {
        self.current_issuer().is_some_and(|(_, current)| current.renewal_id.is_some())
    }

    fn asks_for_window(&self) -> bool {
        let Some((_, current)) = self.current_issuer() else { return false };
        let window = self.window.borrow();
        let is_known = window.number == current.manifest.number;
        current.renewal_id.is_some() && (!is_known || window.ask_s <= now_s())
    }

    /// Asks the authority when to renew. A failure changes nothing.
    async fn ask_for_window(&self) {
        let Some((issuer, current)) = self.current_issuer() else { return };
        let Some(id) = current.renewal_id else { return };
        let permit = issuer.permit().await;
        let asked = attempt::renewal_info(issuer, id).await;
        drop(permit);
        let mut window = self.window.borrow_mut();
        if window.number != current.manifest.number {
            *window = RenewalWindow { number: current.manifest.number, ..RenewalWindow::default() };
        }
        let retry_after_s = match asked {
            Ok(info) => {
                let retry_after_s = info.as_ref().and_then(|info| info.retry_after_s);
                window.info = info;
                retry_after_s
            }
            Err(failure) => {
                self.log(Level::Info, format_args!("has no renewal window: {failure}"));
                failure.retry_after_s
            }
        };
        let pause_s = schedule::suggestion_pause_s(retry_after_s);
        window.ask_s = now_s() + i64::try_from(pause_s).unwrap_or(0);
    }

    /// Obtains the certificate, from the first issuer that can.
    async fn attend(&self) -> io::Result<()> {
        let now_s = now_s();
        let Some(issuer) = self.issuers.iter().find(|one| self.allowed_s(one) <= now_s) else {
            return Ok(());
        };
        // Before the lock: many wait for a permit, and a lock that is held has to be renewed.
        let permit = issuer.permit().await;
        let Some(lock) = self.lock().await? else { return Ok(()) };
        let done = self.attend_locked(&lock, permit).await;
        lock.release().await;
        done
    }

    /// When an issuer may be asked.
    fn allowed_s(&self, issuer: &IssuerInUse) -> i64 {
        let name = std::iter::once(issuer.issuer.name.as_str());
        failures::next_s(&self.known.borrow().failures, name)
    }

    /// The lock of the name; `None`: another process has obtained the certificate meanwhile.
    async fn lock(&self) -> io::Result<Option<NameLock>> {
        let mut watch = LockWatch::default();
        loop {
            let folder = self.certificate.folder();
            if let Some(lock) = NameLock::take(folder, &self.certificate.stem, &mut watch).await? {
                return Ok(Some(lock));
            }
            net::sleep(RENEWAL_INTERVAL).await;
            self.look().await?;
            if self.due_s() > now_s() {
                return Ok(None);
            }
        }
    }

    async fn attend_locked(&self, lock: &NameLock, permit: IssuerPermit) -> io::Result<()> {
        self.look().await?;
        let mut permit = Some(permit);
        for issuer in &self.issuers {
            if self.due_s() > now_s() || self.allowed_s(issuer) > now_s() || lock.is_lost() {
                continue;
            }
            let _permit = match permit.take() {
                Some(permit) if permit.is_of(issuer) => permit,
                _ => issuer.permit().await,
            };
            match self.obtain(issuer).await {
                Ok(()) => return self.forget_failures().await,
                Err(NotObtained::Storage(error)) => return Err(error),
                Err(NotObtained::Failure(failure)) => {
                    self.record(issuer, &failure).await?;
                    if !failures::tries_next(failure.kind) {
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    async fn obtain(&self, issuer: &Rc<IssuerInUse>) -> Result<(), NotObtained> {
        let certificate = self.certificate.clone();
        let (current, order) = {
            let known = self.known.borrow();
            (known.current.clone(), known.order.clone())
        };
        let number = current.as_ref().map_or(0, |current| current.manifest.number) + 1;
        let key = net::offload(move || {
            certificate.folder().test()?;
            certificate.stored().key(number, certificate.key)
        });
        let key = Rc::new(key.await?);
        let directory = &issuer.issuer.uri;
        let stored_order =
            order.filter(|order| order.directory == *directory && order.number == number);
        let replaced = current.filter(|current| current.manifest.directory == *directory);
        self.rehearse(issuer, number, &key).await?;
        let attempt = OrderAttempt {
            certificate: &self.certificate,
            issuer,
            number,
            key: key.clone(),
            replaces: replaced.and_then(|current| current.renewal_id),
            stored_order: stored_order.map(|order| order.url),
            is_trial: false,
            published: RefCell::default(),
        };
        let chain = attempt.order().await?.map_err(NotObtained::Failure)?;
        let manifest = Manifest { number, directory: directory.clone() };
        self.keep(manifest, chain, key.pem()).await?;
        self.slow_down();
        let issuer = &issuer.issuer.name;
        self.log(Level::Notice, format_args!("was obtained from \"{issuer}\""));
        Ok(())
    }

    /// After a failure, orders the certificate at the directory for trials first, whose limits are
    /// higher.
    async fn rehearse(
        &self,
        issuer: &IssuerInUse,
        number: u64,
        key: &Rc<KeyPair>,
    ) -> Result<(), NotObtained> {
        let has_failed = self.known.borrow().failures.contains_key(&issuer.issuer.name);
        let Some(staging) = issuer.staging.as_ref().filter(|_| has_failed) else { return Ok(()) };
        let _permit = staging.permit().await;
        let attempt = OrderAttempt {
            certificate: &self.certificate,
            issuer: staging,
            number,
            key: key.clone(),
            replaces: None,
            stored_order: None,
            is_trial: true,
            published: RefCell::default(),
        };
        match attempt.order().await? {
            Ok(_) => {
                let text = format_args!("would be issued: a trial order has succeeded");
                self.log(Level::Notice, text);
                Ok(())
            }
            Err(failure) => {
                let detail = format!("{} (of a trial order)", failure.detail);
                Err(NotObtained::Failure(AcmeFailure { detail, ..failure }))
            }
        }
    }

    /// Keeps a wrong clock, or an authority that always suggests to renew now, from one order after
    /// the other: a certificate that is valid for more than a day is replaced once in a day without
    /// a pause, which is for revocations.
    fn slow_down(&self) {
        let (now_s, before_s) = (now_s(), self.obtained_s.replace(now_s()));
        let validity = self.known.borrow().current.as_ref().map(|current| current.validity);
        let is_short = validity.is_some_and(|one| one.not_after_s - one.not_before_s <= DAY_S);
        if is_short || now_s - before_s > DAY_S {
            return self.in_haste.set(0);
        }
        self.in_haste.set(self.in_haste.get().saturating_add(1));
        let pause_s = schedule::backoff_s(self.in_haste.get(), false, None, 0);
        self.held_until_s.set(now_s + i64::try_from(pause_s).unwrap_or(DAY_S));
    }

    /// Shows a new certificate, and stores it. If that fails, the order is still there, and leads
    /// to the same certificate again.
    async fn keep(&self, manifest: Manifest, chain: IssuedChain, key: Vec<u8>) -> io::Result<()> {
        let current = CurrentCertificate::read(manifest.clone(), chain.pem.clone(), key)?;
        let before = self.known.borrow().current.clone();
        self.show(current);
        let certificate = self.certificate.clone();
        let stored = net::offload(move || certificate.stored().make_current(&manifest, &chain.pem));
        stored.await.inspect_err(|_| self.known.borrow_mut().current = before)
    }

    async fn forget_failures(&self) -> io::Result<()> {
        self.storage_pause_s.set(STORAGE_PAUSE_MIN_S);
        self.known.borrow_mut().failures = Failures::new();
        let certificate = self.certificate.clone();
        net::offload(move || certificate.stored().set_failures(&Failures::new())).await
    }

    /// Stores a failure: of this issuer, or of all if it is our own.
    async fn record(&self, issuer: &IssuerInUse, failure: &AcmeFailure) -> io::Result<()> {
        let mut all = self.known.borrow().failures.clone();
        let name = &issuer.issuer.name;
        let (now_s, random) = (now_s(), net::system::random());
        if failures::tries_next(failure.kind) {
            let one = std::iter::once(name.as_str());
            failures::record(&mut all, one, failure, now_s, random);
        } else {
            failures::record(&mut all, self.issuer_names(), failure, now_s, random);
        }
        let next_s = failures::next_s(&all, self.issuer_names());
        let text = format_args!(
            "was not obtained from \"{name}\": {failure}; next attempt in {} s",
            (next_s - now_s).max(0)
        );
        self.log(Level::Error, text);
        self.known.borrow_mut().failures = all.clone();
        let certificate = self.certificate.clone();
        let stored = net::offload(move || certificate.stored().set_failures(&all)).await;
        // A failure that could not be stored still delays the next attempt of this process.
        stored.inspect_err(|_| self.held_until_s.set(next_s))
    }

    /// Tries nothing for a while, because the storage has failed.
    fn hold(&self, error: &io::Error) {
        let pause_s = self.storage_pause_s.get();
        self.storage_pause_s.set((pause_s * 2).min(STORAGE_PAUSE_MAX_S));
        self.held_until_s.set(self.held_until_s.get().max(now_s() + pause_s));
        let folder = self.certificate.folder().shown();
        let text = format_args!("waits {pause_s} s: the state in \"{folder}\" failed: {error}");
        self.log(Level::Error, text);
        self.certificate.kept.progress().last_error = Some(error.to_string());
    }

    fn log(&self, level: Level, what: std::fmt::Arguments<'_>) {
        let name = self.certificate.shown();
        observe::log(level, format_args!("acme: certificate for \"{name}\" {what}"));
    }
}

impl From<io::Error> for NotObtained {
    fn from(error: io::Error) -> Self {
        Self::Storage(error)
    }
}

fn now_s() -> i64 {
    i64::try_from(clock::unix_ms() / 1000).unwrap_or(i64::MAX)
}
