//! When to try: renewals, pauses after failures, and how many orders may begin at once.
//!
//! Times are in seconds since 1970, and `random` is any unpredictable number: neither a clock nor
//! a generator is here.

use super::renewal::RenewalInfo;
use crate::x509::ValidityPeriod;

/// A certificate valid for less than this is renewed at half of its lifetime.
const SHORT_LIFETIME_S: i64 = 10 * DAY_S;
const DAY_S: i64 = 86_400;
const MINUTE_S: u64 = 60;

/// How far a renewal without a suggestion may be moved, in thousandths of the lifetime.
const SPREAD_PER_MILLE: i64 = 20;

/// The pauses after failures in a row; the last one stays.
const BACKOFF_S: [u64; 4] = [MINUTE_S, 10 * MINUTE_S, 100 * MINUTE_S, DAY_S as u64];
/// The most by which a pause is longer, in percent.
const BACKOFF_JITTER_PERCENT: u64 = 10;
/// The longest pause that a server may ask for.
const RETRY_AFTER_S_MAX: u64 = 30 * DAY_S as u64;

/// The shortest and longest pauses between two questions when to renew (RFC 9773, section 4.3).
const SUGGESTION_S_MIN: u64 = MINUTE_S;
const SUGGESTION_S_MAX: u64 = DAY_S as u64;
/// The pause if the server names none, or could not be asked: six hours.
const SUGGESTION_S: u64 = 6 * 60 * MINUTE_S;

/// When to renew a certificate without a server's suggestion: at two thirds of its lifetime, or at
/// half of a short one, give or take 2 %. With `renew_before_s`, that long before its end instead.
pub fn renewal_time(validity: ValidityPeriod, renew_before_s: Option<u64>, random: u64) -> i64 {
    let ValidityPeriod { not_before_s, not_after_s } = validity;
    let lifetime_s = not_after_s.saturating_sub(not_before_s).max(0);
    let after_s = match renew_before_s {
        // Not before the first half is over: a setting for long lifetimes must not make short ones
        // be renewed for ever.
        Some(before_s) => {
            let before_s = i64::try_from(before_s).unwrap_or(i64::MAX);
            lifetime_s.saturating_sub(before_s).max(lifetime_s / 2)
        }
        None if lifetime_s < SHORT_LIFETIME_S => lifetime_s / 2,
        None => lifetime_s / 3 * 2,
    };
    let spread_s = lifetime_s / 1000 * SPREAD_PER_MILLE;
    let moved_s = below(random, 2 * spread_s as u64 + 1) as i64 - spread_s;
    not_before_s.saturating_add(after_s).saturating_add(moved_s)
}

/// A random time in the window that a server suggests (RFC 9773, section 4.2). It may be over:
/// then renew now. The caller keeps the time as long as the window is the same.
pub fn suggested_time(window: &RenewalInfo, random: u64) -> i64 {
    let length_s = window.end_s.saturating_sub(window.start_s).max(1);
    window.start_s.saturating_add(below(random, length_s as u64) as i64)
}

/// The pause before the server is asked again when to renew, from its own `Retry-After`.
pub fn suggestion_pause_s(retry_after_s: Option<u64>) -> u64 {
    retry_after_s.unwrap_or(SUGGESTION_S).clamp(SUGGESTION_S_MIN, SUGGESTION_S_MAX)
}

/// The pause after this many failures in a row: 1, 10, 100 minutes, then a day, and up to a tenth
/// more. It is a day at once if nothing but a change of the configuration helps. It is never
/// shorter than what the server asks for.
pub fn backoff_s(
    failures: u32,
    needs_change: bool,
    retry_after_s: Option<u64>,
    random: u64,
) -> u64 {
    let last = BACKOFF_S.len() - 1;
    let step = (failures.max(1) - 1) as usize;
    let pause_s = BACKOFF_S[if needs_change { last } else { step.min(last) }];
    let pause_s = pause_s.max(retry_after_s.unwrap_or(0).min(RETRY_AFTER_S_MAX));
    pause_s + below(random, pause_s * BACKOFF_JITTER_PERCENT / 100 + 1)
}

/// Whether a clock can be right that shows `now_s` while a certificate is used that its authority
/// has issued: with a clock before its validity, no renewal would end.
pub fn is_clock_plausible(validity: ValidityPeriod, now_s: i64) -> bool {
    now_s >= validity.not_before_s
}

/// Limits how many orders of an account begin: a bucket of tokens that fills with time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderBudget {
    orders_max: u32,
    /// The time in which one more order is allowed.
    interval_s: u32,
    /// The time from which on the bucket is full.
    full_at_s: i64,
}

impl OrderBudget {
    /// Up to `orders_max` orders at once, and one more after each `interval_s`.
    pub const fn new(orders_max: u32, interval_s: u32) -> Self {
        let orders_max = if orders_max == 0 { 1 } else { orders_max };
        Self { orders_max, interval_s, full_at_s: i64::MIN }
    }

    /// Takes a token, or says in how many seconds there will be one. A clock that was set back
    /// costs no more than one full bucket.
    pub fn take(&mut self, now_s: i64) -> Result<(), u64> {
        let interval_s = i64::from(self.interval_s);
        let whole_s = interval_s * i64::from(self.orders_max);
        let latest_s = now_s.saturating_add(whole_s);
        self.full_at_s = self.full_at_s.clamp(now_s, latest_s);
        let full_at_s = self.full_at_s.saturating_add(interval_s);
        if full_at_s > latest_s {
            return Err(full_at_s.abs_diff(latest_s));
        }
        self.full_at_s = full_at_s;
        Ok(())
    }
}

