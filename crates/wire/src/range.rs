//! The `Range` header applied to a length (RFC 9110, section 14), as in nginx.
//!
//! Not decided here: whether ranges apply at all (`If-Range`, the status, the version).

use alloc::vec::Vec;
use core::ops::Range;

/// The kind of answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ranges {
    /// 206 with the ranges found: one, or several as multipart/byteranges.
    Partial,
    /// The whole reply, as if there were no `Range`.
    Whole,
    /// 416.
    NotSatisfiable,
}

/// The cost of a part in a multipart reply when `max_ranges` is not set: such a reply may be longer
/// than the whole by [`MULTIPART_EXCESS_MAX`].
const PART_HEAD: u64 = 256;
const MULTIPART_EXCESS_MAX: u64 = 4096;

const OFFSET_MAX: u64 = i64::MAX as u64;

/// Reads the value of a `Range` header into `out`, which is cleared: non-empty ranges within
/// `length`, in the order of the header. `max_ranges` is nginx's directive; `None` if it is not
/// set.
pub fn parse(
    value: &[u8],
    length: u64,
    max_ranges: Option<u32>,
    out: &mut Vec<Range<u64>>,
) -> Ranges {
    out.clear();
    let Some((unit, set)) = value.split_first_chunk::<6>() else { return Ranges::Whole };
    if !unit.eq_ignore_ascii_case(b"bytes=") || set.is_empty() || max_ranges == Some(0) {
        return Ranges::Whole;
    }
    match collect(set, length, max_ranges, out) {
        Ok(total) => weigh(total, length, max_ranges, out),
        Err(answer) => answer,
    }
}

/// Collects the ranges. Returns the sum of their lengths.
fn collect(
    set: &[u8],
    length: u64,
    max_ranges: Option<u32>,
    out: &mut Vec<Range<u64>>,
) -> Result<u64, Ranges> {
    let mut total = 0u64;
    for spec in set.split(|&byte| byte == b',') {
        let range = Spec::parse(spec).ok_or(Ranges::NotSatisfiable)?.within(length);
        if range.start < range.end {
            total = total.saturating_add(range.end - range.start);
            if total > OFFSET_MAX {
                return Err(Ranges::NotSatisfiable);
            }
            if max_ranges.is_some_and(|max| out.len() >= max as usize) {
                return Err(Ranges::Whole);
            }
            out.push(range);
        } else if range.start == 0 {
            return Err(Ranges::Whole);
        }
    }
    Ok(total)
}

/// The answer for the collected ranges. Several ranges that are together longer than the whole are
/// an attack or a mistake.
fn weigh(total: u64, length: u64, max_ranges: Option<u32>, found: &[Range<u64>]) -> Ranges {
    let parts = found.len() as u64;
    match parts {
        0 => Ranges::NotSatisfiable,
        1 => Ranges::Partial,
        _ if total > length => Ranges::Whole,
        _ if max_ranges.is_none()
            && total.saturating_add(parts * PART_HEAD)
                > length.saturating_add(MULTIPART_EXCESS_MAX) =>
        {
            Ranges::Whole
        }
        _ => Ranges::Partial,
    }
}

enum Spec {
    From(u64),
    Between(u64, u64),
    Last(u64),
}

impl Spec {
    /// `first-`, `first-last` or `-length`, with spaces anywhere but within numbers and before the
    /// number of a suffix.
    fn parse(text: &[u8]) -> Option<Spec> {
        let mut reader = RangeReader { rest: text };
        reader.spaces();
        let spec = if reader.takes(b'-') {
            Spec::Last(reader.number()?)
        } else {
            let first = reader.number()?;
            reader.spaces();
            if !reader.takes(b'-') {
                return None;
            }
            reader.spaces();
            if reader.rest.is_empty() {
                Spec::From(first)
            } else {
                Spec::Between(first, reader.number()?)
            }
        };
        reader.spaces();
        reader.rest.is_empty().then_some(spec)
    }

    /// The range within `length`; empty if it lies outside.
    fn within(self, length: u64) -> Range<u64> {
        match self {
            Spec::From(first) => first..length,
            Spec::Between(first, last) => first..last.saturating_add(1).min(length),
            Spec::Last(count) => length.saturating_sub(count)..length,
        }
    }
}

struct RangeReader<'a> {
    rest: &'a [u8],
}

