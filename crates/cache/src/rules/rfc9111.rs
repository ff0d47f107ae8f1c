//! The rules of RFC 9111 for a shared cache, with `CDN-Cache-Control` (RFC 9213) and
//! `stale-...` (RFC 5861).
//!
//! A reply is fresh while its age is below its lifetime. The lifetime is said by, in this order,
//! `X-Accel-Expires`, `CDN-Cache-Control`, `Cache-Control`, `Expires`, the configuration, and the
//! time that has passed since the last change.

use wire::date;
use wire::reply::{ReplyHead, ReplyName};

use super::Freshness;
use super::control::{ReplyControl, ReplyWord, delta_seconds};
use super::targeted;
use crate::file_head::TEXT_BYTES_MAX;

/// The longest lifetime that is guessed from `Last-Modified`.
const GUESS_MAX_S: i64 = 86_400;
/// The part of the time since the last change that a reply is taken to stay the same.
const GUESS_PART: i64 = 10;

/// The fields of a reply that decide whether and how long it is used.
#[derive(Debug, Default)]
pub struct StandardReply<'t> {
    status: u16,
    control: ReplyControl,
    /// Whether `control` is that of `CDN-Cache-Control`: other fields about freshness do not count.
    is_targeted: bool,
    accel_expires: Option<&'t [u8]>,
    expires: Option<&'t [u8]>,
    date: Option<&'t [u8]>,
    age: Option<&'t [u8]>,
    last_modified: Option<&'t [u8]>,
    content_range: Option<&'t [u8]>,
    has_etag: bool,
    sets_cookie: bool,
    vary: Vec<u8>,
}

/// What is known of a reply besides its fields.
#[derive(Clone, Copy, Debug)]
pub struct ReplyFacts<'k> {
    /// When it was asked for.
    pub asked_s: i64,
    /// When its head arrived.
    pub now_s: i64,
    /// Whether the request has `Authorization`.
    pub is_authorized: bool,
    /// The seconds that the configuration has for its status.
    pub configured_s: Option<i64>,
    /// The key that it is stored under.
    pub key: &'k [u8],
}

impl<'t> StandardReply<'t> {
    /// Reads the fields of a head, except for those that the configuration ignores.
    pub fn of(head: &ReplyHead, text: &'t [u8], is_ignored: impl Fn(ReplyName) -> bool) -> Self {
        let mut reply = Self { status: head.status, ..Self::default() };
        let mut targeted = Vec::new();
        for field in &head.fields {
            let value = field.value.of(text);
            match field.id {
                ReplyName::Other => {
                    let name = field.name.of(text);
                    if name.eq_ignore_ascii_case(b"age") {
                        reply.age.get_or_insert(value);
                    } else if name.eq_ignore_ascii_case(b"cdn-cache-control") {
                        join(&mut targeted, value);
                    }
                }
                id if is_ignored(id) => {}
                id => reply.add(id, value),
            }
        }
        if !is_ignored(ReplyName::CacheControl)
            && let Some(control) = targeted::parse(&targeted)
        {
            (reply.control, reply.is_targeted) = (control, true);
        }
        reply
    }

    fn add(&mut self, id: ReplyName, value: &'t [u8]) {
        let first = match id {
            ReplyName::XAccelExpires => &mut self.accel_expires,
            ReplyName::Expires => &mut self.expires,
            ReplyName::Date => &mut self.date,
            ReplyName::LastModified => &mut self.last_modified,
            ReplyName::ContentRange => &mut self.content_range,
            ReplyName::CacheControl => return self.control.add(value),
            ReplyName::ETag => return self.has_etag |= (1..=TEXT_BYTES_MAX).contains(&value.len()),
            ReplyName::SetCookie => return self.sets_cookie = true,
            ReplyName::Vary => return join(&mut self.vary, value),
            _ => return,
        };
        first.get_or_insert(value);
    }

    /// The reply with the age of a newer one, which has found it valid.
    pub fn with_times_of(mut self, newer: Self) -> Self {
        (self.date, self.age) = (newer.date, newer.age);
        self
    }

    /// Whether an expired reply may not be used without asking the server.
    pub fn forbids_stale(&self) -> bool {
        self.control.forbids_stale()
    }

    /// Whether a reply to a request with `Authorization` may be stored.
    pub fn allows_authorized(&self) -> bool {
        self.control.allows_authorized()
    }

