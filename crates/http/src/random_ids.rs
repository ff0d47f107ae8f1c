//! Random numbers for ids of requests.
//!
//! Each worker has a stream of its own: ChaCha with eight rounds, and a key from the kernel. Ids do
//! not repeat, and whoever knows some cannot guess others, so they may be nonces.

use std::cell::RefCell;

const BLOCK_NUMBERS: usize = 8;
const DOUBLE_ROUNDS: usize = 4;
/// "expand 32-byte k", as in RFC 8439.
const CONSTANTS: ChaChaRow = [0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574];

/// A quarter of the cipher's state. An operation is on all four words.
type ChaChaRow = [u32; 4];

thread_local! {
    static IDS: RefCell<IdStream> = RefCell::new(IdStream::new(random_key()));
}

/// The next number of this worker.
#[inline]
pub(crate) fn next() -> u64 {
    IDS.with(|ids| ids.borrow_mut().next())
}

struct IdStream {
    key: [ChaChaRow; 2],
    /// The number of the next block.
    counter: u64,
    numbers: [u64; BLOCK_NUMBERS],
    used: usize,
}

fn random_key() -> [ChaChaRow; 2] {
    let word = |_| net::system::random() as u32;
    [[(); 4].map(word), [(); 4].map(word)]
}

impl IdStream {
    fn new(key: [ChaChaRow; 2]) -> Self {
        Self { key, counter: 0, numbers: [0; BLOCK_NUMBERS], used: BLOCK_NUMBERS }
    }

    #[inline]
    fn next(&mut self) -> u64 {
        if self.used == BLOCK_NUMBERS {
            self.fill();
        }
        let number = self.numbers[self.used];
        self.used += 1;
        number
    }

    fn fill(&mut self) {
        let [key_0, key_1] = self.key;
        let place = [self.counter as u32, (self.counter >> 32) as u32, 0, 0];
        let rows = block([CONSTANTS, key_0, key_1, place]);
        for (pair, number) in rows.as_flattened().chunks_exact(2).zip(&mut self.numbers) {
            *number = u64::from(pair[0]) | u64::from(pair[1]) << 32;
        }
        self.counter += 1;
        self.used = 0;
    }
}

/// The block function of ChaCha (RFC 8439, section 2.3), with fewer rounds.
fn block(start: [ChaChaRow; 4]) -> [ChaChaRow; 4] {
    let [mut a, mut b, mut c, mut d] = start;
    for _ in 0..DOUBLE_ROUNDS {
        quarter_rounds(&mut a, &mut b, &mut c, &mut d);
        // The diagonals become columns.
        (b, c, d) = (turned::<1>(b), turned::<2>(c), turned::<3>(d));
        quarter_rounds(&mut a, &mut b, &mut c, &mut d);
        (b, c, d) = (turned::<3>(b), turned::<2>(c), turned::<1>(d));
    }
    let [first, second, third, fourth] = start;
    [added(a, first), added(b, second), added(c, third), added(d, fourth)]
}

/// Four quarter rounds, one on each column.
#[inline(always)]
fn quarter_rounds(a: &mut ChaChaRow, b: &mut ChaChaRow, c: &mut ChaChaRow, d: &mut ChaChaRow) {
    *a = added(*a, *b);
    *d = mixed::<16>(*d, *a);
    *c = added(*c, *d);
    *b = mixed::<12>(*b, *c);
    *a = added(*a, *b);
    *d = mixed::<8>(*d, *a);
    *c = added(*c, *d);
    *b = mixed::<7>(*b, *c);
}

#[inline(always)]
fn added(one: ChaChaRow, other: ChaChaRow) -> ChaChaRow {
    std::array::from_fn(|at| one[at].wrapping_add(other[at]))
}

#[inline(always)]
fn mixed<const BITS: u32>(one: ChaChaRow, other: ChaChaRow) -> ChaChaRow {
    std::array::from_fn(|at| (one[at] ^ other[at]).rotate_left(BITS))
}

/// The row from that word on.
#[inline(always)]
fn turned<const WORDS: usize>(row: ChaChaRow) -> ChaChaRow {
    std::array::from_fn(|at| row[(at + WORDS) % 4])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_that_of_chacha8() {
        // The test vector of eight rounds with a key and a nonce of zeros
        // (draft-strombergson-chacha-test-vectors-01, TC1).
        let expected = [
            0x3e, 0x00, 0xef, 0x2f, 0x89, 0x5f, 0x40, 0xd6, 0x7f, 0x5b, 0xb8, 0xe8, 0x1f, 0x09,
            0xa5, 0xa1, 0x2c, 0x84, 0x0e, 0xc3, 0xce, 0x9a, 0x7f, 0x3b, 0x18, 0x1b, 0xe1, 0x88,
            0xef, 0x71, 0x1a, 0x1e, 0x98, 0x4c, 0xe1, 0x72, 0xb9, 0x21, 0x6f, 0x41, 0x9f, 0x44,
            0x53, 0x67, 0x45, 0x6d, 0x56, 0x19, 0x31, 0x4a, 0x42, 0xa3, 0xda, 0x86, 0xb0, 0x01,
            0x38, 0x7b, 0xfd, 0xb8, 0x0e, 0x0c, 0xfe, 0x42,
        ];
        let mut stream = IdStream::new([[0; 4]; 2]);
        let found: Vec<u8> = (0..BLOCK_NUMBERS).flat_map(|_| stream.next().to_le_bytes()).collect();
        assert_eq!(found, expected);
        let second = [stream.next(), stream.next()];
        assert_eq!((stream.counter, stream.used), (2, 2));
        assert_ne!(second[..], stream.numbers[2..4]);
    }

    #[test]
    fn threads_have_streams_of_their_own() {
        let other = std::thread::spawn(next).join().unwrap();
        assert_ne!(other, next());
    }
}
