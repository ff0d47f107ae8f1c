//! Memory by which several worker processes keep to one limit. After a reload that needs a new
//! worker process, and during an upgrade of the program, the old and the new process serve side by
//! side for a while.
//!
//! The table has a [word](super::word) for each server and process. A process changes only its own
//! words and reads those of the others. No total is stored and nothing is handed from one process
//! to another, so a process that is killed at any instruction corrupts nothing: its words are
//! ignored from then on.
//!
//! A process registers under a number and holds a file lock for that number. The kernel releases
//! the lock when the process ends. A process that can take the lock of another's number may clear
//! that process's words.
//!
//! Which process may use a free slot is decided in [`super::row`].

use std::collections::HashMap;
use std::fmt::{self, Debug, Formatter};
use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, TryLockError};

use super::layout::{
    self, BEATS, EPOCHS, FIRST_ROW, ID, KEYS, NEXT_EPOCH, PROCESSES_MAX, REGISTERED, ROW_WORDS,
    ROWS_MAX,
};
use super::sync::{AtomicU64, SharedWords};
use super::word_state::WordState;

/// The interval of [`SharedTable::tick`].
pub const TICK_MS: u64 = 5;
/// A process without a tick for this long gets no slot reserved: it hangs.
const BEAT_MAX_MS: u64 = 200;
/// The least time between two checks for processes that have ended, if there is no free slot.
const PROBE_MS: u64 = 10;
/// The same if there is one.
const PROBE_IDLE_MS: u64 = 1000;
/// How often the lock of the rows is tried. It is held for microseconds.
const LOCK_TRIES_MAX: usize = 10_000;

/// The lock under which rows are assigned to servers. Those of the processes follow.
const ROWS_LOCK: usize = 0;
const PROCESS_LOCK: usize = 1;

/// The table as one process sees it, which is registered in it as long as this lives.
pub struct SharedTable {
    words: SharedWords,
    /// The number of this process.
    own: usize,
    /// The rows that this process uses, by key. Locked while a row is assigned.
    rows: Mutex<HashMap<u64, Used>>,
    /// When it last checked for processes that have ended. Locked during the check.
    probed_ms: Mutex<u64>,
    clock: fn() -> u64,
    /// Whether [`SharedTable::tick`] is going to be called.
    is_ticking: AtomicBool,
    start_ticks: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

/// A row that this process uses.
struct Used {
    row: usize,
    /// How many use it: two only while one of them is dropped.
    users: usize,
}

impl SharedTable {
    /// Registers this process. `clock`: milliseconds, the same for all processes.
    pub(super) fn join_words(words: SharedWords, clock: fn() -> u64) -> io::Result<Arc<Self>> {
        for own in 0..PROCESSES_MAX {
            // A number is free if no process holds its lock, even if its bit is still set.
            if words.try_lock(PROCESS_LOCK + own)? {
                clear(&words, own);
                words[REGISTERED].fetch_or(1 << own, SeqCst);
                return Ok(Arc::new(Self {
                    words,
                    own,
                    rows: Mutex::default(),
                    probed_ms: Mutex::new(0),
                    clock,
                    is_ticking: AtomicBool::new(false),
                    start_ticks: OnceLock::new(),
                }));
            }
        }
        let message = format!("{PROCESSES_MAX} worker processes already share limits");
        Err(io::Error::new(io::ErrorKind::QuotaExceeded, message))
    }

    /// A number that all processes of the table know, and no other table has.
    pub fn id(&self) -> u64 {
        let new = net::system::random() | 1;
        self.words[ID].compare_exchange(0, new, SeqCst, SeqCst).err().unwrap_or(new)
    }

    /// Begins to serve. The maxima of the process that began last apply to all.
    pub fn serve(&self) {
        let epoch = self.words[NEXT_EPOCH].fetch_add(1, SeqCst) + 1;
        self.words[EPOCHS + self.own].store(epoch, SeqCst);
    }

    /// Sets what is called, on any thread, when [`SharedTable::tick`] is to be called every
    /// [`TICK_MS`].
    pub fn on_waiting(&self, start_ticks: impl Fn() + Send + Sync + 'static) {
        // Only the first counts.
        let _ = self.start_ticks.set(Box::new(start_ticks));
    }

    /// Another process may have freed a slot: `settle` gives free slots to requests that wait, and
    /// returns whether any request still waits. False: no more ticks are needed for now.
    pub fn tick(&self, settle: impl FnOnce() -> bool) -> bool {
        self.is_ticking.store(false, SeqCst);
        self.beat();
        self.probe(PROBE_MS);
        // Before `settle`: once this process is alone, it leaves no slot free while requests wait.
        let are_several = !self.is_alone();
        let goes_on = settle() && are_several;
        if goes_on {
            self.is_ticking.store(true, SeqCst);
        }
        goes_on
    }

    /// The position of a server's row, which has one more user until [`SharedTable::leave_row`].
    /// `None` if no row is left, which is logged.
    pub(super) fn enter_row(&self, key: u64, max: u32) -> Option<usize> {
        let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        let row = match rows.get_mut(&key) {
            Some(used) => {
                used.users += 1;
                used.row
            }
            None => {
                let row = self.claim_row(key, max)?;
                rows.insert(key, Used { row, users: 1 });
                row
            }
        };
        Some(FIRST_ROW + row * ROW_WORDS)
    }

