//! What one node knows of a table that several share: which change each key has, and what follows
//! from a record of the store.
//!
//! ```text
//! table changes --look--> stamped, unwritten --next_write--> store
//! store --hear--> older than ours: unwritten
//!           `----> newer: outgoing --take_merge--> the process that decides --> table changes
//! ```
//!
//! **The later stamp wins**, at every node, whatever the order in which nodes hear of changes. So
//! all tables end equal once nothing changes any more, also after a store has lost its content:
//! every node that knows a later record writes it again.
//!
//! An entry without a stamp comes from a file, and gives way to whatever the store has. Entries end
//! by themselves at every node, which is no change.
//!
//! Deliberately absent: commands and replies, clocks, and who decides about the table.

use std::collections::{HashMap, VecDeque};

use super::change::KeyvalPair;
use super::entry::KeyvalEntry;
use super::graves::Graves;
use super::key::KeyvalType;
use super::merge::{MergedKey, is_same};
use super::record::{KeyvalField, KeyvalRecord, KeyvalStamp, RecordEntry};
use super::table::KeyvalTable;
use super::trie::TrieEntries;

/// How long the store keeps a removed key, so that nodes that were away do not bring it back.
pub(super) const GRAVE_MS: i64 = 24 * 60 * 60 * 1000;
/// A stamp so far ahead of the store's time is none of a node.
const AHEAD_MS_MAX: i64 = 24 * 60 * 60 * 1000;
/// How long an entry that has ended stays in the store, because clocks are read at different times.
const ENDED_MS: i64 = 60_000;
/// About the bytes of changes that are passed on together.
const MERGE_BYTES_MAX: usize = 512 * 1024;

/// One moment by the store's clock and by [`net::clock::monotonic_ms`].
#[derive(Clone, Copy, Debug)]
pub(super) struct StoreMoment {
    pub(super) store_ms: i64,
    pub(super) monotonic_ms: u64,
}

/// What a node knows of a shared table.
#[derive(Debug)]
pub struct KeyvalReplica {
    node: u64,
    kind: KeyvalType,
    /// The table as of the last look.
    seen: KeyvalTable,
    has_begun: bool,
    known: HashMap<KeyvalField, KnownKey>,
    graves: Graves,
    /// Grows when all records are compared anew.
    round: u32,
    unwritten: VecDeque<KeyvalField>,
    /// Changes for the process that decides, and those that it is deciding about.
    outgoing: VecDeque<OutgoingKey>,
    under_way: Vec<(KeyvalField, KeyvalStamp)>,
    awaited: HashMap<KeyvalField, AwaitedKey>,
    /// Whether it has decided, once it has answered.
    answer: Option<bool>,
    /// Fields that have changed again while the change before is decided about.
    again: Vec<KeyvalField>,
    /// Keys for which there was no room.
    refused: u64,
}

/// A key with a stamp.
#[derive(Debug)]
struct KnownKey {
    stamp: KeyvalStamp,
    is_removed: bool,
    /// The round in which it was last compared.
    round: u32,
    is_unwritten: bool,
}

/// A change for the process that decides.
#[derive(Debug)]
struct OutgoingKey {
    field: KeyvalField,
    stamp: KeyvalStamp,
    merged: MergedKey,
}

/// A change that the table does not have yet.
#[derive(Debug)]
struct AwaitedKey {
    stamp: KeyvalStamp,
    after: Option<KeyvalPair>,
}

/// What became of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeardRecord {
    Taken,
    /// The store need not keep it.
    Outlived,
    /// It is no record of a key that this table could have.
    Invalid,
}

/// A walk over all entries and removed keys, for those that the store lacks.
pub(super) struct ReplicaSweep(TrieEntries);

impl StoreMoment {
    fn deadline_ms(self, expires_ms: i64) -> u64 {
        let left_ms = u64::try_from(expires_ms.saturating_sub(self.store_ms)).unwrap_or(0);
        self.monotonic_ms.saturating_add(left_ms)
    }

    fn expires_ms(self, deadline_ms: u64) -> i64 {
        self.store_ms.saturating_add_unsigned(deadline_ms.saturating_sub(self.monotonic_ms))
    }
}

