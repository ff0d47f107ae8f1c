//! The ledger as one process sees it: its blocks by name.

use std::any::Any;
use std::collections::HashMap;
use std::io;
use std::sync::Weak;
use std::sync::atomic::AtomicU64;

use net::SharedWords;

use super::blocks::{self, Owner, PROCESSES_MAX};

/// The lock under which blocks are made and taken. Those of the processes follow.
const LEDGER_LOCK: usize = 0;
const PROCESS_LOCK: usize = 1;
/// How often the lock is tried. It is held for microseconds.
const LOCK_TRIES_MAX: usize = 10_000;
/// Blocks that nobody names are freed each time so many words more are in use.
const COLLECT_STEP: usize = 128 * 1024;
/// The longest name; what is longer is cut.
const NAME_MAX: usize = 1024;

/// What a block counts: its kind, and the name within the kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct BlockName {
    kind: u64,
    name: Box<[u8]>,
}

impl BlockName {
    pub fn new(kind: u64, name: &[u8]) -> Self {
        Self { kind, name: name[..name.len().min(NAME_MAX)].into() }
    }
}

/// Whoever counts under a name holds it.
pub(crate) type LedgerHandle = dyn Any + Send + Sync;

pub(crate) struct Ledger {
    /// `None` if there is no memory.
    words: Option<&'static SharedWords>,
    /// The number of this process.
    own: usize,
    /// What this process counts.
    pub handles: HashMap<BlockName, Weak<LedgerHandle>>,
    /// The blocks of each name, and the free ones by size, as of `version`.
    named: HashMap<BlockName, Vec<usize>>,
    free: HashMap<usize, Vec<usize>>,
    version: Option<u64>,
    /// When more words than this are in use, blocks that nobody names are freed.
    collect_at: usize,
    has_warned: bool,
}

/// A block that a worker has been given.
pub(crate) struct GivenBlock {
    pub at: usize,
    pub counters: &'static [AtomicU64],
    /// What was under way in it has to be ended.
    pub was_killed: bool,
}

impl Default for Ledger {
    fn default() -> Self {
        Self {
            words: None,
            own: 0,
            handles: HashMap::new(),
            named: HashMap::new(),
            free: HashMap::new(),
            version: None,
            collect_at: COLLECT_STEP,
            has_warned: false,
        }
    }
}

impl Ledger {
    /// Registers this process in the memory, under a number that no process has. Only the first
    /// memory counts.
    pub fn join(&mut self, words: SharedWords) -> io::Result<()> {
        if self.words.is_some() {
            return Ok(());
        }
        for own in 0..PROCESSES_MAX {
            if words.try_lock(PROCESS_LOCK + own)? {
                self.own = own;
                self.words = Some(Box::leak(Box::new(words)));
                self.locked(|ledger, words| {
                    ledger.bury(words, own);
                    blocks::register(words, own);
                });
                return Ok(());
            }
        }
        let message = format!("{PROCESSES_MAX} worker processes already count");
        Err(io::Error::new(io::ErrorKind::QuotaExceeded, message))
    }

    /// Gives a worker a block of that name: one that nobody has, or a new one. `None`: there is no
    /// memory left.
    pub fn claim(&mut self, name: &BlockName, count: usize, thread: u32) -> Option<GivenBlock> {
        if self.words.is_none() {
            // A process that has joined none has memory of its own; the warning is below.
            let _ = super::own_memory().and_then(|words| self.join(words));
        }
        let owner = Owner::new(self.own, thread);
        let given = self.locked(|ledger, words| {
            ledger.reap(words);
            let known = ledger.named.get(name).into_iter().flatten().copied();
            let idle = known.map(|at| (at, blocks::owner(words, at)));
            if let Some((at, was)) = idle.into_iter().find(|(_, owner)| !owner.is_worker()) {
                blocks::set_owner(words, at, owner);
                let was_killed = was == Owner::KILLED;
                return Some(GivenBlock { at, counters: blocks::counters(words, at), was_killed });
            }
            let at = ledger.new_block(words, name, count, owner)?;
            let counters = blocks::counters(words, at);
            Some(GivenBlock { at, counters, was_killed: false })
        });
        let given = given.flatten();
        if given.is_none() && !std::mem::replace(&mut self.has_warned, true) {
            let text = "the memory for metrics is used up; some counts are missing from now on";
            observe::log(observe::Level::Warn, format_args!("{text}"));
        }
        given
    }

