//! Certificates from a certificate authority of the tests, on a stopped clock.
//!
//! All tests publish the same token, so one runs after the other.

mod dns;
mod fake_authority;
mod fake_name_server;
mod many_names;
mod on_demand;

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use net::{NewKey, Task, clock};
use upstream::ResolverPolicy;
use wire::acme::ChallengeKind;
use wire::x509::SubjectName;

use crate::account::IssuerInUse;
use crate::certificate::CertificateKeeper;
use crate::challenges::PublishedChallenges;
use crate::due::DueReason;
use crate::issuer::{AccountKey, AcmeIssuer, IssuerTrust};
use crate::leftovers;
use crate::lock::LockWatch;
use crate::plan::AcmeCertificate;
use crate::state_folder::StateFolder;
use fake_authority::{FakeAuthority, NAME};

const MINUTE_MS: u64 = 60_000;
/// How much time passes at a time while something is done.
const WORKING_MS: u64 = 20;
const DAY_MS: u64 = 24 * 60 * MINUTE_MS;

/// Lets one test run at a time.
fn one_at_a_time() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn issuer(name: &str, authority: &FakeAuthority, folder: &Arc<StateFolder>) -> Arc<AcmeIssuer> {
    Arc::new(AcmeIssuer {
        name: name.into(),
        uri: authority.directory(),
        staging_uri: None,
        account_key: AccountKey::Made(NewKey::EcdsaP256),
        challenges: vec![ChallengeKind::Http01],
        dns: None,
        has_common_name: false,
        contact: Vec::new(),
        accepts_terms: true,
        external: None,
        profile: None,
        preferred_chain: None,
        trust: IssuerTrust::Any,
        folder: folder.clone(),
        on_demand: None,
        names: ResolverPolicy::default(),
        text: Vec::new(),
    })
}

/// A process that keeps one certificate.
struct Process {
    keeper: Rc<CertificateKeeper>,
    task: Task,
    working_ms: u64,
}

impl Process {
    fn start(issuers: Vec<Arc<AcmeIssuer>>) -> Self {
        let names = vec![SubjectName::of(NAME)];
        let in_use = issuers.iter().map(|issuer| IssuerInUse::new(issuer.clone())).collect();
        let certificate = AcmeCertificate::sample(names, NewKey::EcdsaP256, issuers);
        let keeper = CertificateKeeper::new(certificate, in_use);
        keeper.show_stored();
        let task = net::spawn(keeper.clone().run());
        Self { keeper, task, working_ms: WORKING_MS }
    }

    /// The number of the certificate that is shown; 0: none.
    fn number(&self) -> u64 {
        self.keeper.certificate.kept.progress().number
    }

    fn last_error(&self) -> String {
        let progress = self.keeper.certificate.kept.progress().clone();
        progress.error().map(|error| error.text.clone()).unwrap_or_default()
    }

    fn failures(&self) -> u32 {
        self.keeper.certificate.kept.progress().failures
    }

    /// Lets time pass until something has happened.
    async fn until(&self, is_done: impl Fn() -> bool) {
        let began = Instant::now();
        while !is_done() {
            assert!(began.elapsed() < Duration::from_secs(60), "nothing happens");
            self.pass(1000).await;
        }
    }

    /// Lets this time pass at most: less while the process does something, which must not seem to
    /// take long. Returns how much it was.
    async fn pass(&self, ms: u64) -> u64 {
        net::testing::settle().await;
        let ms = if self.keeper.is_waiting.get() { ms } else { ms.min(self.working_ms) };
        net::testing::advance(ms).await;
        std::thread::sleep(Duration::from_millis(1));
        ms
    }

    /// Lets a long time pass, in steps.
    async fn pass_slowly(&self, ms: u64, step_ms: u64) {
        let mut left_ms = ms;
        while left_ms > 0 {
            left_ms -= self.pass(step_ms.min(left_ms)).await;
        }
    }

    fn end(self) {
        self.task.stop();
    }
}