impl KeyvalReplica {
    pub(super) fn new(node: u64, kind: KeyvalType) -> Self {
        Self {
            node,
            kind,
            seen: KeyvalTable::new(kind, 0),
            has_begun: false,
            known: HashMap::new(),
            graves: Graves::default(),
            round: 0,
            unwritten: VecDeque::new(),
            outgoing: VecDeque::new(),
            under_way: Vec::new(),
            awaited: HashMap::new(),
            answer: None,
            again: Vec::new(),
            refused: 0,
        }
    }

    /// Begins with a table whose entries come from files, unless it has begun.
    pub(super) fn begin(&mut self, table: KeyvalTable) {
        if !std::mem::replace(&mut self.has_begun, true) {
            self.seen = table;
        }
    }

    /// Finds what has changed in the table. It is a change of this node, unless it is one that the
    /// node has passed on.
    pub(super) fn look(&mut self, table: KeyvalTable, at: StoreMoment) {
        let before = std::mem::replace(&mut self.seen, table);
        for (old, new) in self.seen.changes_since(&before) {
            let Some(any) = new.as_ref().or(old.as_ref()) else { continue };
            let field: KeyvalField = self.kind.shared_name(&any.key).into();
            let after = new.as_ref().map(|entry| entry.to_pair());
            let passed_on = self.awaited.get(&field).filter(|awaited| awaited.after == after);
            if let Some(stamp) = passed_on.map(|awaited| awaited.stamp) {
                self.awaited.remove(&field);
                self.adopt(field, stamp, after.is_none());
            } else if new.is_none() && old.is_some_and(|old| !old.is_live(at.monotonic_ms)) {
                self.end(field);
            } else {
                let stamp = self.next_stamp(&field, at);
                self.know(field.clone(), stamp, after.is_none());
                self.awaited.remove(&field);
                self.write_later(field);
            }
        }
    }

    /// All records are compared from now on.
    pub(super) fn begin_round(&mut self) {
        self.round = self.round.wrapping_add(1);
    }

    /// Leaves it to a comparison what is to be written.
    pub(super) fn write_nothing(&mut self) {
        for field in self.unwritten.drain(..) {
            if let Some(known) = self.known.get_mut(&field) {
                known.is_unwritten = false;
            }
        }
    }

    /// Compares a record of the store with what is known.
    pub(super) fn hear(&mut self, field: &[u8], record: &[u8], at: StoreMoment) -> HeardRecord {
        let Some(record) = self.checked(field, record, at) else { return HeardRecord::Invalid };
        let outlived = record.outlived(at);
        let KeyvalRecord { stamp, entry } = record;
        if let Some(awaited) = self.awaited.get(field) {
            if awaited.stamp < stamp {
                self.again.push(field.into());
            }
            return HeardRecord::Taken;
        }
        if let Some(known) = self.known.get_mut(field)
            && known.stamp >= stamp
        {
            known.round = self.round;
            if known.stamp == stamp {
                return outlived;
            }
            self.write_later(field.into());
            return HeardRecord::Taken;
        }
        let is_removed = entry.is_none();
        let after = entry.and_then(|entry| entry.into_pair(field, at));
        let before = self.seen.get(field, at.monotonic_ms).map(KeyvalEntry::to_pair);
        if !is_same(before.as_ref(), after.as_ref()) {
            self.awaited.insert(field.into(), AwaitedKey { stamp, after: after.clone() });
            let (field, merged) = (field.into(), MergedKey { before, after });
            self.outgoing.push_back(OutgoingKey { field, stamp, merged });
        } else if before.is_some() || is_removed && outlived == HeardRecord::Taken {
            self.adopt(field.into(), stamp, is_removed);
        }
        outlived
    }

    /// Notes that a record with that stamp is in the store. False if it has to be read.
    pub(super) fn has_heard(&mut self, field: &[u8], stamp: KeyvalStamp) -> bool {
        let Some(known) = self.known.get_mut(field) else { return false };
        if known.stamp == stamp {
            known.round = self.round;
        }
        known.stamp == stamp
    }

    /// Begins to look for what the store lacks, after all its records were compared.
    pub(super) fn sweep(&self) -> ReplicaSweep {
        ReplicaSweep(self.seen.all())
    }

