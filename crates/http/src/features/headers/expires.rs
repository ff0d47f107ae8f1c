//! `expires [modified] time | @time | epoch | max | off`

use std::io::Write;
use std::ops::RangeInclusive;

use conf::{Directive, Load, Result, Template, Value, units};
use wire::date;

use crate::exchange::Exchange;

const DAY: i64 = 24 * 60 * 60;

#[derive(Clone)]
pub(super) enum ExpiresLine {
    Off,
    At(When),
    /// A text with variables.
    Computed {
        since: Since,
        text: Template,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    /// In the past.
    Epoch,
    /// In ten years.
    Max,
    /// Seconds after an event.
    After(Since, i64),
    /// Seconds after midnight, in local time.
    Daily(i64),
}

/// The event that a time is relative to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Since {
    /// The request.
    Access,
    /// The file's last change.
    Modified,
}

impl Value for ExpiresLine {
    const ARGS: RangeInclusive<usize> = 1..=2;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let (since, word) = match &from.args[..] {
            [modified, word] if &*modified.text == b"modified" => (Since::Modified, word),
            [other, _] => return Err(from.refuse("invalid value").marked(other.span)),
            _ => (Since::Access, from.arg(0)),
        };
        let text = Template::compile(word, from, load)?;
        let Some(fixed) = text.as_fixed() else { return Ok(Self::Computed { since, text }) };
        match When::read(fixed, since) {
            Ok(None) => Ok(Self::Off),
            Ok(Some(when)) => Ok(Self::At(when)),
            Err(reason) => Err(from.refuse(reason).marked(word.span)),
        }
    }
}

impl When {
    /// `None` for `off`.
    fn read(text: &[u8], since: Since) -> Result<Option<Self>, &'static str> {
        match (text, since) {
            (b"epoch", Since::Access) => return Ok(Some(Self::Epoch)),
            (b"max", Since::Access) => return Ok(Some(Self::Max)),
            (b"off", Since::Access) => return Ok(None),
            ([b'@', ..], Since::Modified) => {
                return Err("daily time cannot be used with \"modified\" parameter");
            }
            _ => {}
        }
        let (sign, time) = match text {
            [sign @ (b'@' | b'+' | b'-'), time @ ..] => (*sign, time),
            time => (b'+', time),
        };
        let seconds = units::seconds(time).ok_or("invalid value")?.cast_signed();
        match sign {
            b'@' if seconds > DAY => Err("daily time value must be less than 24 hours"),
            b'@' => Ok(Some(Self::Daily(seconds))),
            b'-' => Ok(Some(Self::After(since, -seconds))),
            _ => Ok(Some(Self::After(since, seconds))),
        }
    }
}

impl ExpiresLine {
    /// Sets the fields. An invalid text of variables is ignored.
    pub(super) fn apply(&self, x: &mut Exchange) {
        let when = match self {
            Self::Off => None,
            Self::At(when) => Some(*when),
            Self::Computed { since, text } => {
                let text = x.render(text);
                When::read(&text, *since).ok().flatten()
            }
        };
        let Some(when) = when else { return };
        let now = (net::clock::unix_ms() / 1000).cast_signed();
        let (expires, age) =
            when.fields(now, x.reply.last_modified, net::system::utc_offset_minutes);
        x.reply.fields.set(b"Expires", &expires);
        match age {
            None => x.reply.fields.set(b"Cache-Control", b"no-cache"),
            Some(age) => {
                let mut text = x.scratch();
                write!(text, "max-age={age}").expect("writing to memory succeeds");
                x.reply.fields.set(b"Cache-Control", &text);
                x.give_scratch(text);
            }
        }
    }
}

impl When {
    /// The date of `Expires`, and the maximum age; `None` if the reply has expired.
    fn fields(
        self,
        now: i64,
        modified: Option<i64>,
        utc_offset_minutes: fn(i64) -> i32,
    ) -> ([u8; 29], Option<i64>) {
        let (time, is_past) = match self {
            Self::Epoch => return (*b"Thu, 01 Jan 1970 00:00:01 GMT", None),
            Self::Max => return (*b"Thu, 31 Dec 2037 23:55:55 GMT", Some(10 * 365 * DAY)),
            Self::After(_, 0) => (now, false),
            Self::After(Since::Access, seconds) => (now.saturating_add(seconds), seconds < 0),
            Self::After(Since::Modified, seconds) => {
                (modified.unwrap_or(now).saturating_add(seconds), seconds < 0)
            }
            Self::Daily(seconds) => (next_daily(seconds, now, utc_offset_minutes), false),
        };
        let age = time - now;
        (date::http(time), (!is_past && age >= 0).then_some(age))
    }
}

