//! How fast a certificate may be replaced, from the times at which it was obtained. They are stored
//! with the certificate, so that neither a restart nor another machine begins anew.
//!
//! All times are in seconds since 1970. Times in the future are a wrong clock's, and do not count.

use wire::acme::schedule;

const DAY_S: i64 = 24 * 60 * 60;
/// The times that are remembered: enough for the longest pause.
const TIMES_MAX: usize = 8;
/// Let's Encrypt refuses the sixth certificate for the same names within a week. One of them is
/// left for a renewal that is due.
const REQUESTED_MAX: usize = 4;
const REQUESTED_WINDOW_S: i64 = 7 * DAY_S;

/// Adds a time, and forgets the oldest.
pub(crate) fn remember(times: &mut Vec<i64>, now_s: i64) {
    times.push(now_s);
    times.drain(..times.len().saturating_sub(TIMES_MAX));
}

/// Until when no further order begins. A certificate that is valid for more than a day is replaced
/// once in a day without a pause, which is for revocations. This keeps a wrong clock, or an
/// authority that always suggests to renew now, from one order after the other.
pub(crate) fn haste_until_s(times: &[i64], lifetime_s: i64, now_s: i64) -> i64 {
    let times = past(times, now_s);
    let is_near = |pair: &&[i64]| pair[1] - pair[0] <= DAY_S;
    let in_haste = times.windows(2).rev().take_while(is_near).count();
    match times.last() {
        Some(last) if in_haste > 0 && lifetime_s > DAY_S => {
            let count = u32::try_from(in_haste).unwrap_or(u32::MAX);
            let pause_s = schedule::backoff_s(count, false, None, 0);
            last + i64::try_from(pause_s).unwrap_or(DAY_S)
        }
        _ => 0,
    }
}

/// From when on one more renewal on request leaves an authority's limit alone. A certificate that
/// is valid for less than a week has that time instead of the week.
pub(crate) fn request_allowed_s(times: &[i64], lifetime_s: i64, now_s: i64) -> i64 {
    let window_s = lifetime_s.clamp(1, REQUESTED_WINDOW_S);
    let mut recent = past(times, now_s);
    recent.retain(|time| now_s - time < window_s);
    match recent.len().checked_sub(REQUESTED_MAX) {
        Some(first) => recent[first] + window_s,
        None => 0,
    }
}

fn past(times: &[i64], now_s: i64) -> Vec<i64> {
    times.iter().copied().filter(|time| *time <= now_s).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIFETIME_S: i64 = 90 * DAY_S;
    const NOW_S: i64 = 1_000_000_000;

    #[test]
    fn certificates_in_haste_are_followed_by_longer_and_longer_pauses() {
        let mut times = Vec::new();
        for pause_s in [0, 60, 600, 6000, DAY_S, DAY_S, DAY_S, DAY_S, DAY_S, DAY_S] {
            remember(&mut times, NOW_S);
            let until_s = haste_until_s(&times, LIFETIME_S, NOW_S);
            assert_eq!(until_s, if pause_s == 0 { 0 } else { NOW_S + pause_s });
        }
        assert_eq!(times.len(), TIMES_MAX);
        assert_eq!(haste_until_s(&times, DAY_S, NOW_S), 0, "short ones are replaced all day");
        remember(&mut times, NOW_S + 2 * DAY_S);
        assert_eq!(haste_until_s(&times, LIFETIME_S, NOW_S + 2 * DAY_S), 0, "a day is no haste");
        assert_eq!(haste_until_s(&[NOW_S + 1, NOW_S + 2], LIFETIME_S, NOW_S), 0, "a wrong clock");
    }

    #[test]
    fn four_certificates_in_a_week_are_enough_on_request() {
        let times: Vec<_> = (0..4).map(|hour| NOW_S + hour * 3600).collect();
        let now_s = NOW_S + DAY_S;
        assert_eq!(request_allowed_s(&times[..3], LIFETIME_S, now_s), 0);
        assert_eq!(request_allowed_s(&times, LIFETIME_S, now_s), NOW_S + 7 * DAY_S);
        assert_eq!(request_allowed_s(&times, LIFETIME_S, NOW_S + 7 * DAY_S), 0);
        assert_eq!(request_allowed_s(&times, 3600, now_s), 0, "an hour is over");
    }
}