    /// The blocks of a name. `settle` ends what is under way in those of killed workers.
    pub fn blocks(
        &mut self,
        name: &BlockName,
        settle: fn(&[AtomicU64]),
    ) -> Vec<&'static [AtomicU64]> {
        let read = |ledger: &mut Self, words: &'static SharedWords| {
            ledger.reap(words);
            let known = ledger.named.get(name).map(Vec::as_slice).unwrap_or_default();
            for at in known.iter().filter(|at| blocks::owner(words, **at) == Owner::KILLED) {
                settle(blocks::counters(words, *at));
                blocks::set_owner(words, *at, Owner::NOBODY);
            }
            known.iter().map(|at| blocks::counters(words, *at)).collect()
        };
        self.locked(read).unwrap_or_default()
    }

    /// The blocks of a name that workers have.
    pub fn live_blocks(&mut self, name: &BlockName) -> Vec<&'static [AtomicU64]> {
        let read = |ledger: &mut Self, words: &'static SharedWords| {
            ledger.reap(words);
            let known = ledger.named.get(name).into_iter().flatten();
            let live = known.filter(|at| blocks::owner(words, **at).is_worker());
            live.map(|at| blocks::counters(words, *at)).collect()
        };
        self.locked(read).unwrap_or_default()
    }

    /// The names of a kind that begin so, in order.
    pub fn names_with(&mut self, kind: u64, prefix: &[u8]) -> Vec<Box<[u8]>> {
        let read = |ledger: &mut Self, _: &'static SharedWords| {
            let is_meant = |name: &&BlockName| name.kind == kind && name.name.starts_with(prefix);
            let found = ledger.named.keys().filter(is_meant);
            let mut found: Vec<Box<[u8]>> = found.map(|name| name.name.clone()).collect();
            found.sort_unstable();
            found
        };
        self.locked(read).unwrap_or_default()
    }

    /// A worker that ends leaves its blocks to others.
    pub fn leave(&mut self, thread: u32, had: &[usize]) {
        let owner = Owner::new(self.own, thread);
        let Some(words) = self.words else { return };
        for at in had.iter().filter(|at| blocks::owner(words, **at) == owner) {
            blocks::set_owner(words, *at, Owner::NOBODY);
        }
    }

    /// This process stops counting under a name, unless it has begun again.
    pub fn forget(&mut self, name: &BlockName, ended: *const LedgerHandle) {
        if self.handles.get(name).is_none_or(|handle| !std::ptr::addr_eq(handle.as_ptr(), ended)) {
            return;
        }
        self.handles.remove(name);
        let own = self.own;
        let Some(words) = self.words else { return };
        for at in self.named.get(name).into_iter().flatten() {
            if blocks::owner(words, *at).is_of(own) {
                blocks::set_owner(words, *at, Owner::NOBODY);
            }
        }
    }

    /// Releases the process's lock, as the kernel does when the process ends.
    #[cfg(test)]
    pub fn unlock_for_test(&self) {
        let words = self.words.expect("it has joined");
        words.unlock(PROCESS_LOCK + self.own).expect("it has the lock");
    }

    /// Calls `act` while no other process makes or takes blocks, with names that are up to date.
    fn locked<T>(&mut self, act: impl FnOnce(&mut Self, &'static SharedWords) -> T) -> Option<T> {
        let words = self.words?;
        let locks = (0..LOCK_TRIES_MAX).any(|_| {
            let locked = words.try_lock(LEDGER_LOCK).unwrap_or(false);
            if !locked {
                std::thread::yield_now();
            }
            locked
        });
        if !locks {
            return None;
        }
        self.read_names(words);
        let done = act(self, words);
        // If this fails, the lock still ends with this process.
        let _ = words.unlock(LEDGER_LOCK);
        Some(done)
    }

    /// Reads which blocks there are, if that has changed.
    fn read_names(&mut self, words: &SharedWords) {
        let version = blocks::version(words);
        if self.version == Some(version) {
            return;
        }
        self.version = Some(version);
        self.named.clear();
        self.free.clear();
        for at in blocks::all(words) {
            match blocks::kind(words, at) {
                0 => self.free.entry(blocks::size(words, at)).or_default().push(at),
                kind => {
                    let name = BlockName { kind, name: blocks::name(words, at) };
                    self.named.entry(name).or_default().push(at);
                }
            }
        }
    }

    /// Leaves the blocks of processes that have ended to others.
    fn reap(&mut self, words: &SharedWords) {
        let own = self.own;
        for process in blocks::registered(words).filter(|process| *process != own) {
            let lock = PROCESS_LOCK + process;
            if words.try_lock(lock).unwrap_or(false) {
                self.bury(words, process);
                blocks::unregister(words, process);
                let _ = words.unlock(lock);
            }
        }
    }

    fn bury(&mut self, words: &SharedWords, process: usize) {
        let all = self.named.values().flatten();
        for at in all.filter(|at| blocks::owner(words, **at).is_of(process)) {
            blocks::set_owner(words, *at, Owner::KILLED);
        }
    }

    fn new_block(
        &mut self,
        words: &SharedWords,
        name: &BlockName,
        count: usize,
        owner: Owner,
    ) -> Option<usize> {
        if blocks::used(words) > self.collect_at {
            self.collect(words);
        }
        let size = blocks::size_for(name.name.len(), count);
        let kept = self.free.get_mut(&size).and_then(Vec::pop);
        let at = kept.or_else(|| blocks::append(words, size))?;
        blocks::fill(words, at, name.kind, &name.name, owner);
        self.named.entry(name.clone()).or_default().push(at);
        self.changed(words);
        Some(at)
    }

    /// Frees the blocks that no worker has and no configuration of this process names.
    fn collect(&mut self, words: &SharedWords) {
        let handles = &self.handles;
        for (name, named) in &mut self.named {
            let is_live = handles.get(name).is_some_and(|handle| handle.strong_count() > 0);
            named.retain(|at| {
                let keep = is_live || blocks::owner(words, *at).is_worker();
                if !keep {
                    blocks::free(words, *at);
                    self.free.entry(blocks::size(words, *at)).or_default().push(*at);
                }
                keep
            });
        }
        self.named.retain(|_, named| !named.is_empty());
        self.collect_at = blocks::used(words) + COLLECT_STEP;
        self.changed(words);
    }

    /// Tells other processes that names have changed, which this one knows.
    fn changed(&mut self, words: &SharedWords) {
        blocks::change(words);
        self.version = Some(blocks::version(words));
    }
}