/// The next time that is this many seconds after midnight, in local time.
fn next_daily(seconds: i64, now: i64, utc_offset_minutes: fn(i64) -> i32) -> i64 {
    let offset = |time| i64::from(utc_offset_minutes(time)) * 60;
    let local = now + offset(now);
    let midnight = local - local.rem_euclid(DAY);
    // The offset from UTC may be different by then.
    let on_day_of = |midnight: i64| midnight + seconds - offset(midnight + seconds - offset(now));
    match on_day_of(midnight) {
        today if today > now => today,
        _ => on_day_of(midnight + DAY),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sun, 06 Nov 1994 08:49:37 GMT
    const NOW: i64 = 784_111_777;

    fn fields(text: &str, since: Since, modified: Option<i64>) -> (String, Option<i64>) {
        let when = When::read(text.as_bytes(), since).unwrap().unwrap();
        let (expires, age) = when.fields(NOW, modified, |_| 0);
        (String::from_utf8(expires.to_vec()).unwrap(), age)
    }

    #[test]
    fn expires_is_relative_to_the_request() {
        let access = |text| fields(text, Since::Access, Some(0));
        assert_eq!(access("1d"), ("Mon, 07 Nov 1994 08:49:37 GMT".into(), Some(DAY)));
        assert_eq!(access("+1m"), ("Sun, 06 Nov 1994 08:50:37 GMT".into(), Some(60)));
        assert_eq!(access("-1h"), ("Sun, 06 Nov 1994 07:49:37 GMT".into(), None));
        assert_eq!(access("0"), ("Sun, 06 Nov 1994 08:49:37 GMT".into(), Some(0)));
        assert_eq!(access("epoch"), ("Thu, 01 Jan 1970 00:00:01 GMT".into(), None));
        assert_eq!(access("max"), ("Thu, 31 Dec 2037 23:55:55 GMT".into(), Some(315_360_000)));
        assert_eq!(access("9223372036854775807").0, "Fri, 31 Dec 9999 23:59:59 GMT");
    }

    #[test]
    fn expires_modified_is_relative_to_the_change() {
        let modified = |text, ago| fields(text, Since::Modified, Some(NOW - ago));
        assert_eq!(modified("1h", 60), ("Sun, 06 Nov 1994 09:48:37 GMT".into(), Some(3540)));
        assert_eq!(modified("1h", 3601), ("Sun, 06 Nov 1994 08:49:36 GMT".into(), None));
        assert_eq!(modified("-1h", -7200), ("Sun, 06 Nov 1994 09:49:37 GMT".into(), None));
        assert_eq!(modified("0", 60), ("Sun, 06 Nov 1994 08:49:37 GMT".into(), Some(0)));
        let nothing_known = fields("1h", Since::Modified, None);
        assert_eq!(nothing_known, ("Sun, 06 Nov 1994 09:49:37 GMT".into(), Some(3600)));
    }

    #[test]
    fn expires_at_a_time_of_day() {
        let daily = |text| fields(text, Since::Access, None);
        assert_eq!(daily("@9h"), ("Sun, 06 Nov 1994 09:00:00 GMT".into(), Some(623)));
        assert_eq!(daily("@8h"), ("Mon, 07 Nov 1994 08:00:00 GMT".into(), Some(83423)));
        assert_eq!(daily("@0").0, "Mon, 07 Nov 1994 00:00:00 GMT");
        assert_eq!(daily("@8h49m37s").1, Some(DAY));
        let east = next_daily(9 * 3600, NOW, |_| 120);
        assert_eq!(&date::http(east), b"Mon, 07 Nov 1994 07:00:00 GMT");
        let clock_goes_back_at_noon =
            next_daily(13 * 3600, NOW, |time| if time < 784_123_200 { 60 } else { 0 });
        assert_eq!(&date::http(clock_goes_back_at_noon), b"Sun, 06 Nov 1994 13:00:00 GMT");
    }

    #[test]
    fn invalid_times_are_refused() {
        let read = |text: &str, since| When::read(text.as_bytes(), since);
        assert_eq!(read("off", Since::Access), Ok(None));
        assert_eq!(read("", Since::Access), Err("invalid value"));
        assert_eq!(read("off", Since::Modified), Err("invalid value"));
        assert_eq!(read("--1", Since::Access), Err("invalid value"));
        assert_eq!(read("@24h", Since::Access), Ok(Some(When::Daily(DAY))));
        assert_eq!(read("@25h", Since::Access), Err("daily time value must be less than 24 hours"));
        let daily = "daily time cannot be used with \"modified\" parameter";
        assert_eq!(read("@1h", Since::Modified), Err(daily));
    }
}
