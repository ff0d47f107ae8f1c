//! nginx's rules for storing a reply.
//!
//! Fields count in their order, for nginx obeys each as it reads it. Directives of `Cache-Control`
//! are found anywhere in its value, also inside other words.

use wire::date;
use wire::reply::ReplyName;

use super::Freshness;
use crate::file_head::TEXT_BYTES_MAX;

impl Freshness {
    /// Adds a field. `is_ignored`: the location has it in `*_ignore_headers`.
    pub fn add(&mut self, name: ReplyName, value: &[u8], is_ignored: bool, now_s: i64) {
        match name {
            ReplyName::XAccelExpires => {
                self.has_accel_expires = true;
                if !is_ignored {
                    self.add_accel_expires(value, now_s);
                }
            }
            _ if is_ignored => {}
            ReplyName::CacheControl => self.add_cache_control(value, now_s),
            ReplyName::Expires => self.add_expires(value, now_s),
            ReplyName::SetCookie => self.is_refused = true,
            ReplyName::Vary => self.add_vary(value),
            _ => {}
        }
    }

    fn add_accel_expires(&mut self, value: &[u8], now_s: i64) {
        let valid_s = match value.strip_prefix(b"@") {
            Some(time) => number(time),
            None => match number(value) {
                Some(0) => {
                    self.is_refused = true;
                    return;
                }
                seconds => seconds.map(|seconds| now_s.saturating_add(seconds)),
            },
        };
        if let Some(valid_s) = valid_s {
            (self.valid_s, self.no_cache, self.is_expired) = (valid_s, false, false);
        }
    }

    fn add_cache_control(&mut self, value: &[u8], now_s: i64) {
        let value = value.to_ascii_lowercase();
        let decides = self.valid_s == 0 || !self.has_accel_expires;
        if decides && !self.add_max_age(&value, now_s) {
            return;
        }
        if let Some(seconds) = seconds_after(&value, b"stale-while-revalidate=") {
            let Some(seconds) = seconds else { return self.is_refused = true };
            (self.updating_s, self.error_s) = (seconds, seconds);
        }
        match seconds_after(&value, b"stale-if-error=") {
            Some(Some(seconds)) => self.error_s = seconds,
            Some(None) => self.is_refused = true,
            None => {}
        }
    }

    /// Returns whether the rest of the field matters.
    fn add_max_age(&mut self, value: &[u8], now_s: i64) -> bool {
        let says = |word: &[u8]| find(value, word).is_some();
        if says(b"no-cache") || says(b"no-store") || says(b"private") {
            self.no_cache = true;
            return false;
        }
        let age = seconds_after(value, b"s-maxage=").or_else(|| seconds_after(value, b"max-age="));
        match age {
            None => return true,
            Some(None) => self.is_refused = true,
            Some(Some(0)) => self.no_cache = true,
            Some(Some(seconds)) => {
                (self.valid_s, self.is_expired) = (now_s.saturating_add(seconds), false);
                return true;
            }
        }
        false
    }

    fn add_expires(&mut self, value: &[u8], now_s: i64) {
        if self.valid_s != 0 {
            return;
        }
        match date::parse(value).filter(|time| *time >= now_s) {
            Some(time) => self.valid_s = time,
            None => self.is_expired = true,
        }
    }

    fn add_vary(&mut self, value: &[u8]) {
        if self.is_refused {
            return;
        }
        if value == b"*" {
            self.is_refused = true;
            return;
        }
        if !self.vary.is_empty() {
            self.vary.extend_from_slice(b", ");
        }
        self.vary.extend_from_slice(value);
        self.is_refused = self.vary.len() > TEXT_BYTES_MAX;
    }
}

/// The number after a word, if the word is there; `Some(None)`: it is no number.
fn seconds_after(value: &[u8], word: &[u8]) -> Option<Option<i64>> {
    let rest = &value[find(value, word)? + word.len()..];
    let mut digits = rest.split(|byte| matches!(byte, b',' | b';' | b' '));
    let seconds = digits.next().unwrap_or_default().iter().try_fold(0_i64, |number, digit| {
        let digit = digit.is_ascii_digit().then(|| i64::from(digit - b'0'))?;
        Some(number.saturating_mul(10).saturating_add(digit))
    });
    Some(seconds)
}

fn find(text: &[u8], word: &[u8]) -> Option<usize> {
    text.windows(word.len()).position(|window| window == word)
}

