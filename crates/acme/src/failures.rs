//! Failures of issuers, and when each may be asked again.

use wire::acme::{AcmeFailure, AcmeFailureKind, schedule};

use crate::stored::{Failures, IssuerFailures};

/// The times that are remembered.
const TIMES_MAX: usize = 5;
/// The most failures within an hour after which somebody may ask for another attempt. Let's Encrypt
/// refuses names that have failed five times.
const FORCED_MAX: usize = 4;
const HOUR_S: i64 = 60 * 60;
/// The longest pause that an authority may ask for.
const ASKED_S_MAX: i64 = 30 * 24 * HOUR_S;

/// Records a failure. `issuers` are those that it says something about. `random` spreads the next
/// attempts of many certificates.
pub(crate) fn record<'n>(
    failures: &mut Failures,
    issuers: impl Iterator<Item = &'n str>,
    failure: &AcmeFailure,
    now_s: i64,
    random: u64,
) {
    for issuer in issuers {
        let known = failures.entry(issuer.to_owned()).or_default();
        let count = known.count.saturating_add(1);
        let pause_s = pause_s(count, failure, random);
        let mut times = std::mem::take(&mut known.times);
        times.push(now_s);
        times.drain(..times.len().saturating_sub(TIMES_MAX));
        let asked_s = failure.retry_after_s.map_or(0, |asked_s| {
            now_s + i64::try_from(asked_s).unwrap_or(i64::MAX).min(ASKED_S_MAX)
        });
        let error = failure.to_string();
        *known = IssuerFailures { count, next_s: now_s + pause_s, error, times, asked_s };
    }
}

fn pause_s(count: u32, failure: &AcmeFailure, random: u64) -> i64 {
    let needs_change = failure.kind.needs_change();
    let pause_s = schedule::backoff_s(count, needs_change, failure.retry_after_s, random);
    i64::try_from(pause_s).unwrap_or(i64::MAX / 2)
}

/// The earliest time of a forced attempt, which skips the pause after failures but not the limits
/// of the authority: its Retry-After and its limit of failures in an hour.
pub(crate) fn forced_s(failures: &Failures, issuer: &str, now_s: i64) -> i64 {
    let Some(known) = failures.get(issuer) else { return 0 };
    let mut recent = known.times.iter().filter(|time| (0..HOUR_S).contains(&(now_s - **time)));
    let first_s = recent.nth_back(FORCED_MAX - 1).map_or(0, |time| time + HOUR_S);
    first_s.max(known.asked_s)
}

/// Whether another issuer may be asked now: not if the failure is our own.
pub(crate) fn tries_next(kind: AcmeFailureKind) -> bool {
    kind.is_of_issuer()
}

/// When the first of these issuers may be asked.
pub(crate) fn next_s<'n>(failures: &Failures, issuers: impl Iterator<Item = &'n str>) -> i64 {
    issuers.map(|name| failures.get(name).map_or(0, |one| one.next_s)).min().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use wire::acme::AcmeActivity;

    use super::*;

    const DAY_S: i64 = 24 * 60 * 60;

    fn failure(kind: AcmeFailureKind, retry_after_s: Option<u64>) -> AcmeFailure {
        let activity = AcmeActivity::NewOrder;
        AcmeFailure { kind, activity, detail: String::new(), retry_after_s }
    }

    #[test]
    fn pauses_grow_to_a_day() {
        let mut failures = Failures::new();
        let failed = failure(AcmeFailureKind::Challenge, None);
        for pause_s in [60, 600, 6000, DAY_S, DAY_S] {
            record(&mut failures, ["a"].into_iter(), &failed, 1000, 0);
            assert_eq!(failures["a"].next_s, 1000 + pause_s);
        }
        assert_eq!(failures["a"].count, 5);
        assert_eq!(next_s(&failures, ["a"].into_iter()), 1000 + DAY_S);
        assert_eq!(next_s(&failures, ["a", "b"].into_iter()), 0);
    }

    #[test]
    fn a_server_that_names_a_time_is_obeyed() {
        let limited = failure(AcmeFailureKind::RateLimited, Some(100_000));
        assert_eq!(pause_s(1, &limited, 0), 100_000);
        let soon = failure(AcmeFailureKind::RateLimited, Some(5));
        assert_eq!(pause_s(1, &soon, 0), 60, "no sooner than without it");
    }

    #[test]
    fn who_does_not_wait_is_stopped_before_the_authority_does_so() {
        let mut failures = Failures::new();
        let failed = failure(AcmeFailureKind::Challenge, None);
        for number in 1..=4 {
            assert_eq!(forced_s(&failures, "a", 1000 * number), 0);
            record(&mut failures, ["a"].into_iter(), &failed, 1000 * number, 0);
        }
        assert_eq!(forced_s(&failures, "a", 4100), 1000 + HOUR_S);
        assert_eq!(forced_s(&failures, "a", 4600), 0);
        let limited = failure(AcmeFailureKind::RateLimited, Some(100_000));
        record(&mut failures, ["a"].into_iter(), &limited, 9000, 0);
        assert_eq!(forced_s(&failures, "a", 9000), 109_000);
        assert_eq!(failures["a"].times.len(), 5);
    }

    #[test]
    fn what_needs_a_change_is_tried_once_a_day() {
        assert_eq!(pause_s(1, &failure(AcmeFailureKind::UserAction, None), 0), DAY_S);
    }
}
