//! A lock of a name: only one process, of one or of several machines, orders a certificate.
//!
//! The lock is a file with its owner and a number that the owner changes every
//! [`RENEWAL_INTERVAL`]. A lock that has not changed for two intervals is nobody's: clocks of
//! machines are not compared. Such a file is renamed away, never deleted under its name: who has
//! renamed another one than the stale one gives it back.
//!
//! ```text
//! free --create--> held --renew--> held --release--> free
//!                   |  unchanged for two intervals
//!                   +------- renamed away ---------> free
//! ```

use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use net::Task;
use observe::Level;

use crate::state_folder::StateFolder;

/// How often the owner shows that it lives.
pub(crate) const RENEWAL_INTERVAL: Duration = Duration::from_secs(5);

/// A held lock. Dropping it frees it a little later, [`release`](Self::release) at once.
pub(crate) struct NameLock {
    folder: Arc<StateFolder>,
    name: String,
    owner: String,
    is_lost: Rc<Cell<bool>>,
    is_released: bool,
    renewal: Task,
}

/// What a waiting process has seen of a lock.
#[derive(Default)]
pub(crate) struct LockWatch {
    seen: Option<(Vec<u8>, u64)>,
}

impl NameLock {
    /// Takes the lock of a name. `None`: another process has it, to be asked for again after
    /// [`RENEWAL_INTERVAL`].
    pub(crate) async fn take(
        folder: &Arc<StateFolder>,
        name: &str,
        watch: &mut LockWatch,
    ) -> io::Result<Option<Self>> {
        let owner = format!("{} {:016x}", net::process::id(), net::system::random());
        let stale = watch.stale(net::clock::now_ms());
        let (state, file, contents) = (folder.clone(), file_of(name), contents(&owner, 0));
        let taken = net::offload(move || take(&state, &file, &contents, stale.as_deref())).await?;
        if let Some(seen) = taken {
            watch.see(seen, net::clock::now_ms());
            return Ok(None);
        }
        *watch = LockWatch::default();
        let is_lost = Rc::new(Cell::new(false));
        let renewal =
            net::spawn(renew(folder.clone(), file_of(name), owner.clone(), is_lost.clone()));
        let (folder, name) = (folder.clone(), name.to_owned());
        Ok(Some(Self { folder, name, owner, is_lost, is_released: false, renewal }))
    }

    /// Whether another process has taken it, because this one was silent for too long.
    pub(crate) fn is_lost(&self) -> bool {
        self.is_lost.get()
    }

    pub(crate) async fn release(mut self) {
        self.freeing().await;
    }

    /// Frees the lock, unless it is another process's. What cannot be removed goes stale.
    fn freeing(&mut self) -> impl Future<Output = ()> + 'static {
        self.renewal.stop();
        let is_over = std::mem::replace(&mut self.is_released, true) || self.is_lost();
        let (folder, file, owner) = (self.folder.clone(), file_of(&self.name), self.owner.clone());
        async move {
            if !is_over {
                let _ = net::offload(move || match is_owned(&folder, &file, &owner)? {
                    true => folder.remove(&file),
                    false => Ok(()),
                })
                .await;
            }
        }
    }
}

impl Drop for NameLock {
    fn drop(&mut self) {
        if !self.is_released {
            net::spawn_if_running(self.freeing());
        }
    }
}

impl LockWatch {
    /// The contents of a lock that has not changed for two intervals.
    fn stale(&self, now_ms: u64) -> Option<Vec<u8>> {
        let (contents, since_ms) = self.seen.as_ref()?;
        let patience_ms = 2 * RENEWAL_INTERVAL.as_millis() as u64;
        (now_ms >= since_ms + patience_ms).then(|| contents.clone())
    }

    fn see(&mut self, contents: Vec<u8>, now_ms: u64) {
        if self.seen.as_ref().is_none_or(|(seen, _)| *seen != contents) {
            self.seen = Some((contents, now_ms));
        }
    }
}

fn file_of(name: &str) -> String {
    format!("{name}.lock")
}

fn contents(owner: &str, number: u64) -> Vec<u8> {
    format!("{owner}\n{number}\n").into_bytes()
}

fn is_owned(folder: &StateFolder, file: &str, owner: &str) -> io::Result<bool> {
    let found = folder.read(file)?;
    Ok(found.is_some_and(|found| {
        found.strip_prefix(owner.as_bytes()).is_some_and(|rest| rest.starts_with(b"\n"))
    }))
}

