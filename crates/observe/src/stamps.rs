//! A second of local time in the formats of all logs, made once per second and thread.

use std::cell::Cell;
use std::time::{SystemTime, UNIX_EPOCH};

use wire::date;

/// One second in the formats of the logs.
#[derive(Clone, Copy)]
pub struct Stamps {
    second: i64,
    /// `1970/09/28 12:00:00`
    pub error_log: [u8; 19],
    /// `28/Sep/1970:12:00:00 +0600`
    pub log: [u8; 26],
    /// `1970-09-28T12:00:00+06:00`
    pub iso8601: [u8; 25],
    /// `Sep 28 12:00:00`
    pub syslog: [u8; 15],
}

/// A time in milliseconds since 1970 in the form `1970-09-28T12:00:00.042+06:00`.
pub fn iso8601_ms(unix_ms: u64) -> [u8; 29] {
    let second = Stamps::of((unix_ms / 1000) as i64).iso8601;
    let digit = |unit: u64| b'0' + (unix_ms / unit % 10) as u8;
    let mut text = [0; 29];
    text[..19].copy_from_slice(&second[..19]);
    text[19..23].copy_from_slice(&[b'.', digit(100), digit(10), digit(1)]);
    text[23..].copy_from_slice(&second[19..]);
    text
}

/// The current time, in milliseconds since 1970.
pub(crate) fn unix_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64
}

thread_local! {
    static LAST: Cell<Option<Stamps>> = const { Cell::new(None) };
}

impl Stamps {
    /// The time stamps of a second since 1970.
    pub fn of(second: i64) -> Self {
        match LAST.get() {
            Some(last) if last.second == second => last,
            _ => {
                let made = Self::make(second);
                LAST.set(Some(made));
                made
            }
        }
    }

    /// The time stamps of the current second.
    pub fn now() -> Self {
        Self::of((unix_ms() / 1000) as i64)
    }

    /// Seconds since 1970.
    pub fn second(&self) -> i64 {
        self.second
    }

    fn make(second: i64) -> Self {
        let offset_minutes = (crate::system().utc_offset_minutes)(second);
        Self {
            second,
            error_log: date::error_log(second, offset_minutes),
            log: date::log(second, offset_minutes),
            iso8601: date::iso8601(second, offset_minutes),
            syslog: date::syslog(second, offset_minutes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::iso8601_ms;

    #[test]
    fn milliseconds_stand_before_the_offset() {
        assert_eq!(&iso8601_ms(1_777_890_615_042), b"2026-05-04T10:30:15.042+00:00");
    }
}
