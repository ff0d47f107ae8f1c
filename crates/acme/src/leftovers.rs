//! Answers that outlived their order: a process died, or they could not be withdrawn.
//!
//! A task looks for notes in all folders, at the start and again and again. The invariant: a note
//! is touched only under the lock of its name, which whoever orders holds.

use std::collections::HashMap;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use net::clock;
use observe::Level;

use crate::account::IssuerInUse;
use crate::answers::{NOTE, PublishedAnswer};
use crate::challenges::PublishedChallenges;
use crate::dns01::RecordChange;
use crate::lock::{LockWatch, NameLock, RENEWAL_INTERVAL};
use crate::state_folder::StateFolder;
use crate::stored::StoredCertificate;

/// How often folders are searched if nothing was left there.
const SEARCH_PAUSE: Duration = Duration::from_secs(600);
/// If something could not be withdrawn, pauses double from the first to the second.
const FAILURE_PAUSE_MIN: Duration = Duration::from_secs(60);
const FAILURE_PAUSE_MAX: Duration = Duration::from_secs(3600);

/// A note that was found.
struct Leftover {
    watch: LockWatch,
    /// When to look at it again, on the worker's clock.
    due_ms: u64,
    failure_pause: Duration,
}

/// The result of one attempt to withdraw the answers in a note.
enum Attended {
    Withdrawn,
    Failed,
    /// The name is locked: its owner orders, or is dead.
    Locked,
}

/// Withdraws the answers that are noted in these folders, until it is dropped.
pub(crate) async fn withdraw_all(folders: Vec<Arc<StateFolder>>, issuers: Vec<Rc<IssuerInUse>>) {
    let mut known: HashMap<(String, String), Leftover> = HashMap::new();
    loop {
        let mut left = HashMap::new();
        for folder in &folders {
            for stem in stems(folder).await {
                let place = (folder.shown(), stem);
                let mut leftover = known.remove(&place).unwrap_or_default();
                if leftover.due_ms > clock::now_ms()
                    || !leftover.attend(folder, &place.1, &issuers).await
                {
                    left.insert(place, leftover);
                }
            }
        }
        known = left;
        let next_ms = known.values().map(|leftover| leftover.due_ms).min();
        let pause = next_ms.map_or(SEARCH_PAUSE, |due_ms| {
            Duration::from_millis(due_ms.saturating_sub(clock::now_ms()).max(1))
        });
        net::sleep(pause.min(SEARCH_PAUSE)).await;
    }
}

impl Default for Leftover {
    fn default() -> Self {
        Self { watch: LockWatch::default(), due_ms: 0, failure_pause: FAILURE_PAUSE_MIN }
    }
}

impl Leftover {
    /// Whether it is withdrawn.
    async fn attend(
        &mut self,
        folder: &Arc<StateFolder>,
        stem: &str,
        issuers: &[Rc<IssuerInUse>],
    ) -> bool {
        let pause = match attend(folder, stem, issuers, &mut self.watch).await {
            Attended::Withdrawn => return true,
            Attended::Locked => RENEWAL_INTERVAL,
            Attended::Failed => {
                let longer = (self.failure_pause * 2).min(FAILURE_PAUSE_MAX);
                std::mem::replace(&mut self.failure_pause, longer)
            }
        };
        self.due_ms = clock::now_ms() + pause.as_millis() as u64;
        false
    }
}

/// The stems of the notes in a folder.
async fn stems(folder: &Arc<StateFolder>) -> Vec<String> {
    let folder = folder.clone();
    let names = net::offload(move || folder.names("").unwrap_or_default()).await;
    let stem = |name: String| Some(name.strip_suffix(NOTE)?.strip_suffix('.')?.to_owned());
    names.into_iter().filter_map(stem).collect()
}

async fn attend(
    folder: &Arc<StateFolder>,
    stem: &str,
    issuers: &[Rc<IssuerInUse>],
    watch: &mut LockWatch,
) -> Attended {
    let done = match NameLock::take(folder, stem, watch).await {
        Ok(None) => return Attended::Locked,
        Ok(Some(lock)) => {
            let done = withdraw_noted(folder, stem, issuers).await;
            lock.release().await;
            done
        }
        Err(error) => Err(error.to_string()),
    };
    match done {
        Ok(()) => Attended::Withdrawn,
        Err(error) => {
            let text = format_args!("acme: an answer to a challenge is left (\"{stem}\"): {error}");
            observe::log(Level::Error, text);
            Attended::Failed
        }
    }
}

async fn withdraw_noted(
    folder: &Arc<StateFolder>,
    stem: &str,
    issuers: &[Rc<IssuerInUse>],
) -> Result<(), String> {
    let (state, name) = (folder.clone(), stem.to_owned());
    let read = net::offload(move || StoredCertificate { folder: &state, stem: &name }.answers());
    let answers = read.await.map_err(|error| error.to_string())?;
    withdraw(folder, stem, issuers, answers).await
}

/// Withdraws answers, and forgets those that it has withdrawn. Stops at a record that cannot be
/// removed now: others of the same server could not, either.
pub(crate) async fn withdraw(
    folder: &Arc<StateFolder>,
    stem: &str,
    issuers: &[Rc<IssuerInUse>],
    answers: Vec<PublishedAnswer>,
) -> Result<(), String> {
    let (mut withdrawn, mut failure) = (Vec::new(), Ok(()));
    for answer in answers {
        match withdraw_one(folder, issuers, &answer).await {
            Ok(()) => withdrawn.push(answer),
            Err(error) => {
                failure = Err(error);
                break;
            }
        }
    }
    let (state, name) = (folder.clone(), stem.to_owned());
    let forgotten = net::offload(move || {
        StoredCertificate { folder: &state, stem: &name }.forget_answers(&withdrawn)
    });
    forgotten.await.map_err(|error| error.to_string())?;
    failure
}

async fn withdraw_one(
    folder: &Arc<StateFolder>,
    issuers: &[Rc<IssuerInUse>],
    answer: &PublishedAnswer,
) -> Result<(), String> {
    let PublishedAnswer::Dns01 { issuer, record } = answer else {
        let (folder, answer) = (folder.clone(), answer.clone());
        let withdrawn = net::offload(move || -> io::Result<()> {
            PublishedChallenges::of_process().withdraw(&answer, &folder)
        });
        return withdrawn.await.map_err(|error| error.to_string());
    };
    let named = issuers.iter().find(|one| one.issuer.name == *issuer);
    match named.and_then(|one| one.issuer.dns()) {
        Some(dns) => dns.change(record, RecordChange::Remove).await,
        None => {
            let text = format_args!(
                "acme: record \"{}\" stays: issuer \"{issuer}\" changes no records any more",
                record.name
            );
            observe::log(Level::Warn, text);
            Ok(())
        }
    }
}
