//! The Huffman code of HPACK (RFC 7541, appendix B).
//!
//! The code is canonical: codes of one length are consecutive numbers in the order of their
//! symbols. So the lengths are all that has to be written down; the tables for both directions are
//! computed from them when Weir is compiled.
//!
//! Decoding takes one symbol per step: the next [`LOOKUP_BITS`] bits select a symbol and its
//! length. Only symbols that hardly occur in fields have longer codes, and are searched by length.

use alloc::vec::Vec;

use super::HpackError;

/// Symbols: the bytes, and the end of the string (EOS), which must not occur in one.
const SYMBOLS: usize = 257;
const CODE_BITS_MIN: u8 = 5;
const CODE_BITS_MAX: u8 = 30;
const LOOKUP_BITS: u8 = 10;

/// The bits of each symbol's code.
const LENGTHS: [u8; SYMBOLS] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28,
    28, 28, 28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5,
    5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6,
    6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22,
    23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22,
    21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20,
    22, 22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19,
    21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22,
    22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30,
];

/// Each symbol's code, right-aligned.
static CODES: [u32; SYMBOLS] = codes();
/// A symbol and the length of its code, by the next [`LOOKUP_BITS`] bits; length 0 if the code is
/// longer than these.
static LOOKUP: [(u8, u8); 1 << LOOKUP_BITS] = lookup();
/// For each length of a code: its first code, the number of codes, and where their symbols begin
/// in [`BY_CODE`].
static GROUPS: [CodeGroup; CODE_BITS_MAX as usize + 1] = groups();
/// The symbols in the order of their codes.
static BY_CODE: [u16; SYMBOLS] = by_code();

#[derive(Clone, Copy)]
struct CodeGroup {
    first: u32,
    count: u32,
    symbols_at: u32,
}

const fn by_code() -> [u16; SYMBOLS] {
    let mut symbols = [0; SYMBOLS];
    let (mut bits, mut at) = (CODE_BITS_MIN, 0);
    while bits <= CODE_BITS_MAX {
        let mut symbol = 0;
        while symbol < SYMBOLS {
            if LENGTHS[symbol] == bits {
                symbols[at] = symbol as u16;
                at += 1;
            }
            symbol += 1;
        }
        bits += 1;
    }
    symbols
}

const fn codes() -> [u32; SYMBOLS] {
    let symbols = by_code();
    let mut codes = [0; SYMBOLS];
    let (mut next, mut bits, mut at) = (0, CODE_BITS_MIN, 0);
    while at < SYMBOLS {
        let symbol = symbols[at] as usize;
        next <<= LENGTHS[symbol] - bits;
        bits = LENGTHS[symbol];
        codes[symbol] = next;
        next += 1;
        at += 1;
    }
    codes
}

const fn lookup() -> [(u8, u8); 1 << LOOKUP_BITS] {
    let codes = codes();
    let mut table = [(0, 0); 1 << LOOKUP_BITS];
    let mut symbol = 0;
    while symbol < SYMBOLS {
        let bits = LENGTHS[symbol];
        if bits <= LOOKUP_BITS {
            let unused = LOOKUP_BITS - bits;
            let mut at = (codes[symbol] as usize) << unused;
            let end = at + (1 << unused);
            while at < end {
                table[at] = (symbol as u8, bits);
                at += 1;
            }
        }
        symbol += 1;
    }
    table
}

const fn groups() -> [CodeGroup; CODE_BITS_MAX as usize + 1] {
    let (codes, symbols) = (codes(), by_code());
    let mut groups = [CodeGroup { first: 0, count: 0, symbols_at: 0 }; CODE_BITS_MAX as usize + 1];
    let mut at = 0;
    while at < SYMBOLS {
        let symbol = symbols[at] as usize;
        let group = &mut groups[LENGTHS[symbol] as usize];
        if group.count == 0 {
            group.first = codes[symbol];
            group.symbols_at = at as u32;
        }
        group.count += 1;
        at += 1;
    }
    groups
}

