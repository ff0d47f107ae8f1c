//! The traditional kind, without a name: two digits of salt, and 25 times DES (FIPS 46-3) whose
//! expansion the salt disturbs. The key is the password's first eight bytes, seven bits of each.
//!
//! Written for brevity: it takes less than a millisecond, beside the worker.

use super::{DIGITS, value};

const TIMES: usize = 25;
/// The length of a stored password.
const LENGTH: usize = 13;

/// `ssddddddddddd`
pub fn crypt(password: &[u8], kept: &[u8]) -> Option<Vec<u8>> {
    let &[low, high, ..] = kept else { return None };
    if kept.len() != LENGTH {
        return None;
    }
    let salt = u32::from(value(low)?) | u32::from(value(high)?) << 6;
    let mut key = [0; 8];
    for (byte, of_password) in key.iter_mut().zip(password) {
        *byte = of_password << 1;
    }
    let block = encrypt(&subkeys(u64::from_be_bytes(key)), salt);
    let mut text = vec![low, high];
    // 64 bits and two zeros, six at a time.
    let bits = u128::from(block) << 2;
    text.extend((0..11).rev().map(|at| DIGITS[(bits >> (6 * at) & 63) as usize]));
    Some(text)
}

/// Encrypts a block of zeros [`TIMES`] times. The initial permutation of zeros is zeros, and
/// between two rounds the final and the initial permutation cancel out.
fn encrypt(subkeys: &[u64; 16], salt: u32) -> u64 {
    // Bit 0 of the salt swaps the first bits of both halves of the expanded block.
    let swapped = u64::from(salt.reverse_bits() >> 8);
    let (mut left, mut right) = (0, 0);
    for _ in 0..TIMES {
        for subkey in subkeys {
            (left, right) = (right, left ^ scramble(right, *subkey, swapped));
        }
        (left, right) = (right, left);
    }
    permute(u64::from(left) << 32 | u64::from(right), 64, &FINAL)
}

fn scramble(half: u32, subkey: u64, swapped: u64) -> u32 {
    let mut wide = expand(half);
    let differ = (wide >> 24 ^ wide) & swapped;
    wide ^= differ << 24 | differ;
    wide ^= subkey;
    let mut out = 0;
    for (at, table) in S.iter().enumerate() {
        let six = (wide >> (42 - 6 * at)) as usize & 63;
        let (row, column) = (six >> 4 & 2 | six & 1, six >> 1 & 15);
        out = out << 4 | u64::from(table[row * 16 + column]);
    }
    permute(out, 32, &P) as u32
}

/// Expands eight groups of four bits to 48 bits, each group with its neighbouring bits.
fn expand(half: u32) -> u64 {
    let half = u64::from(half);
    let ring = (half & 1) << 33 | half << 1 | half >> 31;
    (0..8).fold(0, |wide, at| wide << 6 | ring >> (28 - 4 * at) & 63)
}

fn subkeys(key: u64) -> [u64; 16] {
    const HALF: u64 = (1 << 28) - 1;
    let chosen = permute(key, 64, &PC1);
    let (mut left, mut right) = (chosen >> 28, chosen & HALF);
    SHIFTS.map(|shift| {
        let turn = |half: u64| (half << shift | half >> (28 - shift)) & HALF;
        (left, right) = (turn(left), turn(right));
        permute(left << 28 | right, 56, &PC2)
    })
}

/// Reorders the bits of a word of `width` bits. As in the standard, bit 1 is the highest.
fn permute(word: u64, width: u8, order: &[u8]) -> u64 {
    order.iter().fold(0, |out, bit| out << 1 | word >> (width - bit) & 1)
}

const SHIFTS: [u32; 16] = [1, 1, 2, 2, 2, 2, 2, 2, 1, 2, 2, 2, 2, 2, 2, 1];

#[rustfmt::skip]
const PC1: [u8; 56] = [
    57, 49, 41, 33, 25, 17, 9, 1, 58, 50, 42, 34, 26, 18, 10, 2, 59, 51, 43, 35, 27, 19, 11, 3,
    60, 52, 44, 36, 63, 55, 47, 39, 31, 23, 15, 7, 62, 54, 46, 38, 30, 22, 14, 6, 61, 53, 45, 37,
    29, 21, 13, 5, 28, 20, 12, 4,
];

#[rustfmt::skip]
const PC2: [u8; 48] = [
    14, 17, 11, 24, 1, 5, 3, 28, 15, 6, 21, 10, 23, 19, 12, 4, 26, 8, 16, 7, 27, 20, 13, 2,
    41, 52, 31, 37, 47, 55, 30, 40, 51, 45, 33, 48, 44, 49, 39, 56, 34, 53, 46, 42, 50, 36, 29, 32,
];