    /// Whether the field is only for the client that asked.
    pub fn withholds(&self, name: &[u8]) -> bool {
        self.control.withholds(name)
    }

    /// Whether and how long the reply is used.
    pub fn freshness(self, facts: &ReplyFacts<'_>) -> Freshness {
        let made_s = self.made_s(facts);
        let said_s = self.said_s(facts, made_s);
        let valid_s = match said_s {
            Some(valid_s) => Some(valid_s),
            None => self.guessed_s(facts).map(|lifetime_s| last_second(made_s, lifetime_s)),
        };
        let valid_s = match self.control.says(ReplyWord::NoCache) && self.accel_expires.is_none() {
            true => Some(facts.now_s - 1),
            false => valid_s,
        };
        let is_fresh = valid_s.is_some_and(|valid_s| valid_s >= facts.now_s);
        let is_useful = is_fresh || valid_s.is_some() && self.can_be_validated();
        Freshness {
            // 0 stands for fields that do not say it.
            valid_s: valid_s.map_or(0, |valid_s| valid_s.max(1)),
            updating_s: self.control.updating_s.unwrap_or(0),
            error_s: self.control.error_s.unwrap_or(0),
            made_s,
            is_refused: !is_useful || self.is_refused(facts, said_s.is_some()),
            vary: self.vary,
            ..Freshness::default()
        }
    }

    /// The second since which the reply ages (section 4.2.3), so that its age is the time since.
    fn made_s(&self, facts: &ReplyFacts<'_>) -> i64 {
        let age = self.age.and_then(|list| list.split(|byte| *byte == b',').next());
        let age_s = age.and_then(|age| delta_seconds(age.trim_ascii())).unwrap_or(0);
        let date_s = self.date.and_then(http_date).unwrap_or(facts.now_s);
        date_s.min(facts.asked_s.saturating_sub(age_s)).min(facts.now_s)
    }

    /// The last fresh second, if a field says it.
    fn said_s(&self, facts: &ReplyFacts<'_>, made_s: i64) -> Option<i64> {
        if let Some(value) = self.accel_expires.and_then(|value| accel_expires(value, facts.now_s))
        {
            return Some(value);
        }
        let lifetime_s = self.control.lifetime_s().or_else(|| {
            let expires = self.expires.filter(|_| !self.is_targeted)?;
            let date_s = self.date.and_then(http_date).unwrap_or(facts.now_s);
            // An invalid time is in the past (section 5.3).
            Some(http_date(expires).map_or(0, |expires_s| expires_s.saturating_sub(date_s)))
        })?;
        Some(last_second(made_s, lifetime_s))
    }

    /// The lifetime that the configuration has, or that seems likely (section 4.2.2).
    fn guessed_s(&self, facts: &ReplyFacts<'_>) -> Option<i64> {
        if facts.configured_s.is_some() {
            return facts.configured_s;
        }
        if !may_be_guessed(self.status) && !self.control.says(ReplyWord::Public) {
            return None;
        }
        let date_s = self.date.and_then(http_date).unwrap_or(facts.now_s);
        let unchanged_s = date_s - self.last_modified.and_then(http_date)?;
        Some((unchanged_s / GUESS_PART).clamp(0, GUESS_MAX_S)).filter(|lifetime_s| *lifetime_s > 0)
    }

    fn can_be_validated(&self) -> bool {
        let is_dated = || self.last_modified.and_then(http_date).is_some();
        self.status == 200 && (self.has_etag || is_dated())
    }

    /// Whether the reply may not be stored, however fresh it is (section 3). `is_said`: a field
    /// says how long it is fresh.
    fn is_refused(&self, facts: &ReplyFacts<'_>, is_said: bool) -> bool {
        let control = &self.control;
        let is_known = is_understood(self.status);
        let needs_understanding = control.says(ReplyWord::MustUnderstand);
        if needs_understanding && !is_known {
            return true;
        }
        let is_forbidden = self.accel_expires.is_none()
            && (control.says(ReplyWord::NoStore) && !needs_understanding
                || control.says(ReplyWord::Private));
        is_forbidden
            || self.accel_expires.is_some_and(|value| value == b"0")
            || facts.is_authorized && !control.allows_authorized()
            // A cookie is for one client, unless the server says how long others may see it.
            || self.sets_cookie && !is_said
            || self.vary.split(|byte| *byte == b',').any(|name| name.trim_ascii() == b"*")
            || self.vary.len() > TEXT_BYTES_MAX
            || self.status < 200
            || self.status == 304
            || self.status == 206 && !self.is_named_part(facts.key)
    }

