//! Certificates for names that only clients tell: the part that the control thread runs.
//!
//! ```text
//! call --> stored? --> ask: 200 --> names, rate below limits --> CertificateKeeper
//!            |yes        |other       |no
//!            |           '------------+--> refused for a while
//!            '--> CertificateKeeper
//! ```
//!
//! A name is stored before its certificate is ordered, so a restart and other machines know it.
//! When its certificate is due for renewal, the permission endpoint is asked again. A name that no
//! client has told for long is not renewed, and forgotten when its certificate has expired.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use net::{Mailbox, MailboxSender, Task};
use observe::Level;
use upstream::api::SpecRefusal;
use wire::acme::schedule::OrderBudget;

use crate::account::IssuerInUse;
use crate::certificate::CertificateKeeper;
use crate::lock::LockWatch;
use crate::now::now_s;
use crate::on_demand::{DemandCall, DemandedName};
use crate::on_demand_plan::OnDemandPlan;
use crate::permission::{NameVerdict, Permission, ask};
use crate::plan::AcmeCertificate;
use crate::requests;
use crate::state_folder::StateFolder;
use crate::stored::StoredCertificate;

/// The most questions that are under way at once.
const ASKS_MAX: usize = 16;
/// How long a name is refused: that the endpoint has not allowed, and that it could not be asked
/// about or for which there is no room.
const REFUSED_MS: u64 = 10 * 60 * 1000;
const UNKNOWN_MS: u64 = 60 * 1000;
/// How often unused names are looked for, and how exactly the time of their last use is stored.
const SWEEP_PAUSE: Duration = Duration::from_secs(60 * 60);
const USE_STORED_S: i64 = 24 * 60 * 60;
/// The shortest time between two complaints about new names, which clients choose.
const COMPLAINT_PAUSE_S: i64 = 60;

type RunningKeeper = (Rc<CertificateKeeper>, Task);

/// Keeps the certificates of the names that clients tell.
pub(crate) struct OnDemandKeeper {
    plan: OnDemandPlan,
    issuers: Vec<Rc<IssuerInUse>>,
    keepers: RefCell<HashMap<Box<str>, RunningKeeper>>,
    /// Handshakes that wait for an answer about a new name.
    asked: RefCell<HashMap<Box<str>, Vec<MailboxSender<()>>>>,
    budget: Cell<OrderBudget>,
    complained_s: Cell<i64>,
    tasks: RefCell<Vec<Task>>,
}

impl OnDemandKeeper {
    /// Goes on with the names that are known, or else stored. Blocks on the disk.
    pub(crate) fn start(plan: OnDemandPlan, issuers: Vec<Rc<IssuerInUse>>) -> Rc<Self> {
        let budget = OrderBudget::new(
            plan.rules.new_per_hour_max,
            (3600 / plan.rules.new_per_hour_max.max(1)).max(1),
        );
        let keeper = Rc::new(Self {
            plan,
            issuers,
            keepers: RefCell::default(),
            asked: RefCell::default(),
            budget: Cell::new(budget),
            complained_s: Cell::new(i64::MIN / 2),
            tasks: RefCell::default(),
        });
        for demanded in keeper.plan.names.all() {
            keeper.keep(&demanded.certificate.shown(), demanded.used_s()).show_stored();
        }
        if keeper.keepers.borrow().is_empty() {
            keeper.keep_stored();
        }
        let (sender, calls) = net::mailbox();
        keeper.plan.names.serve_by(Some(sender));
        let tasks = [net::spawn(keeper.clone().serve(calls)), net::spawn(keeper.clone().sweep())];
        keeper.tasks.borrow_mut().extend(tasks);
        keeper
    }

    pub(crate) fn stop(&self) {
        self.plan.names.serve_by(None);
        self.tasks.borrow_mut().drain(..).for_each(|task| task.stop());
        self.keepers.borrow_mut().drain().for_each(|(_, (_, task))| task.stop());
    }

    pub(crate) fn plan(&self) -> &OnDemandPlan {
        &self.plan
    }

    /// The keeper of the certificate whose files begin so.
    pub(crate) fn keeper_of(&self, stem: &str) -> Option<Rc<CertificateKeeper>> {
        let keepers = self.keepers.borrow();
        let found = keepers.values().find(|(keeper, _)| keeper.certificate.stem == stem);
        found.map(|(keeper, _)| keeper.clone())
    }