#[rustfmt::skip]
const FINAL: [u8; 64] = [
    40, 8, 48, 16, 56, 24, 64, 32, 39, 7, 47, 15, 55, 23, 63, 31, 38, 6, 46, 14, 54, 22, 62, 30,
    37, 5, 45, 13, 53, 21, 61, 29, 36, 4, 44, 12, 52, 20, 60, 28, 35, 3, 43, 11, 51, 19, 59, 27,
    34, 2, 42, 10, 50, 18, 58, 26, 33, 1, 41, 9, 49, 17, 57, 25,
];

#[rustfmt::skip]
const P: [u8; 32] = [
    16, 7, 20, 21, 29, 12, 28, 17, 1, 15, 23, 26, 5, 18, 31, 10,
    2, 8, 24, 14, 32, 27, 3, 9, 19, 13, 30, 6, 22, 11, 4, 25,
];

#[rustfmt::skip]
const S: [[u8; 64]; 8] = [
    [
        14, 4, 13, 1, 2, 15, 11, 8, 3, 10, 6, 12, 5, 9, 0, 7,
        0, 15, 7, 4, 14, 2, 13, 1, 10, 6, 12, 11, 9, 5, 3, 8,
        4, 1, 14, 8, 13, 6, 2, 11, 15, 12, 9, 7, 3, 10, 5, 0,
        15, 12, 8, 2, 4, 9, 1, 7, 5, 11, 3, 14, 10, 0, 6, 13,
    ],
    [
        15, 1, 8, 14, 6, 11, 3, 4, 9, 7, 2, 13, 12, 0, 5, 10,
        3, 13, 4, 7, 15, 2, 8, 14, 12, 0, 1, 10, 6, 9, 11, 5,
        0, 14, 7, 11, 10, 4, 13, 1, 5, 8, 12, 6, 9, 3, 2, 15,
        13, 8, 10, 1, 3, 15, 4, 2, 11, 6, 7, 12, 0, 5, 14, 9,
    ],
    [
        10, 0, 9, 14, 6, 3, 15, 5, 1, 13, 12, 7, 11, 4, 2, 8,
        13, 7, 0, 9, 3, 4, 6, 10, 2, 8, 5, 14, 12, 11, 15, 1,
        13, 6, 4, 9, 8, 15, 3, 0, 11, 1, 2, 12, 5, 10, 14, 7,
        1, 10, 13, 0, 6, 9, 8, 7, 4, 15, 14, 3, 11, 5, 2, 12,
    ],
    [
        7, 13, 14, 3, 0, 6, 9, 10, 1, 2, 8, 5, 11, 12, 4, 15,
        13, 8, 11, 5, 6, 15, 0, 3, 4, 7, 2, 12, 1, 10, 14, 9,
        10, 6, 9, 0, 12, 11, 7, 13, 15, 1, 3, 14, 5, 2, 8, 4,
        3, 15, 0, 6, 10, 1, 13, 8, 9, 4, 5, 11, 12, 7, 2, 14,
    ],
    [
        2, 12, 4, 1, 7, 10, 11, 6, 8, 5, 3, 15, 13, 0, 14, 9,
        14, 11, 2, 12, 4, 7, 13, 1, 5, 0, 15, 10, 3, 9, 8, 6,
        4, 2, 1, 11, 10, 13, 7, 8, 15, 9, 12, 5, 6, 3, 0, 14,
        11, 8, 12, 7, 1, 14, 2, 13, 6, 15, 0, 9, 10, 4, 5, 3,
    ],
    [
        12, 1, 10, 15, 9, 2, 6, 8, 0, 13, 3, 4, 14, 7, 5, 11,
        10, 15, 4, 2, 7, 12, 9, 5, 6, 1, 13, 14, 0, 11, 3, 8,
        9, 14, 15, 5, 2, 8, 12, 3, 7, 0, 4, 10, 1, 13, 11, 6,
        4, 3, 2, 12, 9, 5, 15, 10, 11, 14, 1, 7, 6, 0, 8, 13,
    ],
    [
        4, 11, 2, 14, 15, 0, 8, 13, 3, 12, 9, 7, 5, 10, 6, 1,
        13, 0, 11, 7, 4, 9, 1, 10, 14, 3, 5, 12, 2, 15, 8, 6,
        1, 4, 11, 13, 12, 3, 7, 14, 10, 15, 6, 8, 0, 5, 9, 2,
        6, 11, 13, 8, 1, 4, 10, 7, 9, 5, 0, 15, 14, 2, 3, 12,
    ],
    [
        13, 2, 8, 4, 6, 15, 11, 1, 10, 9, 3, 14, 5, 0, 12, 7,
        1, 15, 13, 8, 10, 3, 7, 4, 12, 5, 6, 11, 0, 14, 9, 2,
        7, 11, 4, 1, 9, 12, 14, 2, 0, 6, 10, 13, 15, 3, 5, 8,
        2, 1, 14, 7, 4, 10, 8, 13, 15, 12, 9, 0, 3, 5, 6, 11,
    ],
];
