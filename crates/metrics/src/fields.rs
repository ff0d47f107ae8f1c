//! What a block consists of: single counters, rows of them, levels, and times.
//!
//! A block has one writer, so counting is a load, an addition and a store.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use crate::kind::BlockField;

/// A number that only grows.
pub enum Tally {}

/// Numbers that only grow.
pub enum Tallies<const N: usize> {}

/// A number that goes up and down. What goes up in one worker may go down in another.
pub enum UpDown {}

/// A number that its worker sets, and that is added up over workers.
pub enum Reading {}

/// The largest value so far, such as the time of the last request.
pub enum Newest {}

#[derive(Clone, Copy)]
pub struct Counter<'a>(&'a AtomicU64);

/// Counters by number.
#[derive(Clone, Copy)]
pub struct CounterRow<'a>(&'a [AtomicU64]);

/// How often something went up, and how often down.
#[derive(Clone, Copy)]
pub struct UpDownCounter<'a> {
    up: Counter<'a>,
    down: Counter<'a>,
}

/// A value that is set.
#[derive(Clone, Copy)]
pub struct Latest<'a>(&'a AtomicU64);

impl Counter<'_> {
    /// Adds to it. Like all that writes, only for the worker that has the block.
    #[inline]
    pub fn add(self, count: u64) {
        self.0.store(self.0.load(Relaxed).wrapping_add(count), Relaxed);
    }

    #[inline]
    pub fn get(self) -> u64 {
        self.0.load(Relaxed)
    }
}

impl<'a> CounterRow<'a> {
    /// The counter with that number; the last one stands for all that are beyond.
    #[inline]
    pub fn at(self, number: usize) -> Counter<'a> {
        Counter(&self.0[number.min(self.0.len() - 1)])
    }

    pub fn iter(self) -> impl Iterator<Item = u64> + use<'a> {
        self.0.iter().map(|word| word.load(Relaxed))
    }
}

impl UpDownCounter<'_> {
    #[inline]
    pub fn rise(self) {
        self.up.add(1);
    }

    #[inline]
    pub fn fall(self) {
        self.down.add(1);
    }

    /// Forgets what went up and down again, so often; the level stays. In a block that is one part
    /// of a sum.
    pub fn forget(self, falls: u64) {
        self.up.add(falls.wrapping_neg());
        self.down.add(falls.wrapping_neg());
    }

    /// How often it went down.
    pub fn falls(self) -> u64 {
        self.down.get()
    }

    /// How often it went up.
    pub fn total(self) -> u64 {
        self.up.get()
    }

    /// The level. Falls are read before rises, so that it is never below zero.
    pub fn now(self) -> u64 {
        let down = self.down.get();
        self.up.get().saturating_sub(down)
    }
}

impl Latest<'_> {
    #[inline]
    pub fn set(self, value: u64) {
        self.0.store(value, Relaxed);
    }

    pub fn get(self) -> u64 {
        self.0.load(Relaxed)
    }
}

impl BlockField for Tally {
    const WORDS: usize = 1;
    type At<'a> = Counter<'a>;
    #[inline]
    fn at(words: &[AtomicU64]) -> Counter<'_> {
        Counter(&words[0])
    }
}

impl<const N: usize> BlockField for Tallies<N> {
    const WORDS: usize = N;
    type At<'a> = CounterRow<'a>;
    #[inline]
    fn at(words: &[AtomicU64]) -> CounterRow<'_> {
        CounterRow(words)
    }
}

impl BlockField for UpDown {
    const WORDS: usize = 2;
    type At<'a> = UpDownCounter<'a>;
    #[inline]
    fn at(words: &[AtomicU64]) -> UpDownCounter<'_> {
        UpDownCounter { up: Counter(&words[0]), down: Counter(&words[1]) }
    }
    fn settle(words: &[AtomicU64]) {
        words[1].store(words[0].load(Relaxed), Relaxed);
    }
    fn reset(own: &[AtomicU64], sum: &[AtomicU64]) {
        let (own, sum) = (Self::at(own), Self::at(sum));
        own.forget(sum.down.get());
    }
}

impl BlockField for Reading {
    const WORDS: usize = 1;
    type At<'a> = Latest<'a>;
    #[inline]
    fn at(words: &[AtomicU64]) -> Latest<'_> {
        Latest(&words[0])
    }
    fn settle(words: &[AtomicU64]) {
        words[0].store(0, Relaxed);
    }
    fn reset(_: &[AtomicU64], _: &[AtomicU64]) {}
}

impl BlockField for Newest {
    const WORDS: usize = 1;
    type At<'a> = Latest<'a>;
    #[inline]
    fn at(words: &[AtomicU64]) -> Latest<'_> {
        Latest(&words[0])
    }
    fn merge(sum: &[AtomicU64], from: &[AtomicU64]) {
        sum[0].store(sum[0].load(Relaxed).max(from[0].load(Relaxed)), Relaxed);
    }
    fn reset(_: &[AtomicU64], _: &[AtomicU64]) {}
}
