//! Reasons to doubt the figures: the generator, not the server, may have limited them.
//!
//! Only the generator's own work is judged, not the network or the machine.

use super::{LoadKind, Results, amounts};

/// A thread that uses a CPU for more than this share of a second is late, and measures its own
/// queue.
pub const BUSY_MAX: f64 = 0.9;

/// The tolerated lateness of starts, which is the accuracy of latencies, ...
pub const LATENESS_MAX_US: f64 = 1000.0;
/// ... or this share of a long p99 latency, in which it is invisible, ...
pub const LATENESS_SEEN_FROM: f64 = 0.01;
/// ... but less than this share of a short one: latency counts from the intended start, so most of
/// it would be lateness.
pub const LATENESS_MOST_FROM: f64 = 0.5;

/// A reason to doubt the figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doubt {
    pub what: String,
    pub remedy: &'static str,
}

/// All reasons to doubt a run.
pub fn doubts(results: &Results) -> Vec<Doubt> {
    [busy(results), late(results)].into_iter().flatten().collect()
}

fn busy(results: &Results) -> Option<Doubt> {
    let percent = results.busiest_thread * 100.0;
    (results.busiest_thread > BUSY_MAX).then(|| Doubt {
        what: format!("its busiest thread used a CPU for {percent:.0} % of a second"),
        remedy: "use more threads (-t) if there are idle CPUs, otherwise another machine",
    })
}

fn late(results: &Results) -> Option<Doubt> {
    let p99 = results.tally.lateness_us.value_at_quantile(0.99) as f64;
    let open = matches!(results.pace, LoadKind::Open { .. });
    (open && p99 > lateness_max_us(results)).then(|| Doubt {
        what: format!(
            "1 % of its requests started {} late or more although a connection was free",
            amounts::time_us(p99)
        ),
        remedy: "use more threads (-t), a lower --rate, or an idle machine",
    })
}

fn lateness_max_us(results: &Results) -> f64 {
    if results.tally.latency_us.is_empty() {
        return LATENESS_MAX_US;
    }
    let latency_p99 = results.tally.latency_us.value_at_quantile(0.99) as f64;
    LATENESS_MAX_US.min(latency_p99 * LATENESS_MOST_FROM).max(latency_p99 * LATENESS_SEEN_FROM)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::testing::results;

    #[test]
    fn a_busy_thread_is_a_doubt() {
        let mut results = results();
        results.busiest_thread = 0.9;
        assert_eq!(doubts(&results), []);
        results.busiest_thread = 0.97;
        assert!(doubts(&results)[0].what.starts_with("its busiest thread used a CPU for 97 % "));
    }

    /// The p99 of lateness and of latency, and whether the starts are too late.
    const LATE: [(u64, u64, bool); 8] = [
        (999, 10_000, false),
        (1001, 10_000, true),
        (1500, 100_000, true),
        (1500, 200_000, false),
        (60, 100, true),
        (40, 100, false),
        (999, 1500, true),
        (0, 100, false),
    ];

    #[test]
    fn late_starts_are_a_doubt() {
        for (lateness, latency, expected) in LATE {
            let mut results = results();
            results.tally.lateness_us.record(lateness).unwrap();
            results.tally.latency_us.record(latency).unwrap();
            assert!(doubts(&results).is_empty(), "a closed loop has no time to be late for");
            results.pace = LoadKind::Open { from: 10.0, to: 10.0 };
            assert_eq!(!doubts(&results).is_empty(), expected, "{lateness} of {latency}");
        }
    }

    #[test]
    fn lateness_without_replies_is_a_doubt() {
        let mut results = results();
        results.pace = LoadKind::Open { from: 10.0, to: 10.0 };
        results.tally.lateness_us.record(300).unwrap();
        assert_eq!(doubts(&results), []);
    }
}
