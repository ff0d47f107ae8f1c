//! Dates in the formats of HTTP and of nginx's logs. There is no clock here: a time is in seconds
//! since 1970, UTC, and the offset of a local time is in minutes.

/// The last second of the year 9999. Later times are written as this one, times before 1970 as
/// 1970.
const SECONDS_MAX: i64 = 253_402_300_799;

const WEEK: [&[u8; 3]; 7] = [b"Sun", b"Mon", b"Tue", b"Wed", b"Thu", b"Fri", b"Sat"];

pub(crate) const MONTHS: [&[u8; 3]; 12] = [
    b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec",
];

/// A calendar date and a time of day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Civil {
    /// 1970 to 9999.
    pub year: u32,
    /// 1 to 12.
    pub month: u32,
    /// 1 to 31.
    pub day: u32,
    /// 0 is Sunday.
    pub weekday: u32,
    /// 0 to 23.
    pub hour: u32,
    /// 0 to 59.
    pub minute: u32,
    /// 0 to 59: there are no leap seconds here.
    pub second: u32,
}

impl Civil {
    /// The UTC time of `seconds` since 1970.
    pub fn of(seconds: i64) -> Civil {
        let seconds = seconds.clamp(0, SECONDS_MAX) as u64;
        let (days, second) = (seconds / 86400, (seconds % 86400) as u32);
        // Years of this calendar begin in March, so that the leap day is the last of its year, and
        // cycles of 400 years in the year 0: 719,468 days before 1970.
        let day = days + 719_468;
        let (cycle, day) = (day / 146_097, day % 146_097);
        let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
        let day = day - (365 * year + year / 4 - year / 100);
        let month = (5 * day + 2) / 153;
        let january_follows = month >= 10;
        Civil {
            year: (400 * cycle + year + u64::from(january_follows)) as u32,
            month: (if january_follows { month - 9 } else { month + 3 }) as u32,
            day: (day - (153 * month + 2) / 5 + 1) as u32,
            weekday: ((days + 4) % 7) as u32,
            hour: second / 3600,
            minute: second / 60 % 60,
            second: second % 60,
        }
    }

    fn local(seconds: i64, offset_minutes: i32) -> Civil {
        Civil::of(seconds.saturating_add(i64::from(offset_minutes) * 60))
    }

    fn month_name(&self) -> &'static [u8; 3] {
        MONTHS[self.month as usize - 1]
    }
}

/// `Mon, 28 Sep 1970 06:00:00 GMT`: an IMF-fixdate (RFC 9110, section 5.6.7).
pub fn http(seconds: i64) -> [u8; 29] {
    let time = Civil::of(seconds);
    let mut text = *b"Mon, 28 Sep 1970 06:00:00 GMT";
    text[..3].copy_from_slice(WEEK[time.weekday as usize]);
    number(&mut text[5..7], time.day);
    text[8..11].copy_from_slice(time.month_name());
    number(&mut text[12..16], time.year);
    clock(&mut text[17..25], &time);
    text
}

/// `28/Sep/1970:12:00:00 +0600`: nginx's `$time_local`.
pub fn log(seconds: i64, offset_minutes: i32) -> [u8; 26] {
    let time = Civil::local(seconds, offset_minutes);
    let mut text = *b"28/Sep/1970:12:00:00 +0600";
    number(&mut text[..2], time.day);
    text[3..6].copy_from_slice(time.month_name());
    number(&mut text[7..11], time.year);
    clock(&mut text[12..20], &time);
    text[21] = sign(offset_minutes);
    number(&mut text[22..24], offset_minutes.unsigned_abs() / 60);
    number(&mut text[24..26], offset_minutes.unsigned_abs() % 60);
    text
}

/// `1970-09-28T12:00:00+06:00`: nginx's `$time_iso8601`.
pub fn iso8601(seconds: i64, offset_minutes: i32) -> [u8; 25] {
    let time = Civil::local(seconds, offset_minutes);
    let mut text = *b"1970-09-28T12:00:00+06:00";
    number(&mut text[..4], time.year);
    number(&mut text[5..7], time.month);
    number(&mut text[8..10], time.day);
    clock(&mut text[11..19], &time);
    text[19] = sign(offset_minutes);
    number(&mut text[20..22], offset_minutes.unsigned_abs() / 60);
    number(&mut text[23..25], offset_minutes.unsigned_abs() % 60);
    text
}

/// `1970/09/28 12:00:00`: the time in nginx's error log.
pub fn error_log(seconds: i64, offset_minutes: i32) -> [u8; 19] {
    let time = Civil::local(seconds, offset_minutes);
    let mut text = *b"1970/09/28 12:00:00";
    number(&mut text[..4], time.year);
    number(&mut text[5..7], time.month);
    number(&mut text[8..10], time.day);
    clock(&mut text[11..19], &time);
    text
}