    /// The keepers of all names.
    pub(crate) fn keepers(&self) -> Vec<Rc<CertificateKeeper>> {
        self.keepers.borrow().values().map(|(keeper, _)| keeper.clone()).collect()
    }

    fn keep_stored(self: &Rc<Self>) {
        let stored = stored_names(self.plan.folder());
        let stored = stored.unwrap_or_else(|error| {
            log(Level::Error, format_args!("names cannot be read: {error}"));
            Vec::new()
        });
        for (name, used_s) in stored.into_iter().take(self.plan.rules.names_max) {
            self.keep(&name, used_s).show_stored();
        }
    }

    /// Keeps a certificate for the name from now on.
    fn keep(self: &Rc<Self>, name: &str, used_s: i64) -> Rc<CertificateKeeper> {
        let before = self.plan.names.find(name).map(|known| known.certificate.kept.clone());
        let issuers = self.plan.issuers.clone();
        let certificate = AcmeCertificate::demanded(name, self.plan.key, issuers, before);
        let demanded = Arc::new(DemandedName::new(certificate.clone(), used_s));
        let (rules, issuer) = (self.plan.rules.clone(), self.issuers[0].clone());
        let permission = Permission::new(demanded.clone(), rules, issuer);
        let keeper = CertificateKeeper::for_demand(certificate, self.issuers.clone(), permission);
        self.plan.names.add(name, demanded);
        let task = net::spawn(keeper.clone().run());
        self.keepers.borrow_mut().insert(name.into(), (keeper.clone(), task));
        keeper
    }

    async fn serve(self: Rc<Self>, mut calls: Mailbox<DemandCall>) {
        while let Some(DemandCall { name, settled }) = calls.next().await {
            let known = self.keepers.borrow().get(&name).map(|(keeper, _)| keeper.clone());
            if let Some(keeper) = known {
                keeper.tell_when_settled(settled);
                continue;
            }
            let mut asked = self.asked.borrow_mut();
            let count = asked.len();
            match asked.get_mut(&name) {
                Some(waiting) => waiting.push(settled),
                None if count >= ASKS_MAX => {}
                None => {
                    asked.insert(name.clone(), vec![settled]);
                    net::spawn(self.clone().decide(name));
                }
            }
        }
    }

    /// Decides about a new name, and lets those who wait for it wait for its certificate.
    async fn decide(self: Rc<Self>, name: Box<str>) {
        let keeper = match self.admit(&name).await {
            Ok(allowed_s) => {
                let keeper = self.keep(&name, now_s());
                keeper.permission.iter().for_each(|permission| permission.allowed_at(allowed_s));
                Some(keeper)
            }
            Err(for_ms) => {
                self.plan.names.refuse(&name, for_ms);
                None
            }
        };
        let waiting = self.asked.borrow_mut().remove(&name).unwrap_or_default();
        if let Some(keeper) = keeper {
            waiting.into_iter().for_each(|settled| keeper.tell_when_settled(settled));
        }
    }

    /// Whether the name gets a certificate: when the endpoint has allowed it, or for how long it is
    /// refused.
    async fn admit(&self, name: &str) -> Result<i64, u64> {
        if self.plan.names.len() >= self.plan.rules.names_max {
            let max = self.plan.rules.names_max;
            self.complain(
                Level::Warn,
                format_args!("no room for \"{name}\": {max} names are known"),
            );
            return Err(UNKNOWN_MS);
        }
        let stem = AcmeCertificate::stem_of(name, self.plan.key);
        let (folder, stored) = (self.plan.folder().clone(), stem.clone());
        let is_stored = net::offload(move || folder.read(&used_file(&stored)));
        if matches!(is_stored.await, Ok(Some(_))) {
            return Ok(0);
        }
        match ask(&self.issuers[0], &self.plan.rules.ask, name).await {
            NameVerdict::Allowed => {}
            NameVerdict::Refused => {
                log(Level::Info, format_args!("\"{name}\" is not allowed"));
                return Err(REFUSED_MS);
            }
            NameVerdict::Unknown(why) => {
                let what = format_args!("cannot ask whether \"{name}\" is allowed: {why}");
                self.complain(Level::Error, what);
                return Err(UNKNOWN_MS);
            }
        }
        let mut budget = self.budget.get();
        let taken = budget.take(now_s());
        self.budget.set(budget);
        if let Err(pause_s) = taken {
            let what = format_args!("too many new names: \"{name}\" waits {pause_s} s");
            self.complain(Level::Warn, what);
            return Err(pause_s * 1000);
        }
        let (folder, text) = (self.plan.folder().clone(), used_text(name, now_s()));
        let written = net::offload(move || folder.write(&used_file(&stem), &text)).await;
        written.map(|()| now_s()).map_err(|error| {
            self.complain(Level::Error, format_args!("\"{name}\" cannot be stored: {error}"));
            UNKNOWN_MS
        })
    }

