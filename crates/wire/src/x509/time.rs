//! Times in certificates.

use alloc::format;
use alloc::vec::Vec;

use crate::date;
use crate::der::{Element, InvalidDer, tag};

/// A time in UTC, to the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CertificateTime {
    year: i64,
    /// 1 to 12.
    month: u8,
    day: u8,
    second_of_day: i64,
    /// Since 1970.
    seconds: i64,
}

impl CertificateTime {
    /// Reads `UTCTime` or `GeneralizedTime` of the form that RFC 5280 requires.
    pub fn read(element: Element<'_>) -> Result<Self, InvalidDer> {
        let (year, rest) = match (element.tag, element.contents) {
            (tag::UTC_TIME, [a, b, rest @ ..]) => {
                let year = number(&[*a, *b])?;
                (if year < 50 { 2000 + year } else { 1900 + year }, rest)
            }
            (tag::GENERALIZED_TIME, [a, b, c, d, rest @ ..]) => (number(&[*a, *b, *c, *d])?, rest),
            _ => return Err(InvalidDer),
        };
        let digits: &[u8; 10] =
            rest.strip_suffix(b"Z").and_then(|d| d.try_into().ok()).ok_or(InvalidDer)?;
        let two = |at: usize| number(&digits[at..at + 2]);
        let (month, day, hour, minute, second) = (two(0)?, two(2)?, two(4)?, two(6)?, two(8)?);
        if !(1..=12).contains(&month) || hour > 23 || minute > 59 || second > 59 {
            return Err(InvalidDer);
        }
        let second_of_day = hour * 3600 + minute * 60 + second;
        let seconds =
            date::seconds(year, month as usize - 1, day, second_of_day).ok_or(InvalidDer)?;
        Ok(Self { year, month: month as u8, day: day as u8, second_of_day, seconds })
    }

    /// Seconds since 1970.
    pub fn seconds(self) -> i64 {
        self.seconds
    }

    /// `Nov  6 08:49:37 1994 GMT`, as OpenSSL's `ASN1_TIME_print` writes it.
    pub fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(date::MONTHS[usize::from(self.month) - 1]);
        let (hour, minute) = (self.second_of_day / 3600, self.second_of_day / 60 % 60);
        let (day, second, year) = (self.day, self.second_of_day % 60, self.year);
        let rest = format!(" {day:2} {hour:02}:{minute:02}:{second:02} {year} GMT");
        out.extend_from_slice(rest.as_bytes());
    }
}

fn number(digits: &[u8]) -> Result<i64, InvalidDer> {
    digits.iter().try_fold(0, |value, byte| match byte {
        b'0'..=b'9' => Ok(value * 10 + i64::from(byte - b'0')),
        _ => Err(InvalidDer),
    })
}
