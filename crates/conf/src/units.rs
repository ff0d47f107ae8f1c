//! Numbers, sizes and times in nginx's notation.
//!
//! Every function returns `None` for values that nginx rejects, including overflow of 63 bits; the
//! caller produces the message. Values that nginx accepts by accident (`1m30`, `1 5`, `1hm`) are
//! accepted as well.

/// A whole number: digits only.
pub fn number(text: &[u8]) -> Option<u64> {
    let (value, rest) = digits(text)?;
    let whole = !text.is_empty() && rest.is_empty();
    whole.then(|| value.unsigned_abs())
}

/// A number with at most `places` digits after a point, in units of the last place: `10.5` with two
/// places is 1050.
pub fn fixed_point(text: &[u8], places: usize) -> Option<u64> {
    let point = text.iter().position(|&byte| byte == b'.');
    let (whole, fraction) = match point {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, &b""[..]),
    };
    // As in nginx, the number of places is checked before the characters.
    if text.is_empty() || places == 0 || fraction.len() > places {
        return None;
    }
    let zeros = b"0".repeat(places - fraction.len());
    number(&[whole, fraction, &zeros].concat())
}

/// A size, perhaps with `k` or `m` in either case.
pub fn size(text: &[u8]) -> Option<u64> {
    let (number, scale) = match text {
        [number @ .., b'k' | b'K'] => (number, 1 << 10),
        [number @ .., b'm' | b'M'] => (number, 1 << 20),
        _ => (text, 1),
    };
    scaled(number, scale)
}

/// A file offset, or a size up to that of a file: [`size`] with `g`.
pub fn offset(text: &[u8]) -> Option<u64> {
    match text {
        [number @ .., b'g' | b'G'] => scaled(number, 1 << 30),
        _ => size(text),
    }
}

/// A time that nginx stores in seconds: `y`, `M`, `w`, `d`, `h`, `m`, `s`, in this order; a number
/// without a unit is in seconds.
pub fn seconds(text: &[u8]) -> Option<u64> {
    time(text, Resolution::Seconds)
}

