//! A text among the counters, such as why something failed.
//!
//! Its words are written one after the other, so a number in front of them is odd meanwhile, and
//! another one afterwards: a reader that has met a change reads again.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU64, fence};

use crate::kind::BlockField;

/// The most bytes; the rest is cut off.
const TEXT_MAX: usize = 760;
const TEXT_WORDS: usize = TEXT_MAX.div_ceil(8);
/// The places of the number of the change, of the time and of the length; the text follows.
const CHANGE: usize = 0;
const TIME: usize = 1;
const LENGTH: usize = 2;
const TEXT: usize = 3;
/// How often a reader tries. A writer takes less than a microsecond.
const READS_MAX: usize = 100;

/// A text and its time; of several, the newest.
pub enum NewestText {}

#[derive(Clone, Copy)]
pub struct LatestText<'a>(&'a [AtomicU64]);

impl LatestText<'_> {
    /// Sets the text. Only for the worker that has the block.
    pub fn set(self, unix_ms: u64, text: &str) {
        let text = &text.as_bytes()[..text.floor_char_boundary(TEXT_MAX)];
        let mut words = [0; NewestText::WORDS];
        (words[TIME], words[LENGTH]) = (unix_ms, text.len() as u64);
        for (word, bytes) in words[TEXT..].iter_mut().zip(text.chunks(8)) {
            let mut eight = [0; 8];
            eight[..bytes.len()].copy_from_slice(bytes);
            *word = u64::from_le_bytes(eight);
        }
        write(self.0, &words);
    }

    /// The text; empty if there is none.
    pub fn text(self) -> Vec<u8> {
        let words = read(self.0).unwrap_or([0; NewestText::WORDS]);
        let mut text: Vec<u8> = words[TEXT..].iter().flat_map(|word| word.to_le_bytes()).collect();
        text.truncate(words[LENGTH] as usize);
        text
    }
}

impl BlockField for NewestText {
    const WORDS: usize = TEXT + TEXT_WORDS;
    type At<'a> = LatestText<'a>;
    fn at(words: &[AtomicU64]) -> LatestText<'_> {
        LatestText(words)
    }
    fn merge(sum: &[AtomicU64], from: &[AtomicU64]) {
        if let Some(words) = read(from)
            && words[TIME] > sum[TIME].load(Relaxed)
        {
            write(sum, &words);
        }
    }
}

/// Writes all words but the number of the change. A writer that was killed has left it odd.
fn write(to: &[AtomicU64], words: &[u64; NewestText::WORDS]) {
    let change = to[CHANGE].load(Relaxed) | 1;
    to[CHANGE].store(change, Relaxed);
    fence(Release);
    to[TIME..].iter().zip(&words[TIME..]).for_each(|(to, word)| to.store(*word, Relaxed));
    to[CHANGE].store(change.wrapping_add(1), Release);
}

fn read(from: &[AtomicU64]) -> Option<[u64; NewestText::WORDS]> {
    (0..READS_MAX).find_map(|_| {
        let change = from[CHANGE].load(Acquire);
        let words = std::array::from_fn(|place| from[place].load(Relaxed));
        fence(Acquire);
        (change.is_multiple_of(2) && from[CHANGE].load(Relaxed) == change).then_some(words)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words() -> Vec<AtomicU64> {
        (0..NewestText::WORDS).map(|_| AtomicU64::new(0)).collect()
    }

    #[test]
    fn the_newest_text_counts() {
        let (sum, old, new) = (words(), words(), words());
        NewestText::at(&old).set(1, "old");
        NewestText::at(&new).set(2, "new and longer");
        NewestText::at(&new).set(3, "shorter");
        for from in [&old, &new, &old] {
            NewestText::merge(&sum, from);
        }
        assert_eq!(NewestText::at(&sum).text(), b"shorter");
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let field = words();
        NewestText::at(&field).set(1, &"\u{e9}".repeat(TEXT_MAX));
        assert_eq!(String::from_utf8(NewestText::at(&field).text()).unwrap().chars().count(), 380);
    }

    #[test]
    fn a_text_whose_writer_was_killed_is_not_shown() {
        let field = words();
        NewestText::at(&field).set(1, "complete");
        field[CHANGE].store(3, Relaxed);
        assert_eq!(NewestText::at(&field).text(), b"");
        NewestText::at(&field).set(2, "next");
        assert_eq!(NewestText::at(&field).text(), b"next");
    }
}