/// A number below `limit`, which is not 0.
fn below(random: u64, limit: u64) -> u64 {
    ((u128::from(random) * u128::from(limit)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOWEST: u64 = 0;
    const HIGHEST: u64 = u64::MAX;

    fn validity(days: i64) -> ValidityPeriod {
        ValidityPeriod { not_before_s: 0, not_after_s: days * DAY_S }
    }

    #[test]
    fn a_certificate_is_renewed_in_time() {
        for (days, renew_before, earliest, latest) in [
            (90, None, 58.2, 61.8),
            (6, None, 2.88, 3.12),
            (90, Some(30), 58.2, 61.8),
            (90, Some(10), 78.2, 81.8),
            (6, Some(30), 2.88, 3.12),
            (0, None, 0.0, 0.0),
        ] {
            let renew_before_s = renew_before.map(|days: u64| days * DAY_S as u64);
            let day = |random| {
                let time = renewal_time(validity(days), renew_before_s, random);
                time as f64 / DAY_S as f64
            };
            assert!((day(LOWEST) - earliest).abs() < 0.05, "{days} {renew_before:?}");
            assert!((day(HIGHEST) - latest).abs() < 0.05, "{days} {renew_before:?}");
        }
    }

    #[test]
    fn no_dates_of_a_certificate_overflow() {
        for not_before_s in [i64::MIN, 0, i64::MAX] {
            for not_after_s in [i64::MIN, 0, i64::MAX] {
                let validity = ValidityPeriod { not_before_s, not_after_s };
                for before in [None, Some(0), Some(u64::MAX)] {
                    renewal_time(validity, before, LOWEST);
                    renewal_time(validity, before, HIGHEST);
                }
            }
        }
    }

    #[test]
    fn a_suggested_time_lies_in_its_window() {
        let window =
            RenewalInfo { start_s: 100, end_s: 200, retry_after_s: None, explanation_url: None };
        assert_eq!((suggested_time(&window, LOWEST), suggested_time(&window, HIGHEST)), (100, 199));
        // A window in the past is in the past, and no further away than it says.
        assert!(suggested_time(&window, HIGHEST) < 300 * DAY_S);
        for (retry_after_s, pause_s) in [(None, 21_600), (Some(0), 60), (Some(1 << 40), 86_400)] {
            assert_eq!(suggestion_pause_s(retry_after_s), pause_s);
        }
    }

    #[test]
    fn pauses_grow_to_a_day() {
        let pause = |failures| backoff_s(failures, false, None, LOWEST);
        assert_eq!(
            [0, 1, 2, 3, 4, 5, u32::MAX].map(pause),
            [60, 60, 600, 6000, 86_400, 86_400, 86_400]
        );
        assert_eq!(backoff_s(1, true, None, LOWEST), 86_400);
        assert_eq!(backoff_s(2, false, None, HIGHEST), 660);
        assert_eq!(backoff_s(1, false, Some(3600), LOWEST), 3600);
        assert_eq!(backoff_s(3, false, Some(10), LOWEST), 6000);
        assert_eq!(backoff_s(1, false, Some(u64::MAX), LOWEST), RETRY_AFTER_S_MAX);
    }

    /// A name that fails for a whole year is tried less than 400 times.
    #[test]
    fn failures_for_ever_cost_one_attempt_a_day() {
        let (mut now_s, mut attempts) = (0, 0);
        while now_s < 365 * DAY_S {
            attempts += 1;
            now_s += backoff_s(attempts, false, None, LOWEST) as i64;
        }
        assert_eq!(attempts, 368);
    }

    #[test]
    fn a_budget_fills_with_time() {
        let mut budget = OrderBudget::new(3, 60);
        let mut now_s = 1_000_000;
        assert_eq!([(); 3].map(|()| budget.take(now_s)), [Ok(()); 3]);
        assert_eq!(budget.take(now_s), Err(60));
        now_s += 59;
        assert_eq!(budget.take(now_s), Err(1));
        now_s += 1;
        assert_eq!((budget.take(now_s), budget.take(now_s)), (Ok(()), Err(60)));
        // Jumps of the clock: as many as ever at once forward, one full bucket backward.
        now_s += 300 * DAY_S;
        assert_eq!([(); 4].map(|()| budget.take(now_s).is_ok()), [true, true, true, false]);
        now_s -= 600 * DAY_S;
        assert_eq!(budget.take(now_s), Err(60));
        assert_eq!(budget.take(now_s + 60), Ok(()));
    }

    /// 10,000 names that are due at once begin one after the other.
    #[test]
    fn ten_thousand_names_make_no_burst() {
        let mut budget = OrderBudget::new(10, 36);
        let (mut now_s, mut begun) = (0, 0);
        while begun < 10_000 {
            match budget.take(now_s) {
                Ok(()) => begun += 1,
                Err(pause_s) => now_s += pause_s as i64,
            }
        }
        assert_eq!(now_s, (10_000 - 10) * 36);
    }

    #[test]
    fn a_clock_before_its_certificate_is_wrong() {
        assert!(!is_clock_plausible(validity(90), -1));
        assert!(is_clock_plausible(validity(90), 0) && is_clock_plausible(validity(90), i64::MAX));
    }
}
