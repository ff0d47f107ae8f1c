//! Random numbers for ids of traces and spans.
//!
//! Each worker has a stream of its own, Blackman and Vigna's xoshiro256++ from a state that the
//! kernel gives. Its numbers do not repeat, but whoever knows some can tell the next: an id of a
//! trace is no secret, unlike one of a request, which may be used as a nonce
//! ([`crate::random_ids`]).

use std::cell::Cell;

type XoshiroState = [u64; 4];

thread_local! {
    static STATE: Cell<XoshiroState> = Cell::new([(); 4].map(|()| net::system::random()));
}

/// Ids of this worker, none of which is zero.
#[inline]
pub(super) fn next<const N: usize>() -> [[u8; 8]; N] {
    STATE.with(|state| {
        let mut current = state.get();
        let ids = [(); N].map(|()| advance(&mut current).max(1).to_be_bytes());
        state.set(current);
        ids
    })
}

/// The next number of the stream.
#[inline(always)]
fn advance(state: &mut XoshiroState) -> u64 {
    let [a, b, c, d] = *state;
    let number = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
    let (c, d) = (c ^ a, d ^ b);
    *state = [a ^ d, b ^ c, c ^ b << 17, d.rotate_left(45)];
    number
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_that_of_the_authors() {
        // The first numbers of their xoshiro256plusplus.c from this state.
        let mut state = [1, 2, 3, 4];
        let expected = [41_943_041, 58_720_359, 3_588_806_011_781_223, 3_591_011_842_654_386];
        assert_eq!([(); 4].map(|()| advance(&mut state)), expected);
    }

    #[test]
    fn ids_differ_within_and_between_threads() {
        let ids = || next::<100>().to_vec();
        let mut all = [ids(), ids(), std::thread::spawn(ids).join().unwrap()].concat();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 300);
    }
}