    /// Logs a message about a new name, unless there was one lately: clients choose the names, and
    /// must not be able to fill the log.
    fn complain(&self, level: Level, what: std::fmt::Arguments<'_>) {
        if now_s() - self.complained_s.get() >= COMPLAINT_PAUSE_S {
            self.complained_s.set(now_s());
            log(level, what);
        }
    }

    /// Stores the times of last use, and forgets names that no client has told for `unused`.
    async fn sweep(self: Rc<Self>) {
        // A lock that a dead process has left is taken over at the second attempt.
        let mut watches: HashMap<Box<str>, LockWatch> = HashMap::new();
        loop {
            net::sleep(SWEEP_PAUSE).await;
            for demanded in self.plan.names.all() {
                let name: Box<str> = demanded.certificate.shown().into();
                if self.is_over(&demanded) {
                    let mut watch = watches.remove(&name).unwrap_or_default();
                    if self.evict(&name, &mut watch).await.is_err() {
                        watches.insert(name, watch);
                    }
                    continue;
                }
                if demanded.unstored_s() >= USE_STORED_S {
                    let used_s = demanded.used_s();
                    let folder = self.plan.folder().clone();
                    let stem = demanded.certificate.stem.clone();
                    let text = used_text(&name, used_s);
                    if net::offload(move || folder.write(&used_file(&stem), &text)).await.is_ok() {
                        demanded.note_stored(used_s);
                    }
                }
            }
        }
    }

    /// Whether a name is unused, and has no certificate that is valid.
    fn is_over(&self, demanded: &DemandedName) -> bool {
        let progress = demanded.certificate.kept.progress();
        let end_s = progress.facts.as_ref().map_or(0, |facts| facts.validity.not_after_s);
        drop(progress);
        demanded.is_unused(self.plan.rules.unused_s) && now_s() > end_s
    }

    /// Forgets a name, and removes what is stored of it.
    pub(crate) async fn evict(&self, name: &str, watch: &mut LockWatch) -> Result<(), SpecRefusal> {
        let Some(demanded) = self.plan.names.find(name) else { return Ok(()) };
        let stem = &demanded.certificate.stem;
        let remove = |stored: &StoredCertificate<'_>| {
            stored.folder.remove(&used_file(stored.stem))?;
            stored.remove_all()
        };
        requests::forget(self.plan.folder(), stem, watch, remove).await?;
        self.plan.names.remove(name);
        if let Some((_, task)) = self.keepers.borrow_mut().remove(name) {
            task.stop();
        }
        log(Level::Notice, format_args!("\"{name}\" is forgotten"));
        Ok(())
    }
}

/// `STEM.used`: a name that clients tell, and when one did last.
fn used_file(stem: &str) -> String {
    format!("{stem}.used")
}

fn used_text(name: &str, used_s: i64) -> Vec<u8> {
    format!("{name} {used_s}\n").into_bytes()
}

fn read_used(text: &[u8]) -> Option<(String, i64)> {
    let (name, used_s) = std::str::from_utf8(text).ok()?.trim_end().split_once(' ')?;
    Some((name.to_owned(), used_s.parse().ok()?))
}

/// The stored names, the last used one first.
pub(crate) fn stored_names(folder: &StateFolder) -> io::Result<Vec<(String, i64)>> {
    let mut found = Vec::new();
    for file in folder.names_with(".used")? {
        let text = folder.read(&file)?.unwrap_or_default();
        found.extend(read_used(&text));
    }
    found.sort_by_key(|(_, used_s)| std::cmp::Reverse(*used_s));
    Ok(found)
}

fn log(level: Level, what: std::fmt::Arguments<'_>) {
    observe::log(level, format_args!("acme: on demand: {what}"));
}
