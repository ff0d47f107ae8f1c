//! How the memory is laid out: a head, then blocks one after the other. A block has its size, its
//! kind, its owner, its name, and its counters.
//!
//! Words that others may read meanwhile are written in an order that is right at every instruction:
//! a block before the end behind it, a name before its kind.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;

use net::SharedWords;

/// All words: 64 MB, of which the system provides what is used.
pub(super) const WORDS: usize = 8 * 1024 * 1024;
/// Changes with the layout.
pub(super) const MAGIC: u64 = 0x5765_6972_4d65_7401;
/// Processes at once: one bit each in [`REGISTERED`].
pub(super) const PROCESSES_MAX: usize = 64;

/// Where words of the head are.
const MAGIC_AT: usize = 0;
/// Where the last block ends.
const END: usize = 1;
/// How often names of blocks have changed.
const VERSION: usize = 2;
/// The processes that have registered.
const REGISTERED: usize = 3;
const FIRST: usize = ALIGNMENT;

/// Where words of a block are.
const SIZE: usize = 0;
/// 0: the block is free.
const KIND: usize = 1;
const OWNER: usize = 2;
const NAME_LENGTH: usize = 3;
const NAME: usize = 4;

/// Blocks of two workers share no cache line, nor the next one, which processors read ahead.
const ALIGNMENT: usize = 16;

/// The worker that has a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner(u64);

impl Owner {
    /// None, and the block is in order.
    pub const NOBODY: Self = Self(0);
    /// None, and what was under way in the block will never end: its worker was killed.
    pub const KILLED: Self = Self(1 << 63);

    pub fn new(process: usize, thread: u32) -> Self {
        Self((process as u64 + 1) | (u64::from(thread) << 8))
    }

    pub fn is_worker(self) -> bool {
        self != Self::NOBODY && self != Self::KILLED
    }

    pub fn is_of(self, process: usize) -> bool {
        self.is_worker() && self.0 & 0xff == process as u64 + 1
    }
}

/// Prepares new memory.
pub(super) fn format(words: &SharedWords) {
    words[END].store(FIRST as u64, SeqCst);
    words[MAGIC_AT].store(MAGIC, SeqCst);
}

pub(super) fn magic(words: &SharedWords) -> u64 {
    words[MAGIC_AT].load(SeqCst)
}

pub(super) fn version(words: &SharedWords) -> u64 {
    words[VERSION].load(SeqCst)
}

/// Tells all processes to look at the names of blocks again.
pub(super) fn change(words: &SharedWords) {
    words[VERSION].fetch_add(1, SeqCst);
}

/// The words up to the end of the last block.
pub(super) fn used(words: &SharedWords) -> usize {
    (words[END].load(SeqCst) as usize).min(WORDS)
}

pub(super) fn registered(words: &SharedWords) -> impl Iterator<Item = usize> + use<> {
    let registered = words[REGISTERED].load(SeqCst);
    (0..PROCESSES_MAX).filter(move |process| registered >> process & 1 == 1)
}

pub(super) fn register(words: &SharedWords, process: usize) {
    words[REGISTERED].fetch_or(1 << process, SeqCst);
}

pub(super) fn unregister(words: &SharedWords, process: usize) {
    words[REGISTERED].fetch_and(!(1 << process), SeqCst);
}

/// Where all blocks begin.
pub(super) fn all(words: &SharedWords) -> impl Iterator<Item = usize> {
    let end = used(words);
    let mut at = FIRST;
    std::iter::from_fn(move || {
        let block = at;
        at += (at < end).then(|| size(words, at))?.max(ALIGNMENT);
        Some(block)
    })
}

/// The size of a block with a name of `name` bytes and so many counters.
pub(super) fn size_for(name: usize, counters: usize) -> usize {
    (NAME + name.div_ceil(8) + counters).next_multiple_of(ALIGNMENT)
}

pub(super) fn size(words: &SharedWords, at: usize) -> usize {
    words[at + SIZE].load(SeqCst) as usize
}

pub(super) fn kind(words: &SharedWords, at: usize) -> u64 {
    words[at + KIND].load(SeqCst)
}

pub(super) fn owner(words: &SharedWords, at: usize) -> Owner {
    Owner(words[at + OWNER].load(SeqCst))
}

pub(super) fn set_owner(words: &SharedWords, at: usize, owner: Owner) {
    words[at + OWNER].store(owner.0, SeqCst);
}

pub(super) fn name(words: &SharedWords, at: usize) -> Box<[u8]> {
    let length = words[at + NAME_LENGTH].load(SeqCst) as usize;
    let words = words[at + NAME..].iter().take(length.div_ceil(8));
    let mut name: Vec<u8> = words.flat_map(|word| word.load(SeqCst).to_le_bytes()).collect();
    name.truncate(length);
    name.into()
}

/// The counters of a block.
pub(super) fn counters(words: &'static SharedWords, at: usize) -> &'static [AtomicU64] {
    let name = (words[at + NAME_LENGTH].load(SeqCst) as usize).div_ceil(8);
    &words[at..at + size(words, at)][NAME + name..]
}

/// Adds a free block at the end. `None`: there is no room.
pub(super) fn append(words: &SharedWords, size: usize) -> Option<usize> {
    let at = used(words);
    if at + size > WORDS {
        return None;
    }
    words[at + SIZE].store(size as u64, SeqCst);
    words[at + KIND].store(0, SeqCst);
    words[END].store((at + size) as u64, SeqCst);
    Some(at)
}

/// Makes a free block one of that kind and name, whose counters are zero.
pub(super) fn fill(words: &SharedWords, at: usize, kind: u64, name: &[u8], owner: Owner) {
    words[at + NAME..at + size(words, at)].iter().for_each(|word| word.store(0, SeqCst));
    for (word, bytes) in words[at + NAME..].iter().zip(name.chunks(8)) {
        let mut eight = [0; 8];
        eight[..bytes.len()].copy_from_slice(bytes);
        word.store(u64::from_le_bytes(eight), SeqCst);
    }
    words[at + NAME_LENGTH].store(name.len() as u64, SeqCst);
    set_owner(words, at, owner);
    words[at + KIND].store(kind, SeqCst);
}

/// Makes a block free.
pub(super) fn free(words: &SharedWords, at: usize) {
    words[at + KIND].store(0, SeqCst);
    set_owner(words, at, Owner::NOBODY);
}