fn simulate(test: impl AsyncFnOnce()) {
    let _turn = one_at_a_time();
    net::run(async {
        net::testing::stop_clock();
        test().await;
    })
    .unwrap();
}

#[test]
fn a_certificate_is_obtained_once_stored_and_shown() {
    simulate(async || {
        let (authority, folder) = (FakeAuthority::start(), Arc::new(StateFolder::in_memory()));
        let process = Process::start(vec![issuer("a", &authority, &folder)]);
        assert!(process.keeper.certificate.kept.slot.current().is_none());
        process.until(|| process.number() == 1).await;
        process.pass_slowly(10 * MINUTE_MS, MINUTE_MS).await;
        assert_eq!(authority.count("/new-order"), 1);
        let stem = &process.keeper.certificate.stem;
        let files = [format!("{stem}.1.crt"), format!("{stem}.1.key"), format!("{stem}.json")];
        assert_eq!(folder.names(NAME).unwrap(), files, "neither order nor lock is left");
        assert_eq!(folder.names("http-01").unwrap(), [""; 0], "the answer is withdrawn");
        process.end();
        // Another process shows it at once, and asks for nothing but the renewal window.
        let next = Process::start(vec![issuer("a", &authority, &folder)]);
        assert_eq!(next.number(), 1);
        next.pass_slowly(10 * MINUTE_MS, MINUTE_MS).await;
        assert_eq!((authority.count("/new-order"), authority.count("/account")), (1, 1));
        next.end();
    });
}

#[test]
fn a_certificate_is_renewed_when_two_thirds_of_its_time_are_over() {
    simulate(async || {
        let (authority, folder) = (FakeAuthority::start(), Arc::new(StateFolder::in_memory()));
        let process = Process::start(vec![issuer("a", &authority, &folder)]);
        process.until(|| process.number() == 1).await;
        process.pass_slowly(57 * DAY_MS, 60 * MINUTE_MS).await;
        assert_eq!(process.number(), 1);
        authority.set_time((clock::unix_ms() / 1000) as i64);
        process.pass_slowly(6 * DAY_MS, 60 * MINUTE_MS).await;
        process.until(|| process.number() == 2).await;
        assert_eq!(authority.count("/new-order"), 2);
        process.end();
    });
}

#[test]
fn a_server_that_says_when_to_retry_is_left_alone_until_then_also_after_a_restart() {
    simulate(async || {
        let (authority, folder) = (FakeAuthority::start(), Arc::new(StateFolder::in_memory()));
        authority.fail("/new-order", 1, 429, "Retry-After: 7200\r\n");
        let process = Process::start(vec![issuer("a", &authority, &folder)]);
        process.until(|| process.failures() == 1).await;
        let asked = authority.requests();
        process.pass_slowly(60 * MINUTE_MS, MINUTE_MS).await;
        process.end();
        let next = Process::start(vec![issuer("a", &authority, &folder)]);
        next.pass_slowly(59 * MINUTE_MS, MINUTE_MS).await;
        assert_eq!(authority.requests(), asked);
        next.until(|| next.number() == 1).await;
        assert_eq!(authority.count("/new-order"), 2);
        next.end();
    });
}

#[test]
fn failures_are_followed_by_longer_and_longer_pauses() {
    simulate(async || {
        let (authority, folder) = (FakeAuthority::start(), Arc::new(StateFolder::in_memory()));
        authority.fail("/new-order", 100, 500, "");
        let process = Process::start(vec![issuer("a", &authority, &folder)]);
        process.pass_slowly(3 * 60 * MINUTE_MS, MINUTE_MS / 2).await;
        assert_eq!(authority.count("/new-order"), 4, "at once, after 1, 10 and 100 minutes");
        process.pass_slowly(20 * 60 * MINUTE_MS, 10 * MINUTE_MS).await;
        assert_eq!(authority.count("/new-order"), 4, "then once a day");
        process.end();
    });
}

