//! The removed keys of a shared table that the store has, in the order in which a node has heard of
//! them: so many can be written again after the store has lost its content.

use std::collections::VecDeque;

use super::record::{KeyvalField, KeyvalStamp};

/// The most removed keys that a node remembers.
const GRAVES_MAX: usize = 10_000;

#[derive(Debug, Default)]
pub(super) struct Graves(VecDeque<(KeyvalField, KeyvalStamp)>);

impl Graves {
    /// Adds a removed key. Returns the one that is forgotten for it.
    pub(super) fn add(
        &mut self,
        field: KeyvalField,
        stamp: KeyvalStamp,
    ) -> Option<(KeyvalField, KeyvalStamp)> {
        self.0.push_back((field, stamp));
        if self.0.len() > GRAVES_MAX { self.0.pop_front() } else { None }
    }

    /// Takes the oldest one, if it was removed before that time.
    pub(super) fn take_before(&mut self, store_ms: i64) -> Option<(KeyvalField, KeyvalStamp)> {
        self.0.pop_front_if(|(_, stamp)| stamp.ms < store_ms)
    }
}
