//! The context of a trace in a request: the fields `traceparent` and `tracestate` (W3C Trace
//! Context).
//!
//! Deliberately absent: who samples, and the meaning of the entries of `tracestate`.

use alloc::vec::Vec;

/// The length of `traceparent` in version 00.
pub const TRACEPARENT_BYTES: usize = 55;
/// The most bytes of all `tracestate` lines of a request together.
pub const TRACESTATE_BYTES_MAX: usize = 2048;
/// The most entries of `tracestate` (section 3.3.1.1).
const ENTRIES_MAX: usize = 32;
/// The most bytes of the key of an entry, and of its value (section 3.3.1.3).
const KEY_BYTES_MAX: usize = 256;
const VALUE_BYTES_MAX: usize = 256;

/// The value of `traceparent`: a span, and whether it is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceParent {
    pub trace_id: [u8; 16],
    pub span_id: [u8; 8],
    pub sampled: bool,
}

impl TraceParent {
    /// Reads a value. Of a later version, only the parts that version 00 has are used, as section
    /// 4.3 demands. `None` if it is invalid.
    pub fn parse(value: &[u8]) -> Option<Self> {
        let (known, rest) = value.split_at_checked(TRACEPARENT_BYTES)?;
        let version = byte(&known[..2])?;
        let is_whole = match version {
            0 => rest.is_empty(),
            0xff => false,
            _ => rest.is_empty() || rest[0] == b'-',
        };
        let has_dashes = [2, 35, 52].iter().all(|&at| known[at] == b'-');
        let (trace_id, span_id) = (bytes(&known[3..35])?, bytes(&known[36..52])?);
        let flags = byte(&known[53..])?;
        let is_valid = is_whole && has_dashes && trace_id != [0; 16] && span_id != [0; 8];
        is_valid.then_some(Self { trace_id, span_id, sampled: flags & 1 != 0 })
    }

    /// The value, in version 00.
    #[inline]
    pub fn text(&self) -> [u8; TRACEPARENT_BYTES] {
        let mut text = *b"00-00000000000000000000000000000000-0000000000000000-00";
        text[3..35].copy_from_slice(&hex::<16, 32>(&self.trace_id));
        text[36..52].copy_from_slice(&hex::<8, 16>(&self.span_id));
        text[54] += u8::from(self.sampled);
        text
    }
}

/// Two digits for each byte, in lower case.
#[inline(always)]
pub fn hex<const BYTES: usize, const DIGITS: usize>(bytes: &[u8; BYTES]) -> [u8; DIGITS] {
    const { assert!(DIGITS == 2 * BYTES && BYTES.is_multiple_of(4), "whole words") };
    let mut digits = [0; DIGITS];
    let words = bytes.as_chunks::<4>().0.iter();
    for (word, place) in words.zip(digits.as_chunks_mut::<8>().0) {
        *place = hex_digits(*word);
    }
    digits
}

/// Every byte of a word.
const ONES: u64 = u64::from_ne_bytes([1; 8]);
const HIGH: u64 = ONES << 7;

/// The digits of four bytes, all at once: the lowest byte of a word is the first digit.
#[inline(always)]
fn hex_digits(bytes: [u8; 4]) -> [u8; 8] {
    let word = u64::from(u32::from_le_bytes(bytes));
    let word = (word | word << 16) & 0x0000_ffff_0000_ffff;
    let word = (word | word << 8) & 0x00ff_00ff_00ff_00ff;
    let values = word >> 4 & 0x000f_000f_000f_000f | (word & 0x000f_000f_000f_000f) << 8;
    // The carry of 10 and more is 1 for each letter.
    let letters = (values + ONES * 6) >> 4 & ONES;
    (values + ONES * u64::from(b'0') + letters * u64::from(b'a' - b'0' - 10)).to_le_bytes()
}

/// The bytes that digits in lower case stand for: capitals are invalid (section 3.2.2).
#[inline(always)]
fn bytes<const N: usize>(digits: &[u8]) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    let mut are_valid = true;
    for (word, digits) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(digits.as_chunks::<8>().0) {
        let (value, is_valid) = hex_value(*digits);
        *word = value;
        are_valid &= is_valid;
    }
    are_valid.then_some(bytes)
}

/// The bytes of eight digits, and whether all are digits.
#[inline(always)]
fn hex_value(digits: [u8; 8]) -> ([u8; 4], bool) {
    let word = u64::from_le_bytes(digits);
    let low = word & !HIGH;
    // The highest bit of each byte says whether it is at least this.
    let least = |byte: u8| low + ONES * u64::from(0x80 - byte);
    let letters = least(b'a') & !least(b'f' + 1) & HIGH;
    let is_valid = (least(b'0') & !least(b'9' + 1) | letters) & HIGH & !word == HIGH;
    let values = (word & (ONES * 0x0f)) + (letters >> 7) * 9;
    let bytes = (values << 4 | values >> 8) & 0x00ff_00ff_00ff_00ff;
    let bytes = (bytes | bytes >> 8) & 0x0000_ffff_0000_ffff;
    (((bytes | bytes >> 16) as u32).to_le_bytes(), is_valid)
}

/// The byte of two digits.
fn byte(digits: &[u8]) -> Option<u8> {
    let mut word = *b"00000000";
    word[..2].copy_from_slice(digits);
    bytes(&word).map(|[byte, ..]: [u8; 4]| byte)
}

