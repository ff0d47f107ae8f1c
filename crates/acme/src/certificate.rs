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

use net::{KeyPair, MailboxSender, Timer};
use observe::Level;
use wire::acme::{AcmeFailure, IssuedChain, RenewalInfo, schedule};
use wire::x509::{ValidityPeriod, X509};

use crate::account::{IssuerInUse, IssuerPermit};
use crate::attempt::{self, OrderAttempt};
use crate::counts::AcmeOrders;
use crate::due::{DueReason, NextAttempt, RequestedRenewal};
use crate::failures;
use crate::lock::{LockWatch, NameLock, RENEWAL_INTERVAL};
use crate::now::now_s;
use crate::pace;
use crate::permission::Permission;
use crate::plan::{AcmeCertificate, AcmeError, CertificateFacts, OrderProgress};
use crate::stored::{CurrentCertificate, Failures, IssuerFailures, Manifest, OrderUnderWay};

/// The storage is looked at this often at least, in seconds.
const LOOK_MAX_S: i64 = 600;
/// Pauses after the storage has failed double from the first to the second.
const STORAGE_PAUSE_MIN_S: i64 = 60;
const STORAGE_PAUSE_MAX_S: i64 = 3600;
/// How far in the future a certificate may begin before our clock is doubted.
const CLOCK_DOUBT_S: i64 = 3600;

/// The keeper of one certificate.
pub(crate) struct CertificateKeeper {
    pub(crate) certificate: AcmeCertificate,
    pub(crate) issuers: Vec<Rc<IssuerInUse>>,
    pub(crate) known: RefCell<KnownState>,
    window: RefCell<RenewalWindow>,
    /// Nothing is tried before this time, in seconds since 1970: the storage has failed.
    pub(crate) held_until_s: Cell<i64>,
    /// For a name that only clients tell: whether it may still have a certificate.
    pub(crate) permission: Option<Permission>,
    /// Handshakes that wait until there is a certificate, or nothing is done about it. Dropping
    /// the sender tells them.
    settled: RefCell<Vec<MailboxSender<()>>>,
    /// The renewal that was requested and is not finished.
    pub(crate) requested: Cell<Option<RequestedRenewal>>,
    storage_pause_s: Cell<i64>,
    is_urged: Cell<bool>,
    waker: Cell<Option<Waker>>,
    /// Whether it waits for time to pass.
    #[cfg(test)]
    pub(crate) is_waiting: Cell<bool>,
}

/// What the storage says.
#[derive(Default)]
pub(crate) struct KnownState {
    pub(crate) current: Option<KnownCertificate>,
    /// The newest pair, which is forgotten if there is no current one.
    pub(crate) newest: Manifest,
    pub(crate) failures: Failures,
    order: Option<OrderUnderWay>,
}

