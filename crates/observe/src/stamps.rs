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
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self::of(since_1970.as_secs() as i64)
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