/// Joins the `tracestate` lines of a request into `out`, which is cleared. It stays empty if they
/// are invalid: the list is then ignored as a whole.
pub fn join_tracestate<'v>(lines: impl IntoIterator<Item = &'v [u8]>, out: &mut Vec<u8>) {
    out.clear();
    let mut entries = 0;
    for line in lines {
        if !out.is_empty() {
            out.push(b',');
        }
        out.extend_from_slice(line);
        let of_line = line.split(|byte| *byte == b',').map(trim);
        let mut of_line = of_line.filter(|entry| !entry.is_empty());
        let is_valid = of_line.all(|entry| {
            entries += 1;
            is_entry(entry)
        });
        if !is_valid || entries > ENTRIES_MAX || out.len() > TRACESTATE_BYTES_MAX {
            return out.clear();
        }
    }
    if entries == 0 {
        out.clear();
    }
}

/// Without the spaces that may surround an entry.
fn trim(mut text: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = text {
        text = rest;
    }
    text
}

/// `key=value`
fn is_entry(entry: &[u8]) -> bool {
    let Some(equals) = entry.iter().position(|byte| *byte == b'=') else { return false };
    let (key, value) = (&entry[..equals], &entry[equals + 1..]);
    let is_in_key =
        |byte: &u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'*' | b'/' | b'@');
    let begins = key.first().is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    let is_in_value = |byte: &u8| matches!(byte, b' '..=b'~') && *byte != b'=';
    begins
        && key.len() <= KEY_BYTES_MAX
        && key.iter().all(is_in_key)
        && (1..=VALUE_BYTES_MAX).contains(&value.len())
        && value.iter().all(is_in_value)
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    const VALID: &[u8] = b"00-0af7651916cd43dd8448eb211c80319c-b9c7c989f97918e1-01";

    fn joined(lines: &[&[u8]]) -> Vec<u8> {
        let mut out = b"old".to_vec();
        join_tracestate(lines.iter().copied(), &mut out);
        out
    }

    #[test]
    fn digits_are_those_of_each_byte() {
        for number in 0..=u16::MAX {
            let [one, other] = number.to_be_bytes();
            let written = [one, 0, other, one, other, other, 0xff, one];
            let digits: [u8; 16] = hex(&written);
            let expected = format!("{:016x}", u64::from_be_bytes(written));
            assert_eq!(digits, expected.as_bytes());
            assert_eq!(bytes(&digits), Some(written));
        }
    }

    #[test]
    fn other_bytes_are_no_digits_wherever_they_are() {
        for wrong in 0..=u8::MAX {
            for at in 0..8 {
                let mut digits = *b"09af09af";
                digits[at] = wrong;
                let is_digit = matches!(wrong, b'0'..=b'9' | b'a'..=b'f');
                assert_eq!(bytes::<4>(&digits).is_some(), is_digit, "{wrong} at {at}");
            }
        }
    }

    #[test]
    fn a_parent_is_written_as_it_was_read() {
        let parent = TraceParent::parse(VALID).unwrap();
        assert_eq!((parent.trace_id[0], parent.span_id[7], parent.sampled), (0x0a, 0xe1, true));
        assert_eq!(parent.text(), VALID);
        let unsampled = TraceParent { sampled: false, ..parent };
        assert_eq!(&unsampled.text()[..53], &VALID[..53]);
        assert_eq!(TraceParent::parse(&unsampled.text()), Some(unsampled));
    }

    #[test]
    fn an_invalid_parent_is_ignored() {
        let changed = |at: usize, byte: u8| {
            let mut text = VALID.to_vec();
            text[at] = byte;
            TraceParent::parse(&text)
        };
        for (at, byte) in [(2, b'_'), (4, b'A'), (35, b'0'), (40, b'g'), (52, b' '), (54, b'-')] {
            assert_eq!(changed(at, byte), None, "{at}");
        }
        assert_eq!(TraceParent::parse(b""), None);
        assert_eq!(TraceParent::parse(&VALID[..54]), None);
        assert_eq!(TraceParent::parse(&[VALID, b"-x"].concat()), None);
        let zero_trace = b"00-00000000000000000000000000000000-b9c7c989f97918e1-01";
        let zero_span = b"00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01";
        assert_eq!((TraceParent::parse(zero_trace), TraceParent::parse(zero_span)), (None, None));
    }

    #[test]
    fn a_later_version_may_be_longer() {
        let later = [b"01", &VALID[2..]].concat();
        assert_eq!(TraceParent::parse(&later), TraceParent::parse(VALID));
        assert!(TraceParent::parse(&[&later[..], b"-more"].concat()).is_some());
        assert!(TraceParent::parse(&[&later[..], b"more"].concat()).is_none());
        assert!(TraceParent::parse(&[b"ff", &VALID[2..]].concat()).is_none());
    }

    #[test]
    fn the_flag_is_one_bit_of_several() {
        let flags = |flags: &[u8]| TraceParent::parse(&[&VALID[..53], flags].concat()).unwrap();
        assert!(flags(b"03").sampled && !flags(b"02").sampled);
    }

    #[test]
    fn states_are_joined_if_all_are_valid() {
        assert_eq!(joined(&[b"congo=t61rcWkgMzE,rojo=00"]), b"congo=t61rcWkgMzE,rojo=00");
        assert_eq!(joined(&[b"a=1", b"b@c=2 3, ,"]), b"a=1,b@c=2 3, ,");
        for invalid in [&b"a"[..], b"=1", b"a=", b"A=1", b"a=b=c", b"a=\x7f", b"a b=1"] {
            assert!(joined(&[b"a=1", invalid]).is_empty(), "{invalid:?}");
        }
        assert_eq!(joined(&[b"", b" , "]), b"");
        let many = [&b"a=1,"[..]; 33].concat();
        assert!(joined(&[&many]).is_empty() && !joined(&[&many[..128]]).is_empty());
        let long = [b"a=", &[b'x'; 257][..]].concat();
        assert!(joined(&[&long]).is_empty() && !joined(&[&long[..258]]).is_empty());
    }
}
