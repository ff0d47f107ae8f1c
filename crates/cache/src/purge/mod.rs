//! Purging: rules of the form "what is about this, and older than this moment, is purged".
//!
//! ```text
//! purge --> rule, with the next moment --> journal
//!             |
//!             +--> looked at when a file is used, a fill ends, or an expired reply is renewed
//!             +--> walk through the directory --> files removed, rules forgotten
//! ```
//!
//! A purge takes the same time whatever the cache has. The age of a file is its time of
//! modification. A fill that began before a rule about its reply is not kept, and every file that
//! is kept is younger than all rules so far: [`CacheZone::admit`] says which time the file must
//! have, if its own is not late enough because clocks differ.
//!
//! The invariant: once a purge is acknowledged, no reply that was fetched before it is served, also
//! by the next process, and by another one that uses the directory at the same time.

pub mod journal;
pub(crate) mod ledger;
pub mod rules;
pub mod tags;
#[cfg(test)]
mod tests;
pub mod walk;

use std::io;
use std::path::Path;
use std::sync::atomic::Ordering;

pub use crate::file_time::modified_ns;
use crate::key::{CacheKey, KeyDigest};
use crate::zone::CacheZone;
use journal::{JournalContents, JournalEnd, write_record};
use ledger::PurgeState;
use rules::PurgeRule;

/// How long a rule is kept after a walk has removed its files: a fill that began before it may
/// still be under way. A fill that takes longer is not kept.
const FILL_MAX_NS: u64 = 600 * 1_000_000_000;
/// The records that the journal may have besides twice those in use.
const RECORDS_SPARE: usize = 4096;

/// What rules are about: a reply that is stored, or about to be.
#[derive(Clone, Copy, Debug)]
pub struct PurgeSubject<'a> {
    pub key: &'a [u8],
    /// The digest of the key.
    pub digest: KeyDigest,
    /// Values of fields with tags, with line feeds between them.
    pub tags: &'a [u8],
}

/// What the keeper of a zone needs to know of its rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PurgeBacklog {
    pub rules: usize,
    /// The moment of the oldest rule whose files were not removed; 0: there is none.
    pub oldest_ns: u64,
    /// How often the list was full.
    pub broadened: u64,
}

impl<'a> PurgeSubject<'a> {
    pub fn new(key: &'a CacheKey, tags: &'a [u8]) -> Self {
        Self { key: key.text(), digest: key.digest(), tags }
    }
}

impl CacheZone {
    /// Purges what rules are about. When it has returned, the rules are on disk, and the purge can
    /// be acknowledged. Returns whether a key had a file; for other rules that is unknown. On an
    /// error, the rules hold for this process only.
    pub fn purge(&self, rules: Vec<PurgeRule>, now_ns: u64) -> io::Result<bool> {
        let purges = &self.purges;
        let mut records = Vec::new();
        let count = rules.len();
        let keys: Vec<_> = rules.iter().filter_map(|rule| rule.key().copied()).collect();
        let mut state = purges.write();
        for rule in rules {
            let clock_ns = purges.clock_ns.load(Ordering::Relaxed);
            let newest_ns = purges.newest_ns.load(Ordering::Relaxed);
            let at_ns = now_ns.max(clock_ns).max(newest_ns.saturating_add(1));
            purges.clock_ns.fetch_max(at_ns, Ordering::Relaxed);
            write_record(&rule, at_ns, &mut records);
            state.rules.add(rule, at_ns);
            purges.newest_ns.store(at_ns, Ordering::Release);
        }
        drop(state);
        let has_file = keys.iter().fold(false, |has_file, key| self.remove(key) | has_file);
        let mut journal = purges.journal();
        let appended = journal.append(&records, count, || purges.records())?;
        if appended.has_others {
            let (contents, written_ns) = journal.read()?;
            purges.adopt(&contents, written_ns);
        }
        if journal.records() > 2 * purges.read().rules.len() + RECORDS_SPARE {
            purges.rewrite(&mut journal)?;
            return Ok(has_file);
        }
        if appended.is_new {
            journal.sync_directory()?;
        }
        drop(journal);
        appended.file.sync_data()?;
        Ok(has_file)
    }

    /// The moment of the newest purge. Whoever fetches a reply keeps the one from before, for
    /// [`admit`](Self::admit).
    pub fn newest_purge_ns(&self) -> u64 {
        self.purges.newest_ns.load(Ordering::Acquire)
    }

    /// Whether there are rules that may be about a file of this age: then
    /// [`is_purged`](Self::is_purged) decides.
    pub fn may_be_purged(&self, modified_ns: u64) -> bool {
        if self.purges.is_watching.load(Ordering::Relaxed) {
            // The rules of this process count anyway.
            let _ = self.purges.catch_up();
        }
        self.newest_purge_ns() >= modified_ns
    }

    /// Whether a file is purged.
    pub fn is_purged(&self, subject: &PurgeSubject<'_>, modified_ns: u64) -> bool {
        self.newest_about(&self.purges.read(), subject) >= modified_ns
    }

    /// Whether a tag was purged after a file was written, so that its tags count.
    pub fn has_purged_tags_since(&self, modified_ns: u64) -> bool {
        self.purges.read().rules.has_tags_since(modified_ns)
    }