#[test]
fn the_next_issuer_is_asked_if_one_fails() {
    simulate(async || {
        let (one, other) = (FakeAuthority::start(), FakeAuthority::start());
        let folder = Arc::new(StateFolder::in_memory());
        let others = Arc::new(StateFolder::in_memory());
        one.fail("/new-order", 1, 503, "");
        let process =
            Process::start(vec![issuer("a", &one, &folder), issuer("b", &other, &others)]);
        process.until(|| process.number() == 1).await;
        assert_eq!((one.count("/new-order"), other.count("/new-order")), (1, 1));
        assert_eq!(others.names("account").unwrap(), ["account.key", "account.url"]);
        process.end();
    });
}

/// The authority says that its own certificates have begun long ago, so each is due at once.
#[test]
fn a_restart_does_not_end_the_pause_after_certificates_in_haste() {
    simulate(async || {
        let (authority, folder) = (FakeAuthority::start(), Arc::new(StateFolder::in_memory()));
        authority.set_time((clock::unix_ms() / 1000) as i64 - 80 * 24 * 60 * 60);
        let process = Process::start(vec![issuer("a", &authority, &folder)]);
        process.until(|| process.number() == 3).await;
        process.end();
        let next = Process::start(vec![issuer("a", &authority, &folder)]);
        next.pass_slowly(9 * MINUTE_MS, MINUTE_MS / 2).await;
        assert_eq!(authority.count("/new-order"), 3, "the third is followed by ten minutes");
        next.pass_slowly(3 * MINUTE_MS, MINUTE_MS / 2).await;
        next.until(|| next.number() == 4).await;
        next.end();
    });
}

#[test]
fn a_broken_file_is_looked_at_again_after_a_pause() {
    simulate(async || {
        let (authority, folder) = (FakeAuthority::start(), Arc::new(StateFolder::in_memory()));
        let process = Process::start(vec![issuer("a", &authority, &folder)]);
        process.until(|| process.number() == 1).await;
        let manifest = format!("{}.json", process.keeper.certificate.stem);
        let good = folder.read(&manifest).unwrap().unwrap();
        folder.write(&manifest, b"{").unwrap();
        process.keeper.urge();
        let is_failing = || process.keeper.certificate.kept.progress().storage_error.is_some();
        process.until(is_failing).await;
        process.until(|| process.keeper.is_waiting.get()).await;
        folder.write(&manifest, &good).unwrap();
        let why = || process.keeper.certificate.kept.progress().next_attempt.map(|due| due.why);
        process.until(|| why() == Some(DueReason::Lifetime)).await;
        process.end();
    });
}

#[test]
fn a_renewal_on_request_is_done_at_once_and_four_in_a_week_are_enough() {
    simulate(async || {
        let (authority, folder) = (FakeAuthority::start(), Arc::new(StateFolder::in_memory()));
        let process = Process::start(vec![issuer("a", &authority, &folder)]);
        process.until(|| process.number() == 1).await;
        for (number, is_forced) in [(2, false), (3, true), (4, true)] {
            process.until(|| process.keeper.is_waiting.get()).await;
            authority.set_time((clock::unix_ms() / 1000) as i64);
            assert_eq!(process.keeper.request_renewal(is_forced).await.unwrap(), number - 1);
            process.until(|| process.number() == number).await;
        }
        process.until(|| process.keeper.is_waiting.get()).await;
        let refused = process.keeper.request_renewal(true).await.unwrap_err();
        assert_eq!(refused.code, "TooManyCertificates");
        process.pass_slowly(2 * DAY_MS, 60 * MINUTE_MS).await;
        assert_eq!(authority.count("/new-order"), 4, "no request is done twice");
        process.end();
    });
}

