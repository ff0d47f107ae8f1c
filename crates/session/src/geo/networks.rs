//! Networks within networks: the smallest one that has an address says its value.

use std::collections::BTreeMap;

use super::stretches::Stretches;

/// The networks of one family of addresses, with a value each.
#[derive(Debug)]
pub(super) struct Networks {
    /// Bits of an address.
    width: u8,
    /// By first address and number of bits that count: a network comes before those inside it.
    values: BTreeMap<(u128, u8), u32>,
}

impl Networks {
    pub(super) fn new(width: u8) -> Self {
        Self { width, values: BTreeMap::new() }
    }

    /// Adds a network; one that is there already is replaced, and the value that its first address
    /// had is returned.
    pub(super) fn insert(&mut self, network: (u128, u8), value: u32) -> Option<u32> {
        let old = self.values.contains_key(&network).then(|| self.value_of(network.0));
        self.values.insert(network, value);
        old.flatten()
    }

    /// Removes a network; false: there is none.
    pub(super) fn remove(&mut self, network: (u128, u8)) -> bool {
        self.values.remove(&network).is_some()
    }

    fn value_of(&self, address: u128) -> Option<u32> {
        let network = |bits| self.values.get(&(address & !self.low(bits), bits));
        (0..=self.width).rev().find_map(network).copied()
    }

    /// The bits of an address that do not count.
    fn low(&self, bits: u8) -> u128 {
        match self.width - bits {
            0 => 0,
            low => u128::MAX >> (128 - u32::from(low)),
        }
    }

    /// The same as stretches. Networks do not cross: those that are open contain each other.
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