    /// Goes on with so many entries. False at the end.
    pub(super) fn go_on(&mut self, sweep: &mut ReplicaSweep, most: usize, at: StoreMoment) -> bool {
        for _ in 0..most {
            let Some(entry) = sweep.0.next() else {
                self.sweep_graves(at);
                return false;
            };
            let field: KeyvalField = self.kind.shared_name(&entry.key).into();
            let known = self.known.get(&field);
            let is_compared = known.is_some_and(|known| known.round == self.round)
                || self.awaited.contains_key(&field);
            if is_compared || self.seen.get(&field, at.monotonic_ms).is_none() {
                continue;
            }
            if known.is_none() {
                self.know(field.clone(), KeyvalStamp { ms: 0, node: self.node }, false);
            }
            self.write_later(field);
        }
        true
    }

    fn sweep_graves(&mut self, at: StoreMoment) {
        let oldest_ms = at.store_ms.saturating_sub(GRAVE_MS);
        while let Some(grave) = self.graves.take_before(oldest_ms) {
            self.forget(grave);
        }
        let is_lacking = |known: &KnownKey| {
            known.is_removed && known.round != self.round && known.stamp.ms >= oldest_ms
        };
        let lacking = self.known.iter().filter(|(_, known)| is_lacking(known));
        let lacking: Vec<KeyvalField> = lacking.map(|(field, _)| field.clone()).collect();
        lacking.into_iter().for_each(|field| self.write_later(field));
    }

    /// The next record that the store lacks.
    pub(super) fn next_write(&mut self, at: StoreMoment) -> Option<(KeyvalField, KeyvalRecord)> {
        loop {
            let field = self.unwritten.pop_front()?;
            let Some(known) = self.known.get_mut(&field) else { continue };
            known.is_unwritten = false;
            known.round = self.round;
            let (stamp, is_removed) = (known.stamp, known.is_removed);
            let entry = self.seen.get(&field, at.monotonic_ms).filter(|_| !is_removed);
            let entry = entry.map(|entry| RecordEntry {
                key: (entry.key != field).then(|| entry.key.clone()),
                value: entry.value.clone(),
                expires_ms: entry.deadline_ms.map(|deadline_ms| at.expires_ms(deadline_ms)),
            });
            if entry.is_none() {
                // Removed, or ended before it was written: what was there must not come back.
                self.adopt(field.clone(), stamp, true);
            }
            return Some((field, KeyvalRecord { stamp, entry }));
        }
    }

    /// Changes for the process that decides, unless it is deciding about others.
    pub(super) fn take_merge(&mut self) -> Option<Vec<MergedKey>> {
        if !self.under_way.is_empty() || self.outgoing.is_empty() {
            return None;
        }
        let (mut bytes, mut keys) = (0, Vec::new());
        while bytes < MERGE_BYTES_MAX
            && let Some(OutgoingKey { field, stamp, merged }) = self.outgoing.pop_front()
        {
            bytes += merged.bytes();
            keys.push(merged);
            self.under_way.push((field, stamp));
        }
        Some(keys)
    }

    /// Called when the process that decides has answered: whether it has decided.
    pub(super) fn answer(&mut self, is_decided: bool) {
        self.answer = Some(is_decided);
    }

    pub(super) fn take_answer(&mut self) -> Option<bool> {
        self.answer.take()
    }

    /// Called after the answer, when the table was looked at. `is_decided`: the changes are in the
    /// table, but for those that have no room. Returns the fields to be read again.
    pub(super) fn decided(&mut self, is_decided: bool, at: StoreMoment) -> Vec<KeyvalField> {
        for (field, stamp) in std::mem::take(&mut self.under_way) {
            // A change of this node, or the change itself, may have come before the answer.
            if self.awaited.get(&field).is_none_or(|awaited| awaited.stamp != stamp) {
                continue;
            }
            let after = self.awaited.remove(&field).and_then(|awaited| awaited.after);
            if !is_decided {
                continue;
            }
            let has_room = |pair: &KeyvalPair| self.seen.clone().put(pair, at.monotonic_ms).is_ok();
            if after.is_none_or(|pair| has_room(&pair)) {
                // It was made, and undone before anybody looked; or there is room by now.
                self.again.push(field);
                continue;
            }
            self.refused += 1;
            // What is there instead stays, and gives way to any change.
            if self.seen.get(&field, at.monotonic_ms).is_some() {
                self.know(field, KeyvalStamp { ms: 0, node: 0 }, false);
            }
        }
        std::mem::take(&mut self.again)
    }

