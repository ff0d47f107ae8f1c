//! Results for tests.

use std::time::Duration;

use super::{LoadKind, Moment, Results, RunStats, Second};

/// An empty closed loop of ten seconds.
pub(crate) fn results() -> Results {
    Results {
        urls: vec!["http://127.0.0.1:8080/".into()],
        threads: 2,
        connections: 10,
        duration: Some(Duration::from_secs(10)),
        pace: LoadKind::Closed,
        began_unix_ms: 1_700_000_000_000,
        elapsed: Duration::from_secs(10),
        tally: RunStats::default(),
        seconds: Vec::new(),
        cpu: Duration::from_millis(500),
        busiest_thread: 0.3,
        interrupted: false,
        judged: Vec::new(),
    }
}

/// A second with a number of replies that all have the same latency.
pub(super) fn second(at: f64, replies: u64, latency_us: u64) -> Second {
    let mut tally = RunStats { replies, ..RunStats::default() };
    // Recording a value zero times would set the maximum.
    if replies > 0 {
        tally.latency_us.record_n(latency_us, replies).unwrap();
    }
    Second { at, tally }
}

/// Summaries of seconds: (start, replies, latency in microseconds).
pub(super) fn moments(seconds: impl IntoIterator<Item = (f64, u64, u64)>) -> Vec<Moment> {
    let moment = |(at, replies, us)| Moment::from(&second(at, replies, us));
    seconds.into_iter().map(moment).collect()
}