/// Creates the file. Returns the contents of another owner's.
fn take(
    folder: &StateFolder,
    file: &str,
    contents: &[u8],
    stale: Option<&[u8]>,
) -> io::Result<Option<Vec<u8>>> {
    if let Some(stale) = stale {
        remove_stale(folder, file, stale)?;
    }
    match folder.create(file, contents)? {
        true => Ok(None),
        // Released just now: the next call takes it.
        false => Ok(Some(folder.read(file)?.unwrap_or_default())),
    }
}

fn remove_stale(folder: &StateFolder, file: &str, stale: &[u8]) -> io::Result<()> {
    if folder.read(file)?.as_deref() != Some(stale) {
        return Ok(());
    }
    let away = format!("{file}.{:016x}", net::system::random());
    if !folder.rename(file, &away)? {
        return Ok(());
    }
    let found = folder.read(&away)?.unwrap_or_default();
    if found != stale {
        // Another process was faster, and this was its new lock.
        folder.create(file, &found)?;
    }
    folder.remove(&away)
}

/// Changes the file until it is another owner's.
async fn renew(folder: Arc<StateFolder>, file: String, owner: String, is_lost: Rc<Cell<bool>>) {
    for number in 1.. {
        net::sleep(RENEWAL_INTERVAL).await;
        let (state, name, text) = (folder.clone(), file.clone(), contents(&owner, number));
        let owner = owner.clone();
        let renewed = net::offload(move || match is_owned(&state, &name, &owner)? {
            true => state.write(&name, &text).map(|()| true),
            false => Ok(false),
        })
        .await;
        match renewed {
            Ok(true) => {}
            Ok(false) => return is_lost.set(true),
            Err(error) => {
                let text = format_args!("acme: lock \"{file}\" cannot be renewed: {error}");
                observe::log(Level::Error, text);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL_MS: u64 = RENEWAL_INTERVAL.as_millis() as u64;

    async fn take(folder: &Arc<StateFolder>, watch: &mut LockWatch) -> Option<NameLock> {
        NameLock::take(folder, "a", watch).await.unwrap()
    }

    #[test]
    fn a_lock_that_is_renewed_is_never_stale() {
        net::run(async {
            net::testing::stop_clock();
            let folder = Arc::new(StateFolder::in_memory());
            let mut watch = LockWatch::default();
            let held = take(&folder, &mut LockWatch::default()).await.unwrap();
            for _ in 0..10 {
                assert!(take(&folder, &mut watch).await.is_none());
                net::testing::advance(INTERVAL_MS + 1).await;
                // The renewal runs on another thread.
                while watch.seen.as_ref().map(|seen| &seen.0)
                    == folder.read("a.lock").unwrap().as_ref()
                {
                    // It may have begun to wait after the time had passed.
                    net::testing::advance(10).await;
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
            held.release().await;
            assert!(take(&folder, &mut watch).await.is_some());
        })
        .unwrap();
    }

    #[test]
    fn a_lock_of_a_dead_process_is_taken_after_two_intervals() {
        net::run(async {
            net::testing::stop_clock();
            let folder = Arc::new(StateFolder::in_memory());
            let mut watch = LockWatch::default();
            folder.write("a.lock", b"dead\n0\n").unwrap();
            assert!(take(&folder, &mut watch).await.is_none());
            net::testing::advance(2 * INTERVAL_MS - 1).await;
            assert!(take(&folder, &mut watch).await.is_none());
            net::testing::advance(1).await;
            let taken = take(&folder, &mut watch).await.unwrap();
            assert!(!taken.is_lost());
            assert_eq!(folder.names("a.lock.").unwrap(), [""; 0], "nothing is left of the old one");
        })
        .unwrap();
    }

    #[test]
    fn a_lock_that_changed_meanwhile_is_given_back() {
        let folder = StateFolder::in_memory();
        folder.write("a.lock", b"new").unwrap();
        remove_stale(&folder, "a.lock", b"old").unwrap();
        assert_eq!(folder.read("a.lock").unwrap().as_deref(), Some(&b"new"[..]));
    }

    #[test]
    fn an_owner_that_was_silent_for_too_long_learns_that_it_has_lost() {
        net::run(async {
            net::testing::stop_clock();
            let folder = Arc::new(StateFolder::in_memory());
            let held = take(&folder, &mut LockWatch::default()).await.unwrap();
            folder.write("a.lock", b"another\n0\n").unwrap();
            net::testing::advance(INTERVAL_MS + 1).await;
            while !held.is_lost() {
                net::yield_now().await;
            }
            held.release().await;
            assert_eq!(folder.read("a.lock").unwrap().as_deref(), Some(&b"another\n0\n"[..]));
        })
        .unwrap();
    }
}