    /// Removes a user of a row.
    pub(super) fn leave_row(&self, key: u64) {
        let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(used) = rows.get_mut(&key) else { return };
        used.users -= 1;
        if used.users == 0 {
            let row = used.row;
            rows.remove(&key);
            self.words[word_at(row, self.own)].store(0, SeqCst);
        }
    }

    /// The row that has this key, or one that no process uses.
    fn claim_row(&self, key: u64, max: u32) -> Option<usize> {
        if !self.lock_rows() {
            return log_unshared("the shared memory is locked");
        }
        let row = self.find_row(key).or_else(|| self.free_row());
        if let Some(row) = row {
            self.words[KEYS + row].store(key, SeqCst);
            self.words[word_at(row, self.own)].store(WordState::present(max).bits(), SeqCst);
        }
        // If this fails, the lock still ends with this process.
        let _ = self.words.unlock(ROWS_LOCK);
        row.or_else(|| log_unshared("the shared memory is full"))
    }

    fn lock_rows(&self) -> bool {
        (0..LOCK_TRIES_MAX).any(|_| {
            let locked = self.words.try_lock(ROWS_LOCK).unwrap_or(false);
            if !locked {
                std::thread::yield_now();
            }
            locked
        })
    }

    fn find_row(&self, key: u64) -> Option<usize> {
        (0..ROWS_MAX).find(|row| self.words[KEYS + row].load(SeqCst) == key)
    }

    fn free_row(&self) -> Option<usize> {
        let unused = |row: &usize| {
            self.words[KEYS + row].load(SeqCst) == 0
                || self.registered().all(|process| {
                    !WordState::of(self.words[word_at(*row, process)].load(SeqCst)).is_present()
                })
        };
        (0..ROWS_MAX).find(unused)
    }

    pub(super) fn own(&self) -> usize {
        self.own
    }

    #[inline]
    pub(super) fn word(&self, at: usize) -> &AtomicU64 {
        &self.words[at]
    }

    /// Whether no other process is registered.
    #[inline]
    pub(super) fn is_alone(&self) -> bool {
        self.words[REGISTERED].load(SeqCst) == 1 << self.own
    }

    /// The other processes.
    pub(super) fn others(&self) -> impl Iterator<Item = usize> {
        self.registered().filter(|process| *process != self.own)
    }

    fn registered(&self) -> impl Iterator<Item = usize> + use<> {
        let registered = self.words[REGISTERED].load(SeqCst);
        (0..PROCESSES_MAX).filter(move |process| registered >> process & 1 == 1)
    }

    /// The larger the later it began to serve.
    pub(super) fn epoch(&self, process: usize) -> u64 {
        self.words[EPOCHS + process].load(SeqCst)
    }

    /// Whether a process ticks, and so takes a slot that others leave to it.
    pub(super) fn is_responsive(&self, process: usize) -> bool {
        let beat_ms = self.words[BEATS + process].load(SeqCst);
        (self.clock)().saturating_sub(beat_ms) <= BEAT_MAX_MS
    }

    /// Starts ticks, because a request waits for a slot that another process may free.
    pub(super) fn need_ticks(&self) {
        if !self.is_ticking.swap(true, SeqCst) {
            self.beat();
            if let Some(start_ticks) = self.start_ticks.get() {
                start_ticks();
            }
        }
    }

    fn beat(&self) {
        self.words[BEATS + self.own].store((self.clock)(), SeqCst);
    }

    /// Clears processes that have ended, if it is time to check. Returns whether there was one.
    pub(super) fn clear_ended(&self, is_full: bool) -> bool {
        self.probe(if is_full { PROBE_MS } else { PROBE_IDLE_MS })
    }

    fn probe(&self, pause_ms: u64) -> bool {
        let mut probed_ms = match self.probed_ms.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return false,
        };
        let now_ms = (self.clock)();
        if now_ms.saturating_sub(*probed_ms) < pause_ms {
            return false;
        }
        *probed_ms = now_ms;
        let mut found = false;
        for process in self.others() {
            let lock = PROCESS_LOCK + process;
            if self.words.try_lock(lock).unwrap_or(false) {
                found = true;
                clear(&self.words, process);
                // If this fails, the lock still ends with this process.
                let _ = self.words.unlock(lock);
            }
        }
        found
    }
}

impl Drop for SharedTable {
    fn drop(&mut self) {
        clear(&self.words, self.own);
        // Its lock goes with the words.
    }
}

impl Debug for SharedTable {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let registered = self.words[REGISTERED].load(SeqCst);
        write!(out, "process {} of {registered:b}", self.own)
    }
}

/// Removes a process from the table. The caller holds its lock.
fn clear(words: &SharedWords, process: usize) {
    words[REGISTERED].fetch_and(!(1 << process), SeqCst);
    words[EPOCHS + process].store(0, SeqCst);
    words[BEATS + process].store(0, SeqCst);
    for row in 0..ROWS_MAX {
        if words[KEYS + row].load(SeqCst) != 0 {
            words[word_at(row, process)].store(0, SeqCst);
            words[FIRST_ROW + row * ROW_WORDS + layout::LAST_GIVEN + process].store(0, SeqCst);
        }
    }
}

fn word_at(row: usize, process: usize) -> usize {
    FIRST_ROW + row * ROW_WORDS + layout::WORDS + process
}

fn log_unshared<T>(why: &str) -> Option<T> {
    let text = "an upstream limit is not shared with other worker processes";
    observe::log(observe::Level::Warn, format_args!("{text}: {why}"));
    None
}
