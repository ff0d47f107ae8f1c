//! Times of day, which no two runs share: read where their distance counts, blanked elsewhere.

/// Shapes of a time in a log: `d` a digit, `a` a letter, `s` a sign, the rest itself.
const SHAPES: [&[u8]; 2] = [b"dd/aaa/dddd:dd:dd:dd sdddd", b"dddd-dd-ddTdd:dd:ddsdd:dd"];

/// Seconds since 1970 of an IMF-fixdate (RFC 9110 5.6.7).
pub(super) fn parse_http_date(value: &[u8]) -> Option<u64> {
    const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let text = std::str::from_utf8(value).ok()?;
    let words: Vec<&str> = text.split([' ', ':']).collect();
    let [_, day, month, year, hour, minute, second, "GMT"] = words[..] else { return None };
    let month = (MONTHS.find(month)? / 3) as u64;
    let number = |word: &str| word.parse::<u64>().ok();
    let days = days_before(number(year)?, month)? + number(day)?.checked_sub(1)?;
    Some(((days * 24 + number(hour)?) * 60 + number(minute)?) * 60 + number(second)?)
}

/// Days from 1970 to the first of a month, counted from 0.
fn days_before(year: u64, month: u64) -> Option<u64> {
    const BEFORE_MONTH: [u64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
    let leaps_to = |year: u64| year / 4 - year / 100 + year / 400;
    let leap_now = leaps_to(year) - leaps_to(year.checked_sub(1)?) == 1 && month > 1;
    let years = year.checked_sub(1970)?;
    let leaps = leaps_to(year - 1) - leaps_to(1969) + u64::from(leap_now);
    Some(years * 365 + leaps + BEFORE_MONTH.get(month as usize)?)
}

/// A log line with every time in it made alike, `0.123` counting as one.
pub(super) fn blanked(line: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(line.len());
    let mut at = 0;
    while at < line.len() {
        let rest = &line[at..];
        let inside_number = at > 0 && matches!(line[at - 1], b'0'..=b'9' | b'.');
        let shape = SHAPES.iter().find(|shape| fits(rest, shape)).map(|shape| shape.len());
        match shape.or_else(|| seconds(rest)).filter(|_| !inside_number) {
            Some(length) => {
                out.extend_from_slice(b"TIME");
                at += length;
            }
            None => {
                out.push(line[at]);
                at += 1;
            }
        }
    }
    out
}

fn fits(bytes: &[u8], shape: &[u8]) -> bool {
    bytes.len() >= shape.len()
        && bytes.iter().zip(shape).all(|(byte, kind)| match kind {
            b'd' => byte.is_ascii_digit(),
            b'a' => byte.is_ascii_alphabetic(),
            b's' => matches!(byte, b'+' | b'-'),
            _ => byte == kind,
        })
}

/// The length of digits, a point and exactly three digits, as `$msec` and `$request_time` write.
fn seconds(bytes: &[u8]) -> Option<usize> {
    let whole = bytes.iter().take_while(|b| b.is_ascii_digit()).count();
    let fits = whole > 0 && fits(&bytes[whole..], b".ddd");
    let ends = !matches!(bytes.get(whole + 4), Some(b'0'..=b'9' | b'.'));
    (fits && ends).then_some(whole + 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_become_seconds() {
        assert_eq!(parse_http_date(b"Thu, 01 Jan 1970 00:00:01 GMT"), Some(1));
        assert_eq!(parse_http_date(b"Tue, 14 Nov 2023 22:13:20 GMT"), Some(1_700_000_000));
        assert_eq!(parse_http_date(b"Thu, 29 Feb 2024 00:00:00 GMT"), Some(1_709_164_800));
        assert_eq!(parse_http_date(b"Fri, 01 Mar 2024 00:00:00 GMT"), Some(1_709_251_200));
        assert_eq!(parse_http_date(b"Thu, 31 Dec 2037 23:55:55 GMT"), Some(2_145_916_555));
        assert_eq!(parse_http_date(b"yesterday"), None);
    }

    #[test]
    fn only_times_are_blanked() {
        let line = b"127.0.0.1 [20/Nov/2025:13:03:24 +0000] 1732107804.123 0.001 10.0.0.123 3.1234";
        assert_eq!(blanked(line), b"127.0.0.1 [TIME] TIME TIME 10.0.0.123 3.1234");
        assert_eq!(blanked(b"2025-11-20T13:03:24+00:00 -"), b"TIME -");
    }
}