/// `Sep 28 12:00:00`: the time of a syslog message (RFC 3164, section 4.1.2).
pub fn syslog(seconds: i64, offset_minutes: i32) -> [u8; 15] {
    let time = Civil::local(seconds, offset_minutes);
    let mut text = *b"Sep 28 12:00:00";
    text[..3].copy_from_slice(time.month_name());
    number(&mut text[4..6], time.day);
    if time.day < 10 {
        text[4] = b' ';
    }
    clock(&mut text[7..15], &time);
    text
}

fn clock(out: &mut [u8], time: &Civil) {
    number(&mut out[..2], time.hour);
    number(&mut out[3..5], time.minute);
    number(&mut out[6..8], time.second);
}

/// The last digits of `value`, as many as fit into `out`.
fn number(out: &mut [u8], mut value: u32) {
    for digit in out.iter_mut().rev() {
        *digit = b'0' + (value % 10) as u8;
        value /= 10;
    }
}

fn sign(offset_minutes: i32) -> u8 {
    if offset_minutes < 0 { b'-' } else { b'+' }
}

/// Reads any of the three forms of RFC 9110, section 5.6.7, as seconds since 1970.
///
/// As in nginx, the day of the week is ignored, and so is any text after the last number: old
/// browsers send `; length=` there.
pub fn parse(text: &[u8]) -> Option<i64> {
    let end = memchr::memchr2(b',', b' ', text)?;
    let is_asctime = text[end] == b' ';
    let mut reader = DateReader { rest: text[end + 1..].trim_ascii_start() };
    if is_asctime { reader.asctime() } else { reader.rfc() }
}

/// Reads `2026-09-28T12:00:00.5+06:00` or `2026-09-28T06:00:00Z` (RFC 3339) as seconds since 1970.
/// A fraction of a second is dropped.
pub fn parse_rfc3339(text: &[u8]) -> Option<i64> {
    let mut reader = DateReader { rest: text };
    let year = reader.digits(4)?;
    reader.exactly(b'-')?;
    let month = reader.digits(2)?;
    reader.exactly(b'-')?;
    let day = reader.digits(2)?;
    matches!(reader.byte()?, b'T' | b't' | b' ').then_some(())?;
    (1..=12).contains(&month).then_some(())?;
    let local = seconds(year, month as usize - 1, day, reader.clock()?)?;
    if let Some(fraction) = reader.rest.strip_prefix(b".") {
        let digits = fraction.iter().take_while(|byte| byte.is_ascii_digit()).count();
        (digits > 0).then_some(())?;
        reader.rest = &fraction[digits..];
    }
    let offset_s = reader.offset()?;
    reader.rest.is_empty().then_some(local - offset_s)
}

struct DateReader<'a> {
    rest: &'a [u8],
}

impl DateReader<'_> {
    /// `06 Nov 1994 08:49:37` or `06-Nov-94 08:49:37`.
    fn rfc(&mut self) -> Option<i64> {
        let day = self.digits(2)?;
        let is_rfc850 = match self.byte()? {
            b' ' => false,
            b'-' => true,
            _ => return None,
        };
        let month = self.month()?;
        let year = if is_rfc850 {
            self.exactly(b'-')?;
            match self.digits(2)? {
                year @ 0..70 => year + 2000,
                year => year + 1900,
            }
        } else {
            self.exactly(b' ')?;
            self.digits(4)?
        };
        self.exactly(b' ')?;
        seconds(year, month, day, self.clock()?)
    }

    /// `Nov  6 08:49:37 1994`.
    fn asctime(&mut self) -> Option<i64> {
        let month = self.month()?;
        self.exactly(b' ')?;
        self.rest = self.rest.strip_prefix(b" ").unwrap_or(self.rest);
        let width = if self.rest.get(1) == Some(&b' ') { 1 } else { 2 };
        let day = self.digits(width)?;
        self.exactly(b' ')?;
        let clock = self.clock()?;
        self.exactly(b' ')?;
        seconds(self.digits(4)?, month, day, clock)
    }

    /// `08:49:37` as seconds.
    fn clock(&mut self) -> Option<i64> {
        let hour = self.digits(2)?;
        self.exactly(b':')?;
        let minute = self.digits(2)?;
        self.exactly(b':')?;
        let second = self.digits(2)?;
        (hour < 24 && minute < 60 && second < 60).then_some(hour * 3600 + minute * 60 + second)
    }

    /// `Z` or `+06:00` as seconds.
    fn offset(&mut self) -> Option<i64> {
        let sign = match self.byte()? {
            b'Z' | b'z' => return Some(0),
            b'+' => 1,
            b'-' => -1,
            _ => return None,
        };
        let hours = self.digits(2)?;
        self.exactly(b':')?;
        let minutes = self.digits(2)?;
        (hours < 24 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
    }

    /// After the first letter in upper or lower case, as in nginx.
    fn month(&mut self) -> Option<usize> {
        let (name, rest) = self.rest.split_first_chunk::<3>()?;
        self.rest = rest;
        let is = |month: &[u8; 3]| month[0] == name[0] && month.eq_ignore_ascii_case(name);
        MONTHS.iter().position(|month| is(month))
    }

    fn digits(&mut self, width: usize) -> Option<i64> {
        let (digits, rest) = self.rest.split_at_checked(width)?;
        self.rest = rest;
        digits.iter().try_fold(0, |value, byte| {
            byte.is_ascii_digit().then(|| value * 10 + i64::from(byte - b'0'))
        })
    }

    fn exactly(&mut self, byte: u8) -> Option<()> {
        (self.byte()? == byte).then_some(())
    }

    fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(byte)
    }
}

