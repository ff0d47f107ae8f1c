//! Networks that may contain each other: the smallest one with an address decides its value.

use std::collections::BTreeMap;

use super::stretches::Stretches;

/// The networks of one address family, each with a value.
#[derive(Debug)]
pub(super) struct Networks {
    /// The number of bits in an address.
    width: u8,
    /// Keyed by first address and prefix length, so that a network precedes those inside it.
    values: BTreeMap<(u128, u8), u32>,
}

impl Networks {
    pub(super) fn new(width: u8) -> Self {
        Self { width, values: BTreeMap::new() }
    }

    /// Adds or replaces a network. If it existed, returns the previous value of its first address.
    pub(super) fn insert(&mut self, network: (u128, u8), value: u32) -> Option<u32> {
        let old = self.values.contains_key(&network).then(|| self.value_of(network.0));
        self.values.insert(network, value);
        old.flatten()
    }

    /// Removes a network; false if it does not exist.
    pub(super) fn remove(&mut self, network: (u128, u8)) -> bool {
        self.values.remove(&network).is_some()
    }

    fn value_of(&self, address: u128) -> Option<u32> {
        let network = |bits| self.values.get(&(address & !self.low(bits), bits));
        (0..=self.width).rev().find_map(network).copied()
    }

    /// A mask of the bits behind a prefix.
    fn low(&self, bits: u8) -> u128 {
        match self.width - bits {
            0 => 0,
            low => u128::MAX >> (128 - u32::from(low)),
        }
    }

    /// Converts the networks to stretches. Networks never overlap partly, so the open ones contain
    /// each other.
    pub(super) fn stretches<A: Copy + Ord + TryFrom<u128>>(&self, default: u32) -> Stretches<A> {
        let mut changes = Vec::with_capacity(self.values.len() * 2);
        let mut open: Vec<(u128, u32)> = Vec::new();
        let close = |open: &mut Vec<(u128, u32)>, changes: &mut Vec<(u128, u32)>| {
            let Some((last, _)) = open.pop() else { return };
            let outer = open.last().map_or(default, |(_, value)| *value);
            if last != self.low(0) {
                changes.push((last + 1, outer));
            }
        };
        for (&(first, bits), &value) in &self.values {
            while open.last().is_some_and(|(last, _)| *last < first) {
                close(&mut open, &mut changes);
            }
            changes.push((first, value));
            open.push((first | self.low(bits), value));
        }
        while !open.is_empty() {
            close(&mut open, &mut changes);
        }
        Stretches::new(default, changes)
    }
}
