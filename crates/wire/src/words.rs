//! Finds bytes of a class, eight at a time.
//!
//! The bytes of a word are tested at once, without vector instructions and so on every processor: a
//! test sets the highest bit of each byte that is a stop. Its subtractions borrow from the next
//! byte only where a byte is a stop, so the lowest stop is exact; no other is used.

const ONES: u64 = u64::from_ne_bytes([1; 8]);
const HIGH: u64 = ONES << 7;
const BYTES: usize = size_of::<u64>();

/// Offset of the first control character from `from` on. DEL is not one of them.
#[inline(always)]
pub(crate) fn find_control(text: &[u8], from: usize) -> Option<usize> {
    find(text, from, |word| below(word, b' '))
}

/// Offset of the first colon from `from` on.
#[inline(always)]
pub(crate) fn find_colon(text: &[u8], from: usize) -> Option<usize> {
    find(text, from, |word| equal(word, b':'))
}

/// Offset of the first byte that ends a name or is invalid in it: a colon, control character, space
/// or DEL.
#[inline(always)]
pub(crate) fn find_name_end(text: &[u8]) -> Option<usize> {
    find(text, 0, |word| below(word, b' ' + 1) | equal(word, b':') | equal(word, 0x7f))
}

/// Offset of the first control character, space, DEL or `mark` from `from` on.
#[inline(always)]
pub(crate) fn find_target_end(text: &[u8], from: usize, mark: u8) -> Option<usize> {
    find(text, from, |word| below(word, b' ' + 1) | equal(word, mark) | equal(word, 0x7f))
}

/// Sets the highest bit in each byte below `limit`, which is at most 128. The bit may also be set
/// in bytes above 127, and in bytes after one below the limit.
#[inline(always)]
fn below(word: u64, limit: u8) -> u64 {
    word.wrapping_sub(ONES * limit as u64)
}

/// Like [`below`], for bytes equal to `byte`, which is at most 127.
#[inline(always)]
fn equal(word: u64, byte: u8) -> u64 {
    below(word ^ (ONES * byte as u64), 1)
}

/// Finds the first stop: a byte of at most 127 with the highest bit set in `stops` of its word.
#[inline(always)]
fn find(text: &[u8], from: usize, stops: impl Fn(u64) -> u64) -> Option<usize> {
    let mut rest = text.get(from..)?;
    while let Some((chunk, after)) = rest.split_first_chunk::<BYTES>() {
        let word = u64::from_le_bytes(*chunk);
        let candidates = stops(word) & HIGH;
        if candidates != 0 {
            let found = candidates & !word;
            if found != 0 {
                return Some(text.len() - rest.len() + first_byte(found));
            }
        }
        rest = after;
    }
    find_in_last(text, rest, stops)
}

/// Searches the last bytes of a text, fewer than a word.
#[inline(always)]
fn find_in_last(text: &[u8], rest: &[u8], stops: impl Fn(u64) -> u64) -> Option<usize> {
    if rest.is_empty() {
        return None;
    }
    // The bytes after them in the word are zero.
    let word = match text.last_chunk::<BYTES>() {
        Some(chunk) => u64::from_le_bytes(*chunk) >> (8 * (BYTES - rest.len())),
        None => rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
    };
    let found = stops(word) & !word & HIGH;
    let at = first_byte(found);
    (found != 0 && at < rest.len()).then(|| text.len() - rest.len() + at)
}

#[inline(always)]
fn first_byte(found: u64) -> usize {
    found.trailing_zeros() as usize / 8
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn the_first_stop_is_found_wherever_it_is() {
        for length in 0..40 {
            for at in 0..length {
                for byte in 0..=255u8 {
                    let mut text = vec![b'a'; length];
                    text[at] = byte;
                    let is_name_end = byte <= b' ' || byte == b':' || byte == 0x7f;
                    assert_eq!(find_name_end(&text), is_name_end.then_some(at));
                    for from in 0..=at {
                        assert_eq!(find_control(&text, from), (byte < b' ').then_some(at));
                    }
                    assert_eq!(find_control(&text, at + 1), None);
                }
            }
        }
    }

    #[test]
    fn neighbours_of_a_stop_change_nothing() {
        for before in 0..=255u8 {
            for after in 0..=255u8 {
                let text = [before, after, b'a', b'a', b'a', b'a', b'a', b'a', before, after];
                for from in 0..text.len() {
                    let first = text[from..].iter().position(|byte| *byte < b' ');
                    assert_eq!(find_control(&text, from), first.map(|at| from + at));
                }
            }
        }
    }
}