impl RangeReader<'_> {
    fn spaces(&mut self) {
        while self.takes(b' ') {}
    }

    fn takes(&mut self, byte: u8) -> bool {
        let Some(rest) = self.rest.strip_prefix(&[byte]) else { return false };
        self.rest = rest;
        true
    }

    fn number(&mut self) -> Option<u64> {
        let end = self.rest.iter().position(|byte| !byte.is_ascii_digit());
        let (digits, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        if digits.is_empty() {
            return None;
        }
        let number = digits.iter().try_fold(0u64, |number, &digit| {
            number.checked_mul(10)?.checked_add(u64::from(digit - b'0'))
        })?;
        (number <= OFFSET_MAX).then_some(number)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    fn ranges(
        value: &str,
        length: u64,
        max_ranges: Option<u32>,
    ) -> Result<Vec<Range<u64>>, Ranges> {
        let mut out = vec![7..8, 8..9];
        match parse(value.as_bytes(), length, max_ranges, &mut out) {
            Ranges::Partial => Ok(out),
            answer => Err(answer),
        }
    }

    #[test]
    #[expect(clippy::single_range_in_vec_init, reason = "one range is what is meant")]
    fn ranges_of_a_thousand_bytes() {
        let whole = Err(Ranges::Whole);
        let not_satisfiable = Err(Ranges::NotSatisfiable);
        let table = [
            ("bytes=0-8", Ok(vec![0..9])),
            ("BYTES=0-8", Ok(vec![0..9])),
            ("bytes=-10", Ok(vec![990..1000])),
            ("bytes=-2000", Ok(vec![0..1000])),
            ("bytes=990-", Ok(vec![990..1000])),
            ("bytes=990-1990", Ok(vec![990..1000])),
            ("bytes= 0 - 8 , 9 - ", Ok(vec![0..9, 9..1000])),
            ("bytes=0-9, -10, 10-19", Ok(vec![0..10, 990..1000, 10..20])),
            ("bytes=0-9, -10, 100000-, 10-19", Ok(vec![0..10, 990..1000, 10..20])),
            ("bytes=5-9223372036854775807", Ok(vec![5..1000])),
            ("bytes=5-4,0-0", Ok(vec![0..1])),
            ("bytes=100000-", not_satisfiable.clone()),
            ("bytes=1000-", not_satisfiable.clone()),
            ("bytes=5-4", not_satisfiable.clone()),
            ("bytes=-0", not_satisfiable.clone()),
            ("bytes=alpha", not_satisfiable.clone()),
            ("bytes=10-alpha", not_satisfiable.clone()),
            ("bytes=10", not_satisfiable.clone()),
            ("bytes=10-11 12-", not_satisfiable.clone()),
            ("bytes=-", not_satisfiable.clone()),
            ("bytes=- 5", not_satisfiable.clone()),
            ("bytes=0-8,", not_satisfiable.clone()),
            ("bytes=\t0-8", not_satisfiable.clone()),
            ("bytes=0-9223372036854775808", not_satisfiable.clone()),
            ("bytes=99999999999999999999-", not_satisfiable.clone()),
            ("bytes=0-10001, 0-0", whole.clone()),
            ("bytes=", whole.clone()),
            ("bytes", whole.clone()),
            ("lines=0-8", whole),
        ];
        for (value, expected) in table {
            assert_eq!(ranges(value, 1000, None), expected, "{value}");
        }
    }

    #[test]
    fn an_empty_reply_has_no_ranges() {
        for value in ["bytes=0-", "bytes=0-0", "bytes=-5", "bytes=-0"] {
            assert_eq!(ranges(value, 0, None), Err(Ranges::Whole), "{value}");
        }
        assert_eq!(ranges("bytes=1-", 0, None), Err(Ranges::NotSatisfiable));
    }

    #[test]
    fn max_ranges() {
        assert_eq!(ranges("bytes=0-9, -10", 1000, Some(2)), Ok(vec![0..10, 990..1000]));
        assert_eq!(ranges("bytes=0-9, -10, 10000-", 1000, Some(2)), Ok(vec![0..10, 990..1000]));
        assert_eq!(ranges("bytes=0-9, -10, 10-19", 1000, Some(2)), Err(Ranges::Whole));
        assert_eq!(ranges("bytes=0-9", 1000, Some(0)), Err(Ranges::Whole));
        assert_eq!(ranges("bytes=x", 1000, Some(0)), Err(Ranges::Whole));
    }

    #[test]
    fn many_small_ranges_cost_more_than_the_whole() {
        let value = alloc::format!("bytes={}", ["0-0"; 20].join(","));
        assert_eq!(ranges(&value, 1000, None).map(|ranges| ranges.len()), Err(Ranges::Whole));
        assert_eq!(ranges(&value, 1024, None).map(|ranges| ranges.len()), Err(Ranges::Whole));
        assert_eq!(ranges(&value, 1044, None).map(|ranges| ranges.len()), Ok(20));
        assert_eq!(ranges(&value, 1000, Some(20)).map(|ranges| ranges.len()), Ok(20));
    }

    #[test]
    fn sums_do_not_overflow() {
        let huge = "bytes=0-,0-,0-";
        assert_eq!(ranges(huge, OFFSET_MAX, None), Err(Ranges::NotSatisfiable));
        assert_eq!(ranges(huge, u64::MAX, None), Err(Ranges::NotSatisfiable));
    }
}