/// A number of digits alone.
fn number(text: &[u8]) -> Option<i64> {
    let is_number = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(text).ok().filter(|_| is_number)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_000_000_000;
    const PAST: &str = "Thu, 01 Jan 1970 00:00:01 GMT";
    const FUTURE: &str = "Mon, 01 Jan 2035 00:00:00 GMT";

    /// The seconds a reply with these fields is fresh; -1: it may not be stored, 0: they do not
    /// say.
    fn fresh_s(fields: &[(&str, &str)]) -> i64 {
        let freshness = of(fields);
        match (freshness.is_cacheable(), freshness.valid_s) {
            (false, _) => -1,
            (true, 0) => 0,
            (true, valid_s) => valid_s - NOW,
        }
    }

    fn of(fields: &[(&str, &str)]) -> Freshness {
        let mut freshness = Freshness::default();
        for (name, value) in fields {
            freshness.add(ReplyName::of(name.as_bytes()), value.as_bytes(), false, NOW);
        }
        freshness
    }

    #[test]
    fn validity_is_as_in_nginx() {
        let future = 2_051_222_400 - NOW;
        let control = "Cache-Control";
        let table: &[(&[(&str, &str)], i64)] = &[
            (&[], 0),
            (&[(control, "max-age=5")], 5),
            (&[(control, "Max-Age=5, S-MaxAge=6")], 6),
            (&[(control, "public, max-age=5;x")], 5),
            (&[(control, "max-age=5x")], -1),
            (&[(control, "max-age=\"5\"")], -1),
            (&[(control, "max-age=0")], -1),
            (&[(control, "max-age=")], -1),
            (&[(control, "xmax-age=7")], 7),
            (&[(control, "max-age=99999999999999999999")], i64::MAX - NOW),
            (&[(control, "NO-CACHE")], -1),
            (&[(control, "no-cache=\"Set-Cookie\", max-age=5")], -1),
            (&[(control, "unprivate")], -1),
            (&[(control, "max-age=5"), (control, "no-store")], -1),
            (&[("Expires", PAST)], -1),
            (&[("Expires", "0")], -1),
            (&[("Expires", FUTURE)], future),
            (&[("Expires", FUTURE), (control, "max-age=5")], 5),
            (&[("Expires", PAST), (control, "max-age=5")], 5),
            (&[(control, "max-age=5"), ("Expires", FUTURE)], 5),
            (&[("X-Accel-Expires", "7"), (control, "no-cache")], 7),
            (&[(control, "no-cache"), ("X-Accel-Expires", "7")], 7),
            (&[("X-Accel-Expires", "@2051222400")], future),
            (&[("X-Accel-Expires", "0")], -1),
            (&[("X-Accel-Expires", "x")], 0),
            (&[("X-Accel-Expires", "")], 0),
            (&[("Set-Cookie", "a=b"), (control, "max-age=5")], -1),
        ];
        for (fields, expected) in table {
            assert_eq!(fresh_s(fields), *expected, "{fields:?}");
        }
    }

    #[test]
    fn how_long_a_stale_reply_may_be_used() {
        let stale = |value| {
            let freshness = of(&[("Cache-Control", value)]);
            (freshness.updating_s, freshness.error_s, freshness.is_cacheable())
        };
        assert_eq!(stale("max-age=1, stale-while-revalidate=2"), (2, 2, true));
        assert_eq!(stale("stale-if-error=3, stale-while-revalidate=2"), (2, 3, true));
        assert_eq!(stale("stale-if-error=x"), (0, 0, false));
        assert_eq!(stale("no-store, stale-if-error=3"), (0, 0, false));
        let with_accel = of(&[("X-Accel-Expires", "9"), ("Cache-Control", "stale-if-error=3")]);
        assert_eq!((with_accel.error_s, with_accel.valid_s), (3, NOW + 9));
    }

    #[test]
    fn several_fields_of_vary_are_one() {
        assert_eq!(of(&[("Vary", "a"), ("Vary", "b,c")]).vary, b"a, b,c");
        assert!(!of(&[("Vary", "*")]).is_cacheable());
        assert!(of(&[("Vary", "a, *")]).is_cacheable());
        assert!(of(&[("Vary", &"a".repeat(128))]).is_cacheable());
        assert!(!of(&[("Vary", &"a".repeat(129))]).is_cacheable());
    }

    #[test]
    fn ignored_fields_do_not_count() {
        for (name, value) in [
            ("X-Accel-Expires", "0"),
            ("Cache-Control", "no-store"),
            ("Expires", PAST),
            ("Set-Cookie", "a"),
            ("Vary", "*"),
        ] {
            let mut freshness = Freshness::default();
            freshness.add(ReplyName::of(name.as_bytes()), value.as_bytes(), true, NOW);
            assert!(freshness.is_cacheable(), "{name}");
        }
    }
}