#[test]
fn a_request_waits_for_the_end_of_a_pause_unless_it_is_forced() {
    simulate(async || {
        let (authority, folder) = (FakeAuthority::start(), Arc::new(StateFolder::in_memory()));
        authority.fail("/new-order", 4, 500, "");
        let process = Process::start(vec![issuer("a", &authority, &folder)]);
        for failures in 1..=3 {
            process.until(|| process.failures() == failures).await;
            process.until(|| process.keeper.is_waiting.get()).await;
            let refused = process.keeper.request_renewal(false).await.unwrap_err();
            assert_eq!(refused.code, "Pause", "{failures}");
            process.keeper.request_renewal(true).await.unwrap();
        }
        process.until(|| process.failures() == 4).await;
        process.until(|| process.keeper.is_waiting.get()).await;
        let refused = process.keeper.request_renewal(true).await.unwrap_err();
        assert_eq!(refused.code, "AuthorityLimit", "the fifth failure would block the name");
        process.pass_slowly(61 * MINUTE_MS, MINUTE_MS).await;
        process.keeper.request_renewal(true).await.unwrap();
        process.until(|| process.number() == 1).await;
        process.end();
    });
}

#[test]
fn what_an_authority_asks_for_holds_for_requests_too() {
    simulate(async || {
        let (authority, folder) = (FakeAuthority::start(), Arc::new(StateFolder::in_memory()));
        authority.fail("/new-order", 1, 429, "Retry-After: 7200\r\n");
        let process = Process::start(vec![issuer("a", &authority, &folder)]);
        process.until(|| process.failures() == 1).await;
        process.until(|| process.keeper.is_waiting.get()).await;
        let refused = process.keeper.request_renewal(true).await.unwrap_err();
        assert_eq!((refused.code, authority.count("/new-order")), ("AuthorityLimit", 1));
        process.end();
    });
}

#[test]
fn a_forgotten_certificate_is_replaced_in_every_process() {
    simulate(async || {
        let (authority, folder) = (FakeAuthority::start(), Arc::new(StateFolder::in_memory()));
        let process = Process::start(vec![issuer("a", &authority, &folder)]);
        let other = Process::start(vec![issuer("a", &authority, &folder)]);
        process.until(|| process.number() == 1 && process.keeper.is_waiting.get()).await;
        other.keeper.urge();
        other.until(|| other.number() == 1).await;
        let key = process.keeper.certificate.kept.slot.current().unwrap().key.clone();
        process.keeper.forget(&mut LockWatch::default()).await.unwrap();
        assert!(process.keeper.certificate.kept.slot.current().is_none());
        process.until(|| process.number() == 2).await;
        other.keeper.urge();
        other.until(|| other.number() == 2).await;
        let shown = other.keeper.certificate.kept.slot.current().unwrap();
        assert_ne!(shown.key, key);
        assert_eq!(authority.count("/new-order"), 2);
        process.end();
        other.end();
    });
}

#[test]
fn after_a_failure_a_trial_order_comes_first() {
    simulate(async || {
        let (authority, staging) = (FakeAuthority::start(), FakeAuthority::start());
        let folder = Arc::new(StateFolder::in_memory());
        authority.fail("/new-order", 1, 500, "");
        staging.fail("/new-order", 1, 500, "");
        let issuer = (*issuer("a", &authority, &folder)).clone();
        let staging_uri = Some(staging.directory());
        let process = Process::start(vec![Arc::new(AcmeIssuer { staging_uri, ..issuer })]);
        let orders = || (authority.count("/new-order"), staging.count("/new-order"));
        process.until(|| process.failures() == 1).await;
        assert_eq!(orders(), (1, 0));
        process.until(|| process.failures() == 2).await;
        assert_eq!(orders(), (1, 1), "the trial fails, so nothing else is tried");
        assert!(process.last_error().contains("of a trial order"), "{}", process.last_error());
        process.until(|| process.number() == 1).await;
        assert_eq!((orders(), staging.count("/certificate")), ((2, 2), 1));
        let accounts = ["account.key", "account.staging.url", "account.url"];
        assert_eq!(folder.names("account").unwrap(), accounts);
        process.end();
    });
}

