//! The keys of a zone that are exchanged with other machines.
//!
//! A bucket counts the requests it has admitted since the last exchange (`Bucket::unsent`). Only
//! such keys are exchanged, and those used lately whose bucket is not empty, so that a node learns
//! what the others admit. Memory is bounded by the zone and by [`FRESH_MAX`].

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use crate::lru::LruEntry;

/// The most keys with something unsent. What others admit beyond that is not told.
const FRESH_MAX: usize = 65_536;
/// The most former keys in the round, beyond the number of known ones.
const FORMER_MAX: usize = 1024;
/// How long a key is exchanged after its last request here.
const USED_MS: u64 = 10_000;

/// A sum on its way to the other machines.
#[derive(Debug)]
pub(super) struct OutgoingSum {
    pub(super) place: SumPlace,
    pub(super) key: Arc<[u8]>,
    /// When the bucket will be empty, as far as this node knows.
    pub(super) empty_in_ms: u64,
    /// The part of the store's sum that is in the bucket; `None` if the store has not told yet.
    pub(super) counted: Option<i64>,
}

/// The bucket that a sum is of, and the requests in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct SumPlace {
    pub(super) entry: LruEntry,
    /// Another key may have the entry in the meantime.
    id: u64,
    pub(super) admitted: u32,
}

#[derive(Default)]
pub(super) struct SharedSums {
    /// Entries with something unsent, and perhaps former ones.
    pub(super) fresh: VecDeque<LruEntry>,
    known: HashMap<LruEntry, KnownSum>,
    /// The known keys in turn, and perhaps former ones.
    round: VecDeque<(LruEntry, u64)>,
    ids: u64,
    /// The last exchange.
    pub(super) turn_ms: u64,
}

/// A key that is exchanged.
struct KnownSum {
    id: u64,
    /// The store's sum as of the last exchange; `None` before the first.
    total: Option<i64>,
    /// Whether the store was told of the bucket.
    is_told: bool,
    used_ms: u64,
    /// The last exchanges that asked for it, and that looked at it.
    asked: u64,
    looked: u64,
}

/// What a reply says about the requests of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ToldSum {
    /// They have admitted so many since the last exchange.
    Others(u64),
    /// The first reply, or the store has forgotten the sum: its estimate of the bucket counts.
    Anew,
}

impl SharedSums {
    /// Lists an entry whose bucket has had nothing unsent. False if there is no room.
    pub(super) fn list(&mut self, entry: LruEntry) -> bool {
        let has_room = self.fresh.len() < FRESH_MAX;
        if has_room {
            self.fresh.push_back(entry);
        }
        has_room
    }

    /// The entry is removed.
    pub(super) fn forget(&mut self, entry: LruEntry) {
        self.known.remove(&entry);
    }

    /// A sum with these requests, and the part of the store's sum that is in the bucket.
    pub(super) fn send(
        &mut self,
        entry: LruEntry,
        admitted: u32,
        (turn, now_ms): (u64, u64),
    ) -> (SumPlace, Option<i64>) {
        if self.round.len() > 2 * self.known.len() + FORMER_MAX {
            let known = &self.known;
            self.round.retain(|(entry, id)| known.get(entry).is_some_and(|one| one.id == *id));
        }
        let known = self.known.entry(entry).or_insert_with(|| {
            self.ids += 1;
            self.round.push_back((entry, self.ids));
            KnownSum {
                id: self.ids,
                total: None,
                is_told: false,
                used_ms: now_ms,
                asked: turn,
                looked: 0,
            }
        });
        known.asked = turn;
        if admitted > 0 {
            known.used_ms = now_ms;
        }
        let counted = known.total.map(|total| total.saturating_add(i64::from(admitted)));
        known.is_told |= counted.is_some();
        (SumPlace { entry, id: known.id, admitted }, counted)
    }

    /// Whether the store knows of the entry's bucket.
    pub(super) fn is_told(&self, entry: LruEntry) -> bool {
        self.known.get(&entry).is_some_and(|known| known.is_told)
    }

    /// The next known key that this exchange has not looked at, and whether it was asked for.
    pub(super) fn look(&mut self, turn: u64, now_ms: u64) -> Option<(LruEntry, bool)> {
        while let Some((entry, id)) = self.round.pop_front() {
            let Some(known) = self.known.get_mut(&entry).filter(|known| known.id == id) else {
                continue;
            };
            if known.looked == turn {
                self.round.push_front((entry, id));
                return None;
            }
            known.looked = turn;
            if now_ms.saturating_sub(known.used_ms) > USED_MS {
                self.known.remove(&entry);
                continue;
            }
            let is_asked = known.asked == turn;
            self.round.push_back((entry, id));
            return Some((entry, is_asked));
        }
        None
    }

    /// The memory of all lists, about.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.fresh.len() * size_of::<LruEntry>()
            + self.known.len() * size_of::<(LruEntry, KnownSum)>()
            + self.round.len() * size_of::<(LruEntry, u64)>()
    }

    /// Takes the store's sum. `None` if the key is not exchanged any more.
    pub(super) fn tell(&mut self, place: SumPlace, total: i64) -> Option<ToldSum> {
        let known = self.known.get_mut(&place.entry).filter(|known| known.id == place.id)?;
        let before = known.total.replace(total);
        let others = before
            .and_then(|before| total.checked_sub(before))
            .and_then(|more| more.checked_sub(i64::from(place.admitted)))
            .and_then(|others| u64::try_from(others).ok());
        Some(others.map_or(ToldSum::Anew, ToldSum::Others))
    }
}
