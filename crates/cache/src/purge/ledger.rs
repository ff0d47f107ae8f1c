//! What a zone keeps of its purges: the rules, and what this process knows of the journal.
//!
//! Lock order: the journal before the rules.

use std::fs::Metadata;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::journal::{JournalContents, JournalEnd, PurgeJournal, write_record};
use super::rules::{PurgeRule, PurgeRules};
use crate::file_time::modified_ns;

/// The purges of a zone.
#[derive(Debug)]
pub(crate) struct ZonePurges {
    /// The moment of the newest rule; 0: there is none.
    pub(super) newest_ns: AtomicU64,
    /// The latest moment that a file or a rule has.
    pub(super) clock_ns: AtomicU64,
    /// Whether another process may purge at the same time, so that the journal is looked at.
    pub(super) is_watching: AtomicBool,
    state: RwLock<PurgeState>,
    journal: Mutex<PurgeJournal>,
}

#[derive(Debug, Default)]
pub(super) struct PurgeState {
    pub(super) rules: PurgeRules,
    /// The files of rules up to this moment were removed.
    pub(super) walked_ns: u64,
    /// Rules up to this moment were forgotten.
    pub(super) forgotten_ns: u64,
}

impl ZonePurges {
    pub(crate) fn new(folder: &Path) -> Self {
        Self {
            newest_ns: AtomicU64::new(0),
            clock_ns: AtomicU64::new(0),
            is_watching: AtomicBool::new(false),
            state: RwLock::default(),
            journal: Mutex::new(PurgeJournal::new(folder)),
        }
    }

    pub(crate) fn note_file(&self, metadata: &Metadata) {
        self.clock_ns.fetch_max(modified_ns(metadata), Ordering::Relaxed);
    }

    pub(super) fn read(&self) -> RwLockReadGuard<'_, PurgeState> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn write(&self) -> RwLockWriteGuard<'_, PurgeState> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn journal(&self) -> MutexGuard<'_, PurgeJournal> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds rules of the journal.
    pub(super) fn adopt(&self, contents: &JournalContents, written_ns: u64) {
        let mut state = self.write();
        let all = (contents.end == JournalEnd::Damaged).then(|| (PurgeRule::all(), written_ns));
        for (rule, at_ns) in contents.rules.iter().chain(&all) {
            if state.rules.add(rule.clone(), *at_ns) {
                // A walk may have been over before.
                state.walked_ns = state.walked_ns.min(at_ns.saturating_sub(1));
            }
            self.newest_ns.fetch_max(*at_ns, Ordering::Release);
            self.clock_ns.fetch_max(*at_ns, Ordering::Relaxed);
        }
    }

    /// The records of all rules, and their number.
    pub(super) fn records(&self) -> (Vec<u8>, usize) {
        let (mut records, mut count) = (Vec::new(), 0);
        self.read().rules.each(|rule, at_ns| {
            write_record(rule, at_ns, &mut records);
            count += 1;
        });
        (records, count)
    }

    /// Reads what another process has written to the journal.
    pub(super) fn catch_up(&self) -> io::Result<()> {
        let mut journal = self.journal();
        if journal.has_changed() {
            let (contents, written_ns) = journal.read()?;
            self.adopt(&contents, written_ns);
        }
        Ok(())
    }

    pub(super) fn rewrite(&self, journal: &mut PurgeJournal) -> io::Result<()> {
        journal.rewrite(|contents| {
            // Rules of another process that this one does not know stay.
            let forgotten_ns = self.read().forgotten_ns;
            let known = |(_, at_ns): &(PurgeRule, u64)| *at_ns > forgotten_ns;
            let rules = contents.rules.into_iter().filter(known).collect();
            self.adopt(&JournalContents { rules, ..contents }, forgotten_ns);
            self.records()
        })
    }
}