/// The certificate that is shown.
#[derive(Clone)]
pub(crate) struct KnownCertificate {
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
        Self::with(certificate, issuers, None)
    }

    /// The keeper of a certificate for a name that only clients tell.
    pub(crate) fn for_demand(
        certificate: AcmeCertificate,
        issuers: Vec<Rc<IssuerInUse>>,
        permission: Permission,
    ) -> Rc<Self> {
        Self::with(certificate, issuers, Some(permission))
    }

    fn with(
        certificate: AcmeCertificate,
        issuers: Vec<Rc<IssuerInUse>>,
        permission: Option<Permission>,
    ) -> Rc<Self> {
        Rc::new(Self {
            permission,
            settled: RefCell::default(),
            certificate,
            issuers,
            known: RefCell::default(),
            window: RefCell::default(),
            held_until_s: Cell::new(0),
            requested: Cell::new(None),
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

    /// Tells a handshake, by dropping its sender, when there is a certificate, or nothing is done
    /// about it.
    pub(crate) fn tell_when_settled(&self, settled: MailboxSender<()>) {
        let order = self.certificate.kept.progress().order;
        let is_busy = matches!(order, OrderProgress::Queued | OrderProgress::UnderWay)
            || self.due_s() <= now_s();
        if is_busy && self.certificate.kept.slot.current().is_none() {
            self.settled.borrow_mut().push(settled);
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
                self.requested.set(None);
                let pause_s = self.hold(&error);
                self.note_due();
                self.wait(pause_s).await;
            }
        }
    }

    /// Waits until something is due, and does it.
    async fn step(&self) -> io::Result<()> {
        self.look().await?;
        if self.asks_for_window() {
            self.ask_for_window().await;
        }
        let (now_s, due_s) = (now_s(), self.note_due());
        if due_s > now_s {
            self.wait(self.next_look_s(due_s) - now_s).await;
            return Ok(());
        }
        let done = self.attend().await;
        self.requested.set(None);
        self.certificate.kept.progress().order = OrderProgress::None;
        done
    }

    /// Sets the next attempt that status pages show, and returns its time.
    pub(crate) fn note_due(&self) -> i64 {
        let due = self.due();
        self.certificate.kept.progress().next_attempt = Some(due);
        due.at_s
    }

    /// Waits this long, or until it is urged.
    async fn wait(&self, seconds: i64) {
        self.settled.take();
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
    pub(crate) async fn look(&self) -> io::Result<()> {
        let certificate = self.certificate.clone();
        let shown = self.known.borrow().current.as_ref().map(|known| known.manifest.number);
        let read = net::offload(move || -> io::Result<_> {
            let stored = certificate.stored();
            let newest = stored.manifest()?.unwrap_or_default();
            let is_shown = shown == Some(newest.number) && !newest.is_forgotten;
            let current = if is_shown { None } else { stored.current()? };
            Ok((newest, current, stored.failures()?, stored.order()?))
        });
        let (newest, current, failures, order) = read.await?;
        match current {
            Some(current) => self.show(current),
            None if newest.is_forgotten => self.forget_shown(),
            None => {}
        }
        // A crash after the certificate was stored leaves its order.
        let order = order.filter(|order| order.number > newest.number);
        let mut known = self.known.borrow_mut();
        (known.newest, known.failures, known.order) = (newest, failures, order);
        let mut progress = self.certificate.kept.progress();
        let worst = known.failures.values().max_by_key(|one| one.count);
        progress.failures = worst.map_or(0, |one| one.count);
        let at_s = |one: &IssuerFailures| one.times.last().copied().unwrap_or(0);
        progress.last_error =
            worst.map(|one| AcmeError { text: one.error.clone(), at_s: at_s(one) });
        progress.blocked_until_s = failures::next_s(&known.failures, self.issuer_names());
        if matches!(progress.order, OrderProgress::None | OrderProgress::Stored) {
            progress.order = match &known.order {
                Some(_) => OrderProgress::Stored,
                None => OrderProgress::None,
            };
        }
        Ok(())
    }

    /// Shows the stand-in again: the certificate was removed on request.
    fn forget_shown(&self) {
        self.known.borrow_mut().current = None;
        let kept = &self.certificate.kept;
        kept.slot.clear();
        let mut progress = kept.progress();
        (progress.number, progress.facts) = (0, None);
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
        progress.number = manifest.number;
        progress.facts = Some(self.facts(&manifest, &leaf, validity));
        drop(progress);
        let known = KnownCertificate { manifest, validity, renewal_id, draw };
        self.known.borrow_mut().current = Some(known);
        kept.slot.put(certificate);
        self.settled.take();
    }

    fn facts(&self, from: &Manifest, leaf: &[u8], validity: ValidityPeriod) -> CertificateFacts {
        let mut serial = Vec::new();
        if let Ok(leaf) = X509::parse(leaf) {
            leaf.write_serial(&mut serial);
        }
        let issuer = self.issuers.iter().find(|one| one.issuer.uri == from.directory);
        CertificateFacts {
            issuer: issuer.map_or_else(String::new, |one| one.issuer.name.clone()),
            serial: String::from_utf8_lossy(&serial).into_owned(),
            validity,
        }
    }

    /// When the certificate is to be obtained, in seconds since 1970.
    fn due_s(&self) -> i64 {
        self.due().at_s
    }

    fn due(&self) -> NextAttempt {
        let known = self.known.borrow();
        if let Some(requested) = self.requested() {
            let allowed_s = self.issuers.iter().map(|one| self.allowed_s(one)).min().unwrap_or(0);
            let due =
                NextAttempt::new(0, DueReason::Request).not_before(allowed_s, DueReason::Failures);
            return match requested.is_forced {
                true => due,
                false => due.not_before(self.haste_until_s(), DueReason::Haste),
            };
        }
        let is_unused = self.permission.as_ref().is_some_and(Permission::is_unused);
        let wanted = match &known.current {
            _ if is_unused => NextAttempt::new(now_s() + LOOK_MAX_S, DueReason::Unused),
            None => NextAttempt::new(0, DueReason::Missing),
            Some(current) => self.renewal(current),
        };
        let allowed_s = failures::next_s(&known.failures, self.issuer_names());
        wanted
            .not_before(allowed_s, DueReason::Failures)
            .not_before(self.held_until_s.get(), DueReason::Storage)
            .not_before(self.haste_until_s(), DueReason::Haste)
    }

    /// Until when no certificate is obtained, because the last ones have followed each other too
    /// quickly.
    pub(crate) fn haste_until_s(&self) -> i64 {
        let known = self.known.borrow();
        pace::haste_until_s(&known.newest.obtained, known.lifetime_s(), now_s())
    }

    /// A certificate of a directory that is no more in the configuration is replaced at once.
    fn renewal(&self, current: &KnownCertificate) -> NextAttempt {
        if !self.issuers.iter().any(|one| one.issuer.uri == current.manifest.directory) {
            return NextAttempt::new(0, DueReason::Issuer);
        }
        if !schedule::is_clock_plausible(current.validity, now_s() + CLOCK_DOUBT_S) {
            let text = format_args!("is not valid yet: is the clock of this machine right?");
            self.log(Level::Error, text);
            return NextAttempt::new(now_s() + LOOK_MAX_S, DueReason::Clock);
        }
        let window = self.window.borrow();
        let info = window.info.as_ref().filter(|_| window.number == current.manifest.number);
        let (renewal_s, why) = match info {
            Some(window) => (schedule::suggested_time(window, current.draw), DueReason::Window),
            None => {
                let renewal_s = schedule::renewal_time(current.validity, None, current.draw);
                (renewal_s, DueReason::Lifetime)
            }
        };
        // A window behind the end of the certificate would be an outage.
        NextAttempt::new(renewal_s.min(current.validity.not_after_s), why)
    }

    pub(crate) fn issuer_names(&self) -> impl Iterator<Item = &str> {
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
        let permit = issuer.question_permit().await;
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
        self.certificate.kept.progress().order = OrderProgress::Queued;
        if !self.is_allowed().await {
            return Ok(());
        }
        // Before the lock: many wait for a permit, and a lock that is held has to be renewed.
        let permit = issuer.permit().await;
        let Some(lock) = self.lock().await? else { return Ok(()) };
        self.certificate.kept.progress().order = OrderProgress::UnderWay;
        let done = self.attend_locked(&lock, permit).await;
        lock.release().await;
        done
    }

    /// Whether a name told by clients is still allowed. If the endpoint cannot be asked, the name
    /// counts as not allowed for now, and the endpoint is asked again later.
    async fn is_allowed(&self) -> bool {
        let Some(permission) = &self.permission else { return true };
        permission.holds().await.unwrap_or_else(|error| {
            self.log(Level::Error, format_args!("waits {LOOK_MAX_S} s: {error}"));
            self.held_until_s.set(now_s() + LOOK_MAX_S);
            self.note_storage_error(&error);
            false
        })
    }

    /// When an issuer may be asked.
    fn allowed_s(&self, issuer: &IssuerInUse) -> i64 {
        let (name, known) = (issuer.issuer.name.as_str(), self.known.borrow());
        match self.requested().is_some_and(|requested| requested.is_forced) {
            true => failures::forced_s(&known.failures, name, now_s()),
            false => failures::next_s(&known.failures, std::iter::once(name)),
        }
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
            let counts = AcmeOrders::of(&issuer.issuer.name);
            match self.obtain(issuer).await {
                Ok(()) => {
                    counts.own().obtained().add(1);
                    return self.forget_failures().await;
                }
                Err(NotObtained::Storage(error)) => return Err(error),
                Err(NotObtained::Failure(failure)) => {
                    counts.own().failed().add(1);
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
        let (current, newest, order) = {
            let known = self.known.borrow();
            (known.current.clone(), known.newest.clone(), known.order.clone())
        };
        let number = newest.number + 1;
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
        let mut obtained = newest.obtained;
        pace::remember(&mut obtained, now_s());
        let directory = directory.clone();
        let manifest = Manifest { number, directory, obtained, is_forgotten: false };
        self.keep(manifest, chain, key.pem()).await?;
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
        self.certificate.kept.progress().storage_error = None;
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

    /// Tries nothing for a while, because the storage has failed. Returns for how long, in seconds.
    fn hold(&self, error: &io::Error) -> i64 {
        let pause_s = self.storage_pause_s.get();
        self.storage_pause_s.set((pause_s * 2).min(STORAGE_PAUSE_MAX_S));
        self.held_until_s.set(self.held_until_s.get().max(now_s() + pause_s));
        let folder = self.certificate.folder().shown();
        let text = format_args!("waits {pause_s} s: the state in \"{folder}\" failed: {error}");
        self.log(Level::Error, text);
        self.note_storage_error(error);
        pause_s
    }

    /// Tells pages about the server that the storage has failed.
    pub(crate) fn note_storage_error(&self, error: &io::Error) {
        let error = AcmeError { text: error.to_string(), at_s: now_s() };
        self.certificate.kept.progress().storage_error = Some(error);
    }

    pub(crate) fn log(&self, level: Level, what: std::fmt::Arguments<'_>) {
        let name = self.certificate.shown();
        observe::log(level, format_args!("acme: certificate for \"{name}\" {what}"));
    }
}

impl KnownState {
    /// How long the certificate is valid, in seconds; without one, as if it was for long.
    pub(crate) fn lifetime_s(&self) -> i64 {
        let validity = self.current.as_ref().map(|current| current.validity);
        validity.map_or(i64::MAX, |one| one.not_after_s.saturating_sub(one.not_before_s))
    }
}

impl From<io::Error> for NotObtained {
    fn from(error: io::Error) -> Self {
        Self::Storage(error)
    }
}