/// Seconds since 1970. `month` counts from 0; `None` if the month has no such day.
pub(crate) fn seconds(year: i64, month: usize, day: i64, clock: i64) -> Option<i64> {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = [31, 28 + i64::from(is_leap), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    if day < 1 || day > days[month] {
        return None;
    }
    let past = year - 1;
    let past_days = 365 * past + past.div_euclid(4) - past.div_euclid(100) + past.div_euclid(400);
    let days = past_days - 719_162 + days[..month].iter().sum::<i64>() + day - 1;
    Some(days * 86400 + clock)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats() {
        let time = 784_111_777;
        assert_eq!(&http(time), b"Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(&log(time, 360), b"06/Nov/1994:14:49:37 +0600");
        assert_eq!(&log(time, -570), b"05/Nov/1994:23:19:37 -0930");
        assert_eq!(&iso8601(time, 360), b"1994-11-06T14:49:37+06:00");
        assert_eq!(&iso8601(time, -30), b"1994-11-06T08:19:37-00:30");
        assert_eq!(&error_log(time, 0), b"1994/11/06 08:49:37");
        assert_eq!(&syslog(time, 0), b"Nov  6 08:49:37");
        assert_eq!(&syslog(time + 10 * 86400, 60), b"Nov 16 09:49:37");
    }

    #[test]
    fn times_out_of_range_are_clamped() {
        assert_eq!(&http(0), b"Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(http(-1), http(0));
        assert_eq!(&http(SECONDS_MAX), b"Fri, 31 Dec 9999 23:59:59 GMT");
        assert_eq!(http(i64::MAX), http(SECONDS_MAX));
        assert_eq!(log(i64::MAX, i32::MAX)[..20], log(SECONDS_MAX, 0)[..20]);
    }

    #[test]
    fn parses_the_three_forms() {
        for text in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
            "Sun Nov 6 08:49:37 1994",
            "Sun Nov 06 08:49:37 1994",
            "Sun,06 Nov 1994 08:49:37",
            "Sun, 06 NOV 1994 08:49:37 GMT",
            "Xyz, 06 Nov 1994 08:49:37 GMT; length=1",
        ] {
            assert_eq!(parse(text.as_bytes()), Some(784_111_777), "{text}");
        }
        assert_eq!(
            parse(b"Mon, 01 Jan 2035 00:00:00 GMT"),
            parse(b"Monday, 01-Jan-35 00:00:00 GMT")
        );
        assert_eq!(parse(b"Wed, 31 Dec 1969 23:59:59 GMT"), Some(-1));
    }

    #[test]
    fn refuses_invalid_dates() {
        for text in [
            "",
            "0",
            "foo",
            "Sun, 06 Nov 1994",
            "Sun, 06 Nov 1994 08:49",
            "Sun, 6 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 24:00:00 GMT",
            "Sun, 06 Nov 1994 08:60:00 GMT",
            "Sun, 06 Nov 1994 08:49:60 GMT",
            "Sun, 31 Nov 1994 08:49:37 GMT",
            "Sun, 00 Nov 1994 08:49:37 GMT",
            "Tue, 29 Feb 2100 00:00:00 GMT",
            "Tue, 29 Feb 2023 00:00:00 GMT",
            "Sun, 06 Nev 1994 08:49:37 GMT",
            "Sun, 06 nov 1994 08:49:37 GMT",
            "Sun, 06-Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 94 08:49:37 GMT",
            "Sun Nov  6 08:49:37",
        ] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn every_day_is_the_day_after_the_one_before() {
        let mut before = Civil::of(0);
        for day in 1..=SECONDS_MAX / 86400 {
            let time = Civil::of(day * 86400);
            assert_eq!(time.weekday, (before.weekday + 1) % 7);
            let next = (before.year, before.month, before.day + 1);
            let first = (before.year + before.month / 12, before.month % 12 + 1, 1);
            let today = (time.year, time.month, time.day);
            assert!(today == next || (before.day >= 28 && today == first), "{time:?}");
            before = time;
        }
        assert_eq!((before.year, before.month, before.day), (9999, 12, 31));
    }

    #[test]
    fn written_dates_are_read_back() {
        for step in 0..20_000 {
            let time = step * 12_670_117;
            assert_eq!(parse(&http(time)), Some(time));
        }
    }
}