    /// Whether the key names the part that the reply is of the whole, as with `slice`.
    fn is_named_part(&self, key: &[u8]) -> bool {
        let range = self.content_range.and_then(|range| range.strip_prefix(b"bytes "));
        let Some(first) = range.and_then(|range| range.split(|byte| *byte == b'-').next()) else {
            return false;
        };
        let named = [b"bytes=", first, b"-"].concat();
        !first.is_empty() && key.windows(named.len()).any(|part| part == named)
    }
}

/// Adds a value of a field that is a list.
fn join(list: &mut Vec<u8>, value: &[u8]) {
    if !list.is_empty() {
        list.extend_from_slice(b", ");
    }
    list.extend_from_slice(value);
}

fn last_second(made_s: i64, lifetime_s: i64) -> i64 {
    made_s.saturating_add(lifetime_s) - 1
}

/// `X-Accel-Expires`: seconds from now, or a time.
fn accel_expires(value: &[u8], now_s: i64) -> Option<i64> {
    match value.strip_prefix(b"@") {
        Some(time) => delta_seconds(time),
        None => delta_seconds(value).map(|seconds| last_second(now_s, seconds)),
    }
}

/// A date in one of the three forms (RFC 9110, section 5.6.7), of which two end with `GMT`.
pub fn http_date(text: &[u8]) -> Option<i64> {
    let is_asctime = !text.contains(&b',');
    let ends = text.last_chunk::<4>().is_some_and(|end| end.eq_ignore_ascii_case(b" GMT"));
    let has_length = match text.iter().position(|byte| *byte == b',') {
        None => (22..=24).contains(&text.len()),
        Some(comma) => matches!(text.len() - comma, 24 | 26),
    };
    date::parse(text).filter(|_| (is_asctime || ends) && has_length)
}

/// Whether replies of a status may be stored without a field that says how long they are fresh
/// (RFC 9110, section 15.1). 206 is none of them here.
fn may_be_guessed(status: u16) -> bool {
    matches!(status, 200 | 203 | 204 | 300 | 301 | 308 | 404 | 405 | 410 | 414 | 501)
}

/// Whether the status is one of RFC 9110, so that the rest of the reply means what it says.
fn is_understood(status: u16) -> bool {
    matches!(status, 200..=205 | 300..=303 | 305 | 307 | 308 | 400..=417 | 421 | 422 | 426)
        || matches!(status, 500..=505)
}

#[cfg(test)]
mod tests {
    use wire::Slice;
    use wire::reply::ReplyField;

    use super::*;

