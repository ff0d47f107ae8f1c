//! Replies by status.

use std::sync::atomic::AtomicU64;

use crate::fields::{Counter, Tallies, Tally};
use crate::kind::BlockField;

/// The statuses that are counted one by one; the rest is counted together.
const CODES: [u16; 60] = [
    100, 101, 102, 103, 200, 201, 202, 203, 204, 205, 206, 207, 208, 300, 301, 302, 303, 304, 307,
    308, 400, 401, 402, 403, 404, 405, 406, 407, 408, 409, 410, 411, 412, 413, 414, 415, 416, 421,
    422, 423, 425, 426, 428, 429, 431, 444, 451, 495, 496, 497, 499, 500, 501, 502, 503, 504, 505,
    507, 508, 511,
];
/// The place of all others.
const OTHERS: usize = CODES.len();

/// How many replies had which status.
pub enum ByStatus {}

#[derive(Clone, Copy)]
pub struct StatusCounters<'a>(&'a [AtomicU64]);

impl<'a> StatusCounters<'a> {
    /// Counts a reply. Only for the worker that has the block.
    #[inline]
    pub fn add(self, status: u16) {
        const PLACES: [u8; 512] = places();
        let place = PLACES.get(usize::from(status)).map_or(OTHERS, |place| usize::from(*place));
        Tally::at(&self.0[place..]).add(1);
    }

    /// The statuses that occurred, with their numbers; 0 stands for all that are not counted one by
    /// one.
    pub fn iter(self) -> impl Iterator<Item = (u16, u64)> + use<'a> {
        let counts = self.0.iter().map(|word| Counter::get(Tally::at(std::slice::from_ref(word))));
        let known = counts.enumerate().filter(|(_, count)| *count > 0);
        known.map(|(place, count)| (CODES.get(place).copied().unwrap_or(0), count))
    }
}

const fn places() -> [u8; 512] {
    let mut places = [OTHERS as u8; 512];
    let mut place = 0;
    while place < OTHERS {
        places[CODES[place] as usize] = place as u8;
        place += 1;
    }
    places
}

impl BlockField for ByStatus {
    const WORDS: usize = <Tallies<{ OTHERS + 1 }> as BlockField>::WORDS;
    type At<'a> = StatusCounters<'a>;
    #[inline]
    fn at(words: &[AtomicU64]) -> StatusCounters<'_> {
        StatusCounters(words)
    }
}