    /// How many keys had no room since the last call.
    pub(super) fn take_refused(&mut self) -> u64 {
        std::mem::take(&mut self.refused)
    }

    /// Keys that wait: to be written, and to be passed on.
    pub(super) fn waiting(&self) -> (usize, usize) {
        (self.unwritten.len(), self.outgoing.len())
    }

    /// A record that may be about this key of this table.
    fn checked(&self, field: &[u8], record: &[u8], at: StoreMoment) -> Option<KeyvalRecord> {
        let record = KeyvalRecord::parse(record)?;
        let own = record.entry.as_ref().and_then(|entry| entry.key.as_deref());
        let is_named = |key: &[u8]| *self.kind.shared_name(key) == *field;
        let is_valid = self.kind.check(field).is_ok() && is_named(field);
        let is_own = own.is_none_or(|key| self.kind.check(key).is_ok() && is_named(key));
        let is_past = record.stamp.ms <= at.store_ms.saturating_add(AHEAD_MS_MAX);
        (is_valid && is_own && is_past).then_some(record)
    }

    /// The stamp of a change that this node makes now: later than all that it knows of the key.
    fn next_stamp(&self, field: &[u8], at: StoreMoment) -> KeyvalStamp {
        let known = self.known.get(field).map(|known| known.stamp.ms);
        let awaited = self.awaited.get(field).map(|awaited| awaited.stamp.ms);
        let least = known.max(awaited).map_or(1, |ms| ms.saturating_add(1));
        KeyvalStamp { ms: at.store_ms.max(least), node: self.node }
    }

    fn know(&mut self, field: KeyvalField, stamp: KeyvalStamp, is_removed: bool) {
        let is_unwritten = self.known.get(&field).is_some_and(|known| known.is_unwritten);
        let known = KnownKey { stamp, is_removed, round: self.round, is_unwritten };
        self.known.insert(field, known);
    }

    /// The same, of a record that the store has. Only such removed keys are ever forgotten.
    fn adopt(&mut self, field: KeyvalField, stamp: KeyvalStamp, is_removed: bool) {
        if is_removed {
            let forgotten = self.graves.add(field.clone(), stamp);
            forgotten.into_iter().for_each(|grave| self.forget(grave));
        }
        self.know(field, stamp, is_removed);
    }

    /// An entry has ended. Unless the store was told of it, what it replaced may still be there.
    fn end(&mut self, field: KeyvalField) {
        match self.known.get(&field) {
            Some(known) if known.is_unwritten => self.know(field, known.stamp, true),
            _ => _ = self.known.remove(&field),
        }
    }

    /// The key counts as one that was never there.
    fn forget(&mut self, (field, stamp): (KeyvalField, KeyvalStamp)) {
        let is_it = |known: &KnownKey| known.is_removed && known.stamp == stamp;
        if self.known.get(&field).is_some_and(is_it) {
            self.known.remove(&field);
        }
    }

    fn write_later(&mut self, field: KeyvalField) {
        if let Some(known) = self.known.get_mut(&field)
            && !std::mem::replace(&mut known.is_unwritten, true)
        {
            self.unwritten.push_back(field);
        }
    }
}

impl KeyvalRecord {
    /// Whether the store has kept it long enough.
    fn outlived(&self, at: StoreMoment) -> HeardRecord {
        let end_ms = match &self.entry {
            Some(entry) => entry.expires_ms.map(|end_ms| end_ms.saturating_add(ENDED_MS)),
            None => Some(self.stamp.ms.saturating_add(GRAVE_MS)),
        };
        let is_over = end_ms.is_some_and(|end_ms| end_ms < at.store_ms);
        if is_over { HeardRecord::Outlived } else { HeardRecord::Taken }
    }
}

impl RecordEntry {
    /// The entry here; `None` if it has ended.
    fn into_pair(self, field: &[u8], at: StoreMoment) -> Option<KeyvalPair> {
        let Self { key, value, expires_ms } = self;
        if expires_ms.is_some_and(|expires_ms| expires_ms <= at.store_ms) {
            return None;
        }
        let deadline_ms = expires_ms.map(|expires_ms| at.deadline_ms(expires_ms));
        Some(KeyvalPair { key: key.unwrap_or_else(|| field.into()), value, deadline_ms })
    }
}