/// Appends to `out` what `code` says.
pub(super) fn decode(code: &[u8], out: &mut Vec<u8>) -> Result<(), HpackError> {
    let start = out.len();
    // One more than fits, so that the loop ends at the code's end and not at the output's.
    out.resize(start + code.len() * 8 / usize::from(CODE_BITS_MIN) + 1, 0);
    let mut bits = CodeBits { input: code, window: 0, count: 0 };
    for (at, slot) in out.iter_mut().enumerate().skip(start) {
        match bits.next_symbol()? {
            Some(symbol) => *slot = symbol,
            None => {
                out.truncate(at);
                break;
            }
        }
    }
    Ok(())
}

/// The bits of a string that are not decoded yet.
struct CodeBits<'a> {
    input: &'a [u8],
    /// The next bits, left-aligned; zeros, or a part of `input`, after the `count` valid ones.
    window: u64,
    count: u8,
}

impl CodeBits<'_> {
    #[inline(always)]
    fn next_symbol(&mut self) -> Result<Option<u8>, HpackError> {
        if self.count < CODE_BITS_MAX {
            self.refill();
        }
        let (symbol, bits) = LOOKUP[(self.window >> (64 - LOOKUP_BITS)) as usize];
        if bits == 0 || bits > self.count {
            return self.rare_symbol();
        }
        self.window <<= bits;
        self.count -= bits;
        Ok(Some(symbol))
    }

    #[inline(always)]
    fn refill(&mut self) {
        let Some(word) = self.input.first_chunk::<8>() else { return self.refill_bytewise() };
        self.window |= u64::from_be_bytes(*word) >> self.count;
        let bytes = (63 - self.count) >> 3;
        self.input = &self.input[usize::from(bytes)..];
        self.count += bytes * 8;
    }

    fn refill_bytewise(&mut self) {
        while self.count <= 56 {
            let Some((&byte, rest)) = self.input.split_first() else { return };
            self.window |= u64::from(byte) << (56 - self.count);
            self.count += 8;
            self.input = rest;
        }
    }

    /// A code longer than [`LOOKUP_BITS`], or the end.
    #[cold]
    fn rare_symbol(&mut self) -> Result<Option<u8>, HpackError> {
        // The padding: less than a byte, all ones (RFC 7541, 5.2). No symbol has such a code.
        if self.count < 8 && self.window.leading_ones() >= u32::from(self.count) {
            return Ok(None);
        }
        for bits in LOOKUP_BITS + 1..=CODE_BITS_MAX.min(self.count) {
            let group = &GROUPS[usize::from(bits)];
            let place = ((self.window >> (64 - bits)) as u32).wrapping_sub(group.first);
            if place < group.count {
                let symbol = BY_CODE[(group.symbols_at + place) as usize];
                self.window <<= bits;
                self.count -= bits;
                return u8::try_from(symbol).map(Some).map_err(|_| HpackError::InvalidHuffman);
            }
        }
        Err(HpackError::InvalidHuffman)
    }
}

/// The bytes that `text` has in Huffman code.
pub(super) fn encoded_len(text: &[u8]) -> usize {
    let bits: usize = text.iter().map(|&byte| usize::from(LENGTHS[usize::from(byte)])).sum();
    bits.div_ceil(8)
}

/// Appends `text` in Huffman code to `out`.
pub(super) fn encode(text: &[u8], out: &mut Vec<u8>) {
    let (mut window, mut count) = (0u64, 0);
    for &byte in text {
        let symbol = usize::from(byte);
        window = window << LENGTHS[symbol] | u64::from(CODES[symbol]);
        count += u32::from(LENGTHS[symbol]);
        if count >= 32 {
            count -= 32;
            out.extend_from_slice(&((window >> count) as u32).to_be_bytes());
        }
    }
    // The last byte is filled with ones.
    let unused = count.wrapping_neg() % 8;
    window = window << unused | ((1 << unused) - 1);
    let bytes = ((count + unused) / 8) as usize;
    out.extend_from_slice(&(window as u32).to_be_bytes()[4 - bytes..]);
}