/// The process dies while the authority looks for the answer.
#[test]
fn an_answer_that_a_crash_has_left_is_withdrawn() {
    simulate(async || {
        let (authority, folder) = (FakeAuthority::start(), Arc::new(StateFolder::in_memory()));
        authority.look_for_nothing();
        let process = Process::start(vec![issuer("a", &authority, &folder)]);
        process.until(|| !folder.names("http-01").unwrap().is_empty()).await;
        process.end();
        let stem = process_stem(&folder);
        folder.write(&format!("{stem}.lock"), b"dead\n0\n").unwrap();
        let task = net::spawn(leftovers::withdraw_all(vec![folder.clone()], Vec::new()));
        until_withdrawn(&folder).await;
        assert_eq!(folder.names("http-01").unwrap(), [""; 0]);
        assert_eq!(PublishedChallenges::of_process().http_answer("token"), None);
        task.stop();
    });
}

/// The name of the certificate whose answers are noted.
fn process_stem(folder: &StateFolder) -> String {
    let notes = folder.names("").unwrap().into_iter();
    notes.filter_map(|name| name.strip_suffix(".answers").map(str::to_owned)).next().unwrap()
}

async fn until_withdrawn(folder: &StateFolder) {
    let began = Instant::now();
    while folder.names("").unwrap().iter().any(|name| name.ends_with(".answers")) {
        assert!(began.elapsed() < Duration::from_secs(60), "nothing is withdrawn");
        net::testing::advance(WORKING_MS).await;
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn nothing_is_asked_for_if_the_state_cannot_be_stored() {
    simulate(async || {
        let authority = FakeAuthority::start();
        let folder = Arc::new(StateFolder::failing_after(0, BTreeMap::new()));
        let process = Process::start(vec![issuer("a", &authority, &folder)]);
        process.pass_slowly(60 * MINUTE_MS, MINUTE_MS).await;
        assert_eq!((authority.requests(), process.number()), (0, 0));
        process.end();
    });
}

/// The disk takes no more after each number of writes, as if the process had been killed; then
/// another process goes on with what is there.
#[test]
fn a_crash_at_any_write_loses_no_key_and_repeats_no_order() {
    simulate(async || {
        let (mut writes, mut repeated, mut is_over) = (0, 0, false);
        while !is_over {
            let authority = FakeAuthority::start();
            let folder = Arc::new(StateFolder::failing_after(writes, BTreeMap::new()));
            let process = Process::start(vec![issuer("a", &authority, &folder)]);
            process.pass_slowly(20_000, 1000).await;
            process.end();
            is_over = !folder.has_failed();
            let left = Arc::new(folder.contents());
            let next = Process::start(vec![issuer("a", &authority, &left)]);
            next.until(|| next.number() == 1).await;
            let orders = authority.count("/new-order");
            assert!(orders <= 2, "{orders} orders after {writes} writes");
            repeated += orders - 1;
            let shown = next.keeper.certificate.kept.slot.current().unwrap();
            let stem = &next.keeper.certificate.stem;
            next.until(|| {
                left.read(&format!("{stem}.1.key")).unwrap().as_ref() == Some(&shown.key)
            })
            .await;
            next.end();
            writes += 1;
        }
        // An order of which the process had no time to write down the URL.
        assert_eq!(repeated, 1, "{writes} writes");
    });
}

#[test]
fn two_processes_obtain_one_certificate() {
    simulate(async || {
        let authority = FakeAuthority::start();
        let temporary = testing::Folder::new();
        let folder = || Arc::new(StateFolder::Disk(temporary.join("state")));
        folder().test().unwrap();
        let first = Process::start(vec![issuer("a", &authority, &folder())]);
        let second = Process::start(vec![issuer("a", &authority, &folder())]);
        first.until(|| first.number() == 1 && second.number() == 1).await;
        assert_eq!(authority.count("/new-order"), 1);
        first.end();
        second.end();
    });
}
