//! Failures of issuers, and when each may be asked again.

use wire::acme::{AcmeFailure, AcmeFailureKind, schedule};

use crate::stored::{Failures, IssuerFailures};

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
        *known = IssuerFailures { count, next_s: now_s + pause_s, error: failure.to_string() };
    }
}

fn pause_s(count: u32, failure: &AcmeFailure, random: u64) -> i64 {
    let needs_change = failure.kind.needs_change();
    let pause_s = schedule::backoff_s(count, needs_change, failure.retry_after_s, random);
    i64::try_from(pause_s).unwrap_or(i64::MAX / 2)
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
    fn what_needs_a_change_is_tried_once_a_day() {
        assert_eq!(pause_s(1, &failure(AcmeFailureKind::UserAction, None), 0), DAY_S);
    }
}