/// A time that nginx stores in milliseconds: with `ms`, without `y` and `M`; a number without a
/// unit is still in seconds.
pub fn milliseconds(text: &[u8]) -> Option<u64> {
    time(text, Resolution::Milliseconds)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Resolution {
    Seconds,
    Milliseconds,
}

/// A unit of time. Units must come in the order of their steps.
struct TimeUnit {
    name: &'static [u8],
    /// All units before it must have smaller steps.
    step: u8,
    /// `None` is a millisecond.
    seconds: Option<i64>,
}

const fn unit(name: &'static [u8], step: u8, seconds: i64) -> TimeUnit {
    TimeUnit { name, step, seconds: Some(seconds) }
}

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const MONTH_STEP: u8 = 2;
const SPACE_STEP: u8 = 9;

const UNITS: [TimeUnit; 9] = [
    unit(b"y", 1, 365 * DAY),
    unit(b"M", MONTH_STEP, 30 * DAY),
    unit(b"w", 3, 7 * DAY),
    unit(b"d", 4, DAY),
    unit(b"h", 5, HOUR),
    // This comes before the minute, whose name begins alike.
    TimeUnit { name: b"ms", step: 8, seconds: None },
    unit(b"m", 6, MINUTE),
    unit(b"s", 7, 1),
    // A space after a number means seconds, in the place of `s`, and no unit may follow it.
    unit(b" ", 7, 1),
];

fn time(text: &[u8], resolution: Resolution) -> Option<u64> {
    let per_second = if resolution == Resolution::Seconds { 1 } else { 1000 };
    let mut step = if resolution == Resolution::Seconds { 0 } else { MONTH_STEP };
    let mut total: i64 = 0;
    let mut rest = text;
    loop {
        let (value, after) = digits(rest)?;
        if after.is_empty() {
            total = total.checked_add(value.checked_mul(per_second)?)?;
            break;
        }
        let unit = UNITS.iter().find(|unit| after.starts_with(unit.name))?;
        let scale = match unit.seconds {
            Some(seconds) => seconds * per_second,
            None if resolution == Resolution::Milliseconds => 1,
            None => return None,
        };
        if step >= unit.step {
            return None;
        }
        step = if unit.name == b" " { SPACE_STEP } else { unit.step };
        total = total.checked_add(value.checked_mul(scale)?)?;
        rest = skip_spaces(&after[unit.name.len()..]);
    }
    text.iter().any(u8::is_ascii_digit).then(|| total.unsigned_abs())
}

fn scaled(text: &[u8], scale: i64) -> Option<u64> {
    let value = i64::try_from(number(text)?).ok()?;
    value.checked_mul(scale).map(i64::unsigned_abs)
}

/// The number at the beginning of a text, and the text after it.
fn digits(text: &[u8]) -> Option<(i64, &[u8])> {
    let len = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = text.split_at(len);
    let value = digits.iter().try_fold(0_i64, |value, &digit| {
        value.checked_mul(10)?.checked_add(i64::from(digit - b'0'))
    })?;
    Some((value, rest))
}

fn skip_spaces(text: &[u8]) -> &[u8] {
    let spaces = text.iter().take_while(|&&byte| byte == b' ').count();
    &text[spaces..]
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: u64 = i64::MAX as u64;

    type Case = (&'static str, Option<u64>);

    fn check(read: fn(&[u8]) -> Option<u64>, cases: &[Case]) {
        for (text, expected) in cases {
            assert_eq!(read(text.as_bytes()), *expected, "{text:?}");
        }
    }

    #[test]
    fn numbers() {
        let cases: [Case; 10] = [
            ("0", Some(0)),
            ("007", Some(7)),
            ("9223372036854775807", Some(MAX)),
            ("9223372036854775808", None),
            ("18446744073709551616", None),
            ("", None),
            ("-1", None),
            ("+1", None),
            ("1k", None),
            (" 1", None),
        ];
        check(number, &cases);
    }

    #[test]
    fn fixed_points() {
        let cases: [Case; 14] = [
            ("10.5", Some(1050)),
            ("10", Some(1000)),
            ("10.", Some(1000)),
            (".5", Some(50)),
            (".", Some(0)),
            ("10.55", Some(1055)),
            ("10.555", None),
            ("10.5.", None),
            ("1..5", None),
            ("", None),
            ("a", None),
            ("1.-", None),
            ("92233720368547758.07", Some(MAX)),
            ("92233720368547758.08", None),
        ];
        check(|text| fixed_point(text, 2), &cases);
        assert_eq!(fixed_point(b"1", 0), None);
    }

    #[test]
    fn sizes() {
        let cases: [Case; 12] = [
            ("1", Some(1)),
            ("8k", Some(8 << 10)),
            ("8K", Some(8 << 10)),
            ("1m", Some(1 << 20)),
            ("1M", Some(1 << 20)),
            ("1g", None),
            ("k", None),
            ("", None),
            ("1kk", None),
            ("1 k", None),
            ("9007199254740991k", Some(9007199254740991 << 10)),
            ("9007199254740992k", None),
        ];
        check(size, &cases);
    }

    #[test]
    fn offsets() {
        let cases: [Case; 6] = [
            ("1g", Some(1 << 30)),
            ("2G", Some(2 << 30)),
            ("1k", Some(1 << 10)),
            ("g", None),
            ("8589934591g", Some(8589934591 << 30)),
            ("8589934592g", None),
        ];
        check(offset, &cases);
    }

    #[test]
    fn times_in_seconds() {
        let cases: [Case; 22] = [
            ("30", Some(30)),
            ("30s", Some(30)),
            ("1m", Some(60)),
            ("1h", Some(3600)),
            ("1d", Some(86400)),
            ("1w", Some(604800)),
            ("1M", Some(2592000)),
            ("1y", Some(31536000)),
            ("1y2M3w4d5h6m7s", Some(31536000 + 5184000 + 1814400 + 345600 + 18000 + 360 + 7)),
            ("1h 30m", Some(5400)),
            ("1m30", Some(90)),
            ("30s1m", None),
            ("1m1m", None),
            ("1y1y", None),
            ("5ms", None),
            ("", None),
            ("s", None),
            ("-1", None),
            ("1x", None),
            ("1.5h", None),
            ("9223372036854775807", Some(MAX)),
            ("9223372036854775807s1", None),
        ];
        check(seconds, &cases);
    }

    #[test]
    fn times_in_milliseconds() {
        let cases: [Case; 16] = [
            ("30", Some(30_000)),
            ("30s", Some(30_000)),
            ("500ms", Some(500)),
            ("1s500ms", Some(1_500)),
            ("1m500ms", Some(60_500)),
            ("500ms1s", None),
            ("1ms1ms", None),
            ("1w", Some(604_800_000)),
            ("1M", None),
            ("1y", None),
            ("9223372036854775", Some(9223372036854775000)),
            ("9223372036854776", None),
            ("9223372036854775807ms", Some(MAX)),
            ("9223372036854775807ms1", None),
            ("9223372036854776s", None),
            ("15250284452472w", None),
        ];
        check(milliseconds, &cases);
    }

    #[test]
    fn values_that_nginx_accepts_by_accident() {
        let cases: [Case; 8] = [
            ("1 ", Some(1)),
            ("1 5", Some(6)),
            ("1 5s", None),
            ("1 5 ", None),
            ("1hm", Some(3600)),
            ("1h   ", Some(3600)),
            (" 1", Some(1)),
            ("1s5", Some(6)),
        ];
        check(seconds, &cases);
    }
}
