//! Well-known names, found in any case with one lookup.
//!
//! The first and last bytes of a name, as words, determine the slot of its only possible entry. The
//! check that all names have different slots is done at compile time, when the table is built.

const SLOT_BITS: u32 = 7;

/// Names of at least two bytes.
pub(crate) struct NameTable<T: 'static> {
    entries: [NameEntry<T>; 1 << SLOT_BITS],
}

#[derive(Clone, Copy)]
struct NameEntry<T: 'static> {
    /// In lower case.
    name: &'static [u8],
    /// The outer words of the name.
    first: u64,
    last: u64,
    id: T,
}

impl<T: Copy> NameTable<T> {
    /// The table of these names, all in lower case. `other` fills the empty slots.
    pub(crate) const fn new(names: &[(&'static [u8], T)], other: T) -> Self {
        let empty = NameEntry { name: b"", first: 0, last: 0, id: other };
        let mut entries = [empty; 1 << SLOT_BITS];
        let mut at = 0;
        while at < names.len() {
            let (name, id) = names[at];
            let Some((first, last)) = outer_words(name) else { panic!("a name is too short") };
            let slot = slot(first, last);
            assert!(entries[slot].name.is_empty(), "two names have the same place");
            entries[slot] = NameEntry { name, first, last, id };
            at += 1;
        }
        Self { entries }
    }

    /// The id of `name`. Exact for any bytes: only the case of letters is ignored.
    #[inline(always)]
    pub(crate) fn find(&self, name: &[u8]) -> Option<T> {
        let (first, last) = outer_words(name)?;
        let entry = &self.entries[slot(first, last)];
        let fits = name.len() == entry.name.len()
            && difference(first, entry.first) | difference(last, entry.last) == 0
            && (name.len() <= 2 * WORD || name.eq_ignore_ascii_case(entry.name));
        fits.then_some(entry.id)
    }
}

const WORD: usize = size_of::<u64>();

/// The first and the last bytes of a name, up to eight; words that cover a name of up to sixteen
/// bytes. `None` if it is too short.
#[inline(always)]
const fn outer_words(name: &[u8]) -> Option<(u64, u64)> {
    if let (Some(first), Some(last)) = (name.first_chunk(), name.last_chunk()) {
        Some((u64::from_le_bytes(*first), u64::from_le_bytes(*last)))
    } else if let (Some(first), Some(last)) = (name.first_chunk(), name.last_chunk()) {
        Some((u32::from_le_bytes(*first) as u64, u32::from_le_bytes(*last) as u64))
    } else if let (Some(first), Some(last)) = (name.first_chunk(), name.last_chunk()) {
        Some((u16::from_le_bytes(*first) as u64, u16::from_le_bytes(*last) as u64))
    } else {
        None
    }
}

/// With this factor, all names of this crate's tables have slots of their own.
#[inline(always)]
const fn slot(first: u64, last: u64) -> usize {
    const FACTOR: u64 = 0x5a32_b0fd_21da_4b3b;
    const LOWER: u64 = u64::from_ne_bytes([0x20; WORD]);
    let sum = (first | LOWER).wrapping_add((last | LOWER) << 1);
    (sum.wrapping_mul(FACTOR) >> (u64::BITS - SLOT_BITS)) as usize
}

/// The bits in which `word` differs from `lower` other than by the case of letters. `lower` has
/// lower case letters; its bit 0x40 distinguishes them from "-".
#[inline(always)]
fn difference(word: u64, lower: u64) -> u64 {
    const LETTER: u64 = u64::from_ne_bytes([0x40; WORD]);
    (word | (lower & LETTER) >> 1) ^ lower
}