    /// Whether an error is purged that was remembered for a key, of a request that began when the
    /// newest purge was `begun_ns`. Its tags are not known, so that any may be meant.
    pub fn is_error_purged(&self, subject: &PurgeSubject<'_>, begun_ns: u64) -> bool {
        let next_ns = begun_ns.saturating_add(1);
        self.may_be_purged(next_ns)
            && (self.has_purged_tags_since(next_ns) || self.is_purged(subject, next_ns))
    }

    /// Whether a reply whose fetching began when the newest purge was `begun_ns` may be kept.
    /// Returns the earliest time that its file may have; `None`: it was purged meanwhile.
    pub fn admit(
        &self,
        subject: &PurgeSubject<'_>,
        begun_ns: u64,
        modified_ns: u64,
    ) -> Option<u64> {
        if self.purges.is_watching.load(Ordering::Relaxed) {
            // A reply that may have been purged by another process is not kept.
            self.purges.catch_up().ok()?;
        }
        self.admit_locked(&self.purges.read(), subject, begun_ns, modified_ns)
    }

    fn admit_locked(
        &self,
        state: &PurgeState,
        subject: &PurgeSubject<'_>,
        begun_ns: u64,
        modified_ns: u64,
    ) -> Option<u64> {
        let newest_ns = self.newest_purge_ns();
        if newest_ns != begun_ns {
            let is_unknown = begun_ns < state.forgotten_ns;
            if is_unknown || self.newest_about(state, subject) > begun_ns {
                return None;
            }
        }
        let earliest_ns = newest_ns.saturating_add(1);
        self.purges.clock_ns.fetch_max(modified_ns.max(earliest_ns), Ordering::Relaxed);
        Some(earliest_ns)
    }

    /// Has an expired reply written that is valid again, unless it was purged meanwhile. `write` is
    /// given the earliest time that the file may have, and returns its time. No purge is issued
    /// before it has returned.
    pub fn renew(
        &self,
        subject: &PurgeSubject<'_>,
        begun_ns: u64,
        write: impl FnOnce(u64) -> io::Result<u64>,
    ) -> io::Result<()> {
        if self.purges.is_watching.load(Ordering::Relaxed) {
            self.purges.catch_up()?;
        }
        let state = self.purges.read();
        if let Some(earliest_ns) = self.admit_locked(&state, subject, begun_ns, 0) {
            self.purges.clock_ns.fetch_max(write(earliest_ns)?, Ordering::Relaxed);
        }
        Ok(())
    }

    fn newest_about(&self, state: &PurgeState, subject: &PurgeSubject<'_>) -> u64 {
        let PurgeSubject { key, digest, tags } = subject;
        state.rules.newest_about(key, digest, tags::tags(tags))
    }

    /// Reads the journal before anything is served, unless that was done. Returns how it ended. One
    /// that cannot be read stands for everything up to now.
    pub fn read_purges(&self, now_ns: u64) -> io::Result<JournalEnd> {
        let mut journal = self.purges.journal();
        if journal.was_read() {
            return Ok(JournalEnd::Whole);
        }
        let (contents, written_ns) = journal.read().inspect_err(|_| {
            let damaged = JournalContents { rules: Vec::new(), end: JournalEnd::Damaged };
            self.purges.adopt(&damaged, now_ns);
        })?;
        self.purges.adopt(&contents, written_ns);
        if contents.end != JournalEnd::Whole {
            // What is appended next must be readable.
            self.purges.rewrite(&mut journal)?;
        }
        Ok(contents.end)
    }

    /// Says whether another process may purge at the same time.
    pub fn watch_purges(&self, is_watching: bool) {
        self.purges.is_watching.store(is_watching, Ordering::Relaxed);
    }

    /// The path of the journal, for messages.
    pub fn journal_path(&self) -> Box<Path> {
        self.purges.journal().path().into()
    }

    /// The number of rules that were not forgotten yet.
    pub fn purge_rules(&self) -> usize {
        self.purges.read().rules.len()
    }

    pub fn purge_backlog(&self) -> PurgeBacklog {
        let state = self.purges.read();
        let PurgeState { rules, walked_ns, .. } = &*state;
        let (oldest_ns, broadened) = (rules.oldest_after(*walked_ns), rules.broadened());
        PurgeBacklog { rules: rules.len(), oldest_ns, broadened }
    }

    /// The files of rules up to this moment were removed.
    fn walked(&self, until_ns: u64) {
        let mut state = self.purges.write();
        state.walked_ns = state.walked_ns.max(until_ns);
    }

    /// Forgets rules whose files were removed long ago, in the journal as well.
    pub fn forget_purges(&self, now_ns: u64) -> io::Result<()> {
        let mut state = self.purges.write();
        let until_ns = state.walked_ns.min(now_ns.saturating_sub(FILL_MAX_NS));
        let before = state.rules.len();
        if before == 0 || until_ns <= state.forgotten_ns {
            return Ok(());
        }
        state.rules.forget_until(until_ns);
        state.forgotten_ns = until_ns;
        let is_changed = state.rules.len() < before;
        drop(state);
        match is_changed {
            true => self.purges.rewrite(&mut self.purges.journal()),
            false => Ok(()),
        }
    }
}
