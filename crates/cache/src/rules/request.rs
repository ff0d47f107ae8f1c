//! What a request says about stored replies: `Cache-Control` and `Pragma` (RFC 9111, sections 5.2.1
//! and 5.4).

use super::control::{SECONDS_MAX, directives};

/// The directives of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestControl {
    no_cache: bool,
    pub no_store: bool,
    pub only_if_cached: bool,
    max_age_s: Option<i64>,
    max_stale_s: Option<i64>,
    min_fresh_s: Option<i64>,
    error_s: Option<i64>,
}

/// A stored reply, as far as its use depends on it.
#[derive(Clone, Copy, Debug)]
pub struct StoredAge {
    /// The last second in which it is fresh.
    pub valid_s: i64,
    /// The second since which it ages.
    pub made_s: i64,
}

impl RequestControl {
    /// Reads the values of `Cache-Control`, and those of `Pragma`, which count if there are no
    /// others.
    pub fn of<'t>(
        control: impl Iterator<Item = &'t [u8]>,
        mut pragma: impl Iterator<Item = &'t [u8]>,
    ) -> Self {
        let mut read = Self::default();
        let mut has_control = false;
        for value in control {
            has_control = true;
            read.add(value);
        }
        let says = |value| directives(value).any(|directive| directive.is("no-cache"));
        read.no_cache |= !has_control && pragma.any(says);
        read
    }

    fn add(&mut self, value: &[u8]) {
        for directive in directives(value) {
            let seconds = directive.seconds();
            if directive.is("no-cache") {
                self.no_cache = true;
            } else if directive.is("no-store") {
                self.no_store = true;
            } else if directive.is("only-if-cached") {
                self.only_if_cached = true;
            } else if directive.is("max-age") {
                self.max_age_s.get_or_insert(seconds);
            } else if directive.is("min-fresh") {
                self.min_fresh_s.get_or_insert(seconds);
            } else if directive.is("max-stale") {
                let any = if directive.argument.is_some() { seconds } else { SECONDS_MAX };
                self.max_stale_s.get_or_insert(any);
            } else if directive.is("stale-if-error") {
                self.error_s.get_or_insert(seconds);
            }
        }
    }

    /// Whether a stored reply is used without asking the server. `may_be_stale`: nothing forbids
    /// to use it once it has expired.
    pub fn accepts(&self, stored: StoredAge, may_be_stale: bool, now_s: i64) -> bool {
        let age_s = now_s.saturating_sub(stored.made_s);
        if self.no_cache || self.max_age_s.is_some_and(|most| age_s > most) {
            return false;
        }
        let left_s = stored.valid_s.saturating_sub(now_s);
        if left_s >= self.min_fresh_s.unwrap_or(0) {
            return true;
        }
        let late_s = left_s.saturating_neg();
        may_be_stale && self.max_stale_s.is_some_and(|most| late_s <= most)
    }

    /// Whether the request demands more than freshness.
    pub fn is_demanding(&self) -> bool {
        self.no_cache || self.max_age_s.is_some() || self.min_fresh_s.is_some()
    }

    /// Whether an expired reply may be used after a failure of the server (RFC 5861, section 4).
    pub fn accepts_after_error(&self, stored: StoredAge, now_s: i64) -> bool {
        let late_s = now_s.saturating_sub(stored.valid_s);
        self.error_s.is_some_and(|most| late_s <= most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(control: &[&str], pragma: &[&str]) -> RequestControl {
        let control: Vec<_> = control.iter().map(|value| value.as_bytes()).collect();
        let pragma: Vec<_> = pragma.iter().map(|value| value.as_bytes()).collect();
        RequestControl::of(control.into_iter(), pragma.into_iter())
    }

    /// Whether a reply of 100 seconds that is fresh for `left_s` more is used.
    fn accepts(control: &str, left_s: i64, may_be_stale: bool) -> bool {
        let stored = StoredAge { valid_s: 1000 + left_s, made_s: 900 };
        of(&[control], &[]).accepts(stored, may_be_stale, 1000)
    }

    #[test]
    fn a_request_may_ask_for_more_or_less_than_freshness() {
        for (control, left_s, may_be_stale, expected) in [
            ("", 0, true, true),
            ("", -1, true, false),
            ("unknown", 0, true, true),
            ("no-cache", 50, true, false),
            ("no-store", 50, true, true),
            ("max-age=100", 50, true, true),
            ("max-age=99", 50, true, false),
            ("max-age=x", 50, true, false),
            ("min-fresh=50", 50, true, true),
            ("min-fresh=51", 50, true, false),
            ("max-stale", -500, true, true),
            ("max-stale", -500, false, false),
            ("max-stale=5", -5, true, true),
            ("max-stale=5", -6, true, false),
            ("max-stale=5, max-age=9", -5, true, false),
        ] {
            assert_eq!(accepts(control, left_s, may_be_stale), expected, "{control} {left_s}");
        }
    }

    #[test]
    fn pragma_counts_without_cache_control() {
        let stored = StoredAge { valid_s: 1000, made_s: 900 };
        for (control, pragma, expected) in [
            (&[][..], &["No-Cache"][..], false),
            (&[], &["foo"], true),
            (&["max-age=1000"], &["no-cache"], true),
        ] {
            assert_eq!(of(control, pragma).accepts(stored, true, 1000), expected);
        }
    }

    #[test]
    fn errors_may_be_hidden_for_some_time() {
        let stored = StoredAge { valid_s: 1000, made_s: 900 };
        let read = of(&["stale-if-error=5"], &[]);
        assert!(read.accepts_after_error(stored, 1005) && !read.accepts_after_error(stored, 1006));
        assert!(!of(&[""], &[]).accepts_after_error(stored, 1001));
    }
}
