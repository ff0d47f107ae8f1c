//! What the backend is told to do, and what latencies follow from that alone: no clock, no socket.
//!
//! A request that is due at a time reaches the backend then, sleeps, some longer than others, and
//! is answered: in a pause, at its end. The backend's chances are computed here a second time, so
//! that the truth is nothing that it says of itself.

/// Requests a second. More would be answered in a larger heap when a pause ends, and the last of
/// them later than the schedule says.
pub(super) const RATE: u64 = 200;

const SLEEP_MS: u64 = 52;
const DELAY_MS: u64 = 200;
const DELAYED_PERCENT: u64 = 1;
const PAUSE_S: u64 = 1;
const PERIOD_S: u64 = 10;

/// The shortest run that has a pause in it, and something after it.
pub(super) const SECONDS_MIN: u64 = PERIOD_S + 1;

/// As options of `weir backend`.
pub(super) fn options() -> [String; 6] {
    [
        "--sleep".to_owned(),
        format!("{SLEEP_MS}ms"),
        "--delay".to_owned(),
        format!("{DELAYED_PERCENT}%:{DELAY_MS}ms"),
        "--pause".to_owned(),
        format!("{PAUSE_S}s/{PERIOD_S}s"),
    ]
}

/// Clients of a closed loop that ask nearly as often, as long as there is no pause.
pub(super) fn clients() -> u64 {
    RATE * SLEEP_MS / 1000
}

/// Connections on which no request of the open loop ever waits for another.
pub(super) fn connections() -> u64 {
    RATE * (PAUSE_S * 1000 + SLEEP_MS + DELAY_MS) * 3 / 2 / 1000
}

/// When a request is to start, in microseconds since the first.
pub(super) fn start_us(number: u64) -> u64 {
    number * 1_000_000 / RATE
}

/// When a request is answered that arrives then, both in microseconds since the first.
pub(super) fn answer_us(number: u64, arrived_us: u64) -> u64 {
    let ready_us = arrived_us + work_us(number);
    let within_us = ready_us % (PERIOD_S * 1_000_000);
    if within_us < (PERIOD_S - PAUSE_S) * 1_000_000 {
        return ready_us;
    }
    ready_us - within_us + PERIOD_S * 1_000_000
}

/// What requests wait for their replies if nothing else takes time.
pub(super) fn latencies_us(requests: u64) -> Vec<u64> {
    let latency = |number| answer_us(number, start_us(number)) - start_us(number);
    (0..requests).map(latency).collect()
}

fn work_us(number: u64) -> u64 {
    let is_delayed = luck(number) < DELAYED_PERCENT as f64 / 100.0;
    1000 * (SLEEP_MS + if is_delayed { DELAY_MS } else { 0 })
}

/// SplitMix64's step.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// What decides whether a request is delayed: the second number of its own sequence, the first is
/// for a `--sleep` that varies. The backend's seed is 0.
fn luck(number: u64) -> f64 {
    let sequence = mix(mix(STEP).wrapping_add(number));
    (mix(sequence.wrapping_add(STEP.wrapping_mul(2))) >> 11) as f64 / (1u64 << 53) as f64
}

/// SplitMix64's output function.
fn mix(state: u64) -> u64 {
    let bits = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prove::latency::DISTURBED_US;

    #[test]
    fn the_generator_of_chances_is_splitmix64() {
        // The first outputs of the published generator with the state 0.
        assert_eq!(mix(STEP), 0xe220_a839_7b1d_cdaf);
        assert_eq!(mix(STEP.wrapping_mul(2)), 0x6e78_9e6a_a1b9_65f4);
        let delayed = (0..100_000).filter(|n| work_us(*n) > SLEEP_MS * 1000).count();
        assert!((900..1100).contains(&delayed), "{delayed}");
    }

    #[test]
    fn a_pause_is_waited_out() {
        let plain = (0..).find(|n| work_us(*n) == 52_000).unwrap();
        for (arrived_ms, answered_ms) in
            [(0, 52), (8947, 8999), (8948, 10_000), (9900, 10_000), (9948, 10_000), (9949, 10_001)]
        {
            assert_eq!(answer_us(plain, arrived_ms * 1000), answered_ms * 1000, "{arrived_ms}");
        }
        let delayed = (0..).find(|n| work_us(*n) == 252_000).unwrap();
        assert_eq!(answer_us(delayed, 8_748_000), 10_000_000);
    }

    #[test]
    fn latencies_of_a_period() {
        let latencies = latencies_us(2000);
        let count = |range: std::ops::RangeInclusive<u64>| {
            latencies.iter().filter(|us| range.contains(us)).count()
        };
        assert_eq!(count(0..=51_999), 0);
        // Starts from 8.950 s to 9.945 s end at 10 s.
        assert!(
            (198..=202)
                .contains(&count(52_001..=1_050_000).saturating_sub(count(252_000..=252_000)))
        );
        assert!(latencies.iter().max().unwrap() >= &1_050_000);
    }

    /// Else it would be chance whether a request waits for a second.
    #[test]
    fn no_request_is_ready_when_a_pause_begins() {
        let begin_us = (PERIOD_S - PAUSE_S) * 1_000_000;
        for extra_ms in [0, DELAY_MS] {
            for number in 0..RATE * PERIOD_S {
                let ready_us = start_us(number) + 1000 * (SLEEP_MS + extra_ms);
                assert!(ready_us.abs_diff(begin_us) >= DISTURBED_US, "{number}");
            }
        }
    }
}