    const NOW: i64 = 1_000_000_000;
    const FACTS: ReplyFacts<'static> = ReplyFacts {
        asked_s: NOW,
        now_s: NOW,
        is_authorized: false,
        configured_s: None,
        key: b"http://app/x",
    };

    fn of_status(status: u16, fields: &[(&str, &str)], facts: &ReplyFacts<'_>) -> Freshness {
        let mut text = Vec::new();
        let mut head = ReplyHead { status, ..ReplyHead::default() };
        let mut put = |part: &str| {
            let start = text.len() as u32;
            text.extend_from_slice(part.as_bytes());
            Slice { start, end: text.len() as u32 }
        };
        for (name, value) in fields {
            let id = ReplyName::of(name.as_bytes());
            head.fields.push(ReplyField { name: put(name), value: put(value), id });
        }
        StandardReply::of(&head, &text, |_| false).freshness(facts)
    }

    /// The seconds that a reply is fresh; -1: it is not stored.
    fn fresh_s(fields: &[(&str, &str)]) -> i64 {
        fresh_by(200, fields, &FACTS)
    }

    fn fresh_by(status: u16, fields: &[(&str, &str)], facts: &ReplyFacts<'_>) -> i64 {
        let freshness = of_status(status, fields, facts);
        match freshness.is_cacheable() {
            true => freshness.valid_s + 1 - facts.now_s,
            false => -1,
        }
    }

    fn date_in(seconds: i64) -> String {
        String::from_utf8(date::http(NOW + seconds).to_vec()).unwrap()
    }

    const CONTROL: &str = "Cache-Control";
    const CDN: &str = "CDN-Cache-Control";

    #[test]
    fn what_says_how_long_a_reply_is_fresh() {
        let (later, long) = (date_in(60), date_in(600));
        let table: &[(&[(&str, &str)], i64)] = &[
            (&[], -1),
            (&[(CONTROL, "max-age=5")], 5),
            (&[(CONTROL, "max-age=5, s-maxage=6")], 6),
            (&[("Expires", &later)], 60),
            (&[("Expires", &later), (CONTROL, "max-age=5")], 5),
            (&[("Expires", "0")], -1),
            (&[("Expires", &later), ("Date", &date_in(30))], 30),
            (&[("Expires", &later), ("Date", "foo")], 60),
            (&[("Expires", &date_in(300)), ("Date", &date_in(400))], -1),
            (&[(CDN, "max-age=7"), (CONTROL, "no-store")], 7),
            (&[(CDN, "max-age=7"), (CONTROL, "max-age=700"), ("Expires", &long)], 7),
            (&[(CDN, "max-age=7, &"), (CONTROL, "max-age=5")], 5),
            (&[(CDN, "no-store"), (CONTROL, "max-age=5")], -1),
            (&[(CDN, "private"), ("Expires", &long)], -1),
            (&[("X-Accel-Expires", "9"), (CONTROL, "no-store"), (CDN, "max-age=7")], 9),
            (&[("X-Accel-Expires", "0"), (CONTROL, "max-age=5")], -1),
            (&[("X-Accel-Expires", "x"), (CONTROL, "max-age=5")], 5),
        ];
        for (fields, expected) in table {
            assert_eq!(fresh_s(fields), *expected, "{fields:?}");
        }
    }

    #[test]
    fn the_age_of_a_reply_counts() {
        let max_age = (CONTROL, "max-age=3600");
        for (age, expected) in [
            ("100", 3500),
            ("100, 0", 3500),
            ("0, 7200", 3600),
            ("3600", -1),
            ("2147483648", -1),
            ("99999999999999999999", -1),
            ("abc", 3600),
            ("-7200", 3600),
            ("7200.0", 3600),
            ("7200;foo=bar", 3600),
        ] {
            assert_eq!(fresh_s(&[max_age, ("Age", age)]), expected, "{age}");
        }
        assert_eq!(fresh_s(&[max_age, ("Age", "7200"), ("Age", "0")]), -1);
        assert_eq!(fresh_s(&[max_age, ("Date", &date_in(-100)), ("Age", "30")]), 3500);
        assert_eq!(fresh_s(&[max_age, ("Date", &date_in(100)), ("Age", "30")]), 3570);
        let slow = ReplyFacts { asked_s: NOW - 20, ..FACTS };
        assert_eq!(fresh_by(200, &[max_age, ("Age", "30")], &slow), 3550);
        assert_eq!(of_status(200, &[max_age, ("Age", "30")], &slow).made_s, NOW - 50);
    }

    #[test]
    fn a_reply_that_is_stale_is_stored_if_it_can_be_validated() {
        let stored = |status, fields: &[(&str, &str)]| {
            let freshness = of_status(status, fields, &FACTS);
            (freshness.is_cacheable(), freshness.valid_s >= NOW)
        };
        let tag = ("ETag", "\"a\"");
        let dated = ("Last-Modified", "Mon, 01 Jan 2001 00:00:00 GMT");
        for control in ["no-cache", "max-age=10, no-cache", "max-age=0"] {
            assert!(!stored(200, &[(CONTROL, control)]).0, "{control}");
            assert_eq!(stored(200, &[(CONTROL, control), tag]), (true, false), "{control}");
            assert_eq!(stored(200, &[(CONTROL, control), dated]), (true, false), "{control}");
            assert!(!stored(404, &[(CONTROL, control), tag]).0, "{control}");
        }
        assert!(!stored(200, &[(CONTROL, "no-store, no-cache"), tag]).0);
        // A time of 0 is said, too, so that the configuration does not count.
        assert_eq!(of_status(200, &[("X-Accel-Expires", "@0"), tag], &FACTS).valid_s, 1);
        assert_eq!(stored(200, &[(CONTROL, "no-cache=\"a\", max-age=5")]), (true, true));
    }

    #[test]
    fn a_lifetime_is_guessed_from_the_last_change() {
        let (day, year) = (date_in(-86_400), date_in(-31_536_000));
        let guess =
            |status, modified: &str| fresh_by(status, &[("Last-Modified", modified)], &FACTS);
        assert_eq!(guess(200, &day), 8640);
        assert_eq!(guess(404, &day), 8640);
        assert_eq!(guess(200, &year), 86_400);
        assert_eq!(guess(200, &date_in(60)), -1);
        assert_eq!([201, 302, 403, 502].map(|status| guess(status, &day)), [-1; 4]);
        let public = [("Last-Modified", &*day), (CONTROL, "public")];
        assert_eq!(fresh_by(599, &public, &FACTS), 8640);
        let configured = ReplyFacts { configured_s: Some(20), ..FACTS };
        assert_eq!(fresh_by(502, &[("Last-Modified", &*day)], &configured), 20);
        assert_eq!(fresh_by(200, &[(CONTROL, "max-age=5")], &configured), 5);
        assert_eq!(fresh_by(200, &[(CONTROL, "no-store")], &configured), -1);
    }

    #[test]
    fn what_is_not_for_all_is_not_stored() {
        let authorized = ReplyFacts { is_authorized: true, ..FACTS };
        for (control, expected) in [
            ("max-age=5", -1),
            ("max-age=5, public", 5),
            ("max-age=5, must-revalidate", 5),
            ("s-maxage=5", 5),
            ("public, private, max-age=5", -1),
        ] {
            assert_eq!(fresh_by(200, &[(CONTROL, control)], &authorized), expected, "{control}");
        }
        let cookie = ("Set-Cookie", "a=b");
        let modified = ("Last-Modified", "Mon, 01 Jan 2001 00:00:00 GMT");
        assert_eq!(fresh_s(&[cookie, (CONTROL, "max-age=5")]), 5);
        assert_eq!(fresh_s(&[cookie, modified]), -1);
        for vary in ["*", "*, *", ", *", "Foo, *", "*, Foo"] {
            assert_eq!(fresh_s(&[("Vary", vary), (CONTROL, "max-age=5")]), -1, "{vary}");
        }
        assert_eq!(fresh_s(&[("Vary", ""), ("Vary", "*"), (CONTROL, "max-age=5")]), -1);
        let vary = of_status(200, &[("Vary", "a"), ("Vary", "b"), (CONTROL, "max-age=5")], &FACTS);
        assert_eq!((vary.is_cacheable(), &vary.vary[..]), (true, &b"a, b"[..]));
    }

    #[test]
    fn a_status_may_have_to_be_understood() {
        let fields = [(CONTROL, "max-age=5, no-store, must-understand")];
        assert_eq!([200, 404, 599].map(|status| fresh_by(status, &fields, &FACTS)), [5, 5, -1]);
        assert_eq!(fresh_by(599, &[(CONTROL, "max-age=5")], &FACTS), 5);
        assert_eq!(fresh_by(304, &[(CONTROL, "max-age=5")], &FACTS), -1);
    }

    #[test]
    fn a_part_is_stored_under_a_key_that_names_it() {
        let fields = [(CONTROL, "max-age=5"), ("Content-Range", "bytes 10-19/100")];
        assert_eq!(fresh_by(206, &fields, &FACTS), -1);
        for (key, expected) in
            [(&b"/x bytes=10-19"[..], 5), (b"/x bytes=1-19", -1), (b"/x bytes=0-9", -1)]
        {
            assert_eq!(fresh_by(206, &fields, &ReplyFacts { key, ..FACTS }), expected);
        }
    }

    #[test]
    fn dates_end_with_gmt() {
        for (text, is_valid) in [
            ("Sun, 06 Nov 1994 08:49:37 GMT", true),
            ("SUN, 06 NOV 1994 08:49:37 gMT", true),
            ("Sunday, 06-Nov-94 08:49:37 GMT", true),
            ("Sun Nov  6 08:49:37 1994", true),
            ("Sun, 06 Nov 1994 08:49:37 UTC", false),
            ("Sun, 06 Nov 1994 08:49:37 AEST", false),
            ("Sun, 06 Nov 1994 08:49:37", false),
            ("Sun, 06 Nov 1994 08:49:37 GMT GMT", false),
            ("Sun, 06  Nov  1994 08:49:37 GMT", false),
            ("Sun 06 Nov 1994 08:49:37 GMT", false),
            ("Sun, 06 Nov 94 08:49:37 GMT", false),
            ("", false),
        ] {
            assert_eq!(http_date(text.as_bytes()).is_some(), is_valid, "{text}");
        }
    }
}
