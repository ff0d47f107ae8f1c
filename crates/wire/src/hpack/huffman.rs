//! The Huffman code of HPACK (RFC 7541, appendix B).
//!
//! The code is canonical: codes of one length are consecutive numbers in the order of their
//! symbols. The source therefore lists only the lengths; the tables for both directions are
//! computed from them at compile time.
//!
//! Decoding takes one or two symbols per step, those that the next [`LOOKUP_BITS`] bits hold
//! completely. Only symbols that hardly occur in fields have longer codes, and are searched by
//! length.

use alloc::vec::Vec;

use super::HpackError;

/// Symbols: the bytes, and the end of the string (EOS), which must not occur in one.
const SYMBOLS: usize = 257;
const CODE_BITS_MIN: u8 = 5;
const CODE_BITS_MAX: u8 = 30;
/// Two of the most frequent symbols: digits and most lower-case letters.
const LOOKUP_BITS: u8 = 12;

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
/// The symbols that the next [`LOOKUP_BITS`] bits hold.
static LOOKUP: [CodePrefix; 1 << LOOKUP_BITS] = lookup();
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

/// The symbols in the next bits.
#[derive(Clone, Copy)]
struct CodePrefix {
    symbols: [u8; 2],
    /// How many of the symbols there are; 0 if the first code is longer than these bits.
    count: u8,
    /// The bits of all their codes, and of the first one: four bits each.
    bits: u8,
}

impl CodePrefix {
    fn bits(self) -> u8 {
        self.bits & 15
    }

    fn first_bits(self) -> u8 {
        self.bits >> 4
    }
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

const fn lookup() -> [CodePrefix; 1 << LOOKUP_BITS] {
    let first = first_symbols();
    let mut table = [CodePrefix { symbols: [0; 2], count: 0, bits: 0 }; 1 << LOOKUP_BITS];
    let mut at = 0;
    while at < table.len() {
        let (one, bits) = first[at];
        if bits > 0 {
            let (two, more) = first[(at << bits) & (table.len() - 1)];
            let is_pair = more > 0 && bits + more <= LOOKUP_BITS;
            table[at] = CodePrefix {
                symbols: [one, if is_pair { two } else { 0 }],
                count: 1 + is_pair as u8,
                bits: bits << 4 | if is_pair { bits + more } else { bits },
            };
        }
        at += 1;
    }
    table
}

/// A symbol and the length of its code for all bits that begin with it; length 0 for the others.
const fn first_symbols() -> [(u8, u8); 1 << LOOKUP_BITS] {
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

/// Decodes `code` and appends the text to `out`.
pub(super) fn decode(code: &[u8], out: &mut Vec<u8>) -> Result<(), HpackError> {
    let mut at = out.len();
    // Room for a pair behind the last symbol.
    out.resize(at + code.len() * 8 / usize::from(CODE_BITS_MIN) + 2, 0);
    let mut bits = CodeBits { input: code, window: 0, count: 0 };
    loop {
        if bits.count < CODE_BITS_MAX {
            bits = bits.refilled();
        }
        let prefix = LOOKUP[(bits.window >> (64 - LOOKUP_BITS)) as usize];
        if prefix.count > 0 && prefix.bits() <= bits.count {
            let Some(pair) = out.get_mut(at..at + 2) else { break };
            pair.copy_from_slice(&prefix.symbols);
            at += usize::from(prefix.count);
            bits = bits.without(prefix.bits());
            continue;
        }
        let Some((symbol, rest)) = bits.last_symbol(prefix)? else { break };
        let Some(slot) = out.get_mut(at) else { break };
        *slot = symbol;
        at += 1;
        bits = rest;
    }
    out.truncate(at);
    Ok(())
}

/// The bits of a string that are not decoded yet. Passed by value, to stay in registers.
#[derive(Clone, Copy)]
struct CodeBits<'a> {
    input: &'a [u8],
    /// The next bits, left-aligned; zeros, or a part of `input`, after the `count` valid ones.
    window: u64,
    count: u8,
}

impl CodeBits<'_> {
    #[inline(always)]
    fn refilled(mut self) -> Self {
        let Some(word) = self.input.first_chunk::<8>() else { return self.refilled_bytewise() };
        self.window |= u64::from_be_bytes(*word) >> self.count;
        let bytes = (63 - self.count) >> 3;
        self.input = &self.input[usize::from(bytes)..];
        self.count += bytes * 8;
        self
    }

    #[inline(always)]
    fn refilled_bytewise(mut self) -> Self {
        while self.count <= 56 {
            let Some((&byte, rest)) = self.input.split_first() else { break };
            self.window |= u64::from(byte) << (56 - self.count);
            self.count += 8;
            self.input = rest;
        }
        self
    }

    #[inline(always)]
    fn without(mut self, bits: u8) -> Self {
        self.window <<= bits;
        self.count -= bits;
        self
    }

    /// A symbol before the end, where the next bits hold more than there are; or a rare one, whose
    /// code is longer than [`LOOKUP_BITS`]. `None` at the end.
    #[cold]
    fn last_symbol(self, prefix: CodePrefix) -> Result<Option<(u8, Self)>, HpackError> {
        if prefix.count > 0 && prefix.first_bits() <= self.count {
            return Ok(Some((prefix.symbols[0], self.without(prefix.first_bits()))));
        }
        // The padding: less than a byte, all ones (RFC 7541, 5.2). No symbol has such a code.
        if self.count < 8 && self.window.leading_ones() >= u32::from(self.count) {
            return Ok(None);
        }
        for bits in LOOKUP_BITS + 1..=CODE_BITS_MAX.min(self.count) {
            let group = &GROUPS[usize::from(bits)];
            let place = ((self.window >> (64 - bits)) as u32).wrapping_sub(group.first);
            if place < group.count {
                let symbol = BY_CODE[(group.symbols_at + place) as usize];
                let symbol = u8::try_from(symbol).map_err(|_| HpackError::InvalidHuffman)?;
                return Ok(Some((symbol, self.without(bits))));
            }
        }
        Err(HpackError::InvalidHuffman)
    }
}

/// The length of `text` in Huffman code, in bytes.
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
