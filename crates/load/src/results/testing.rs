//! Results to test with.

use std::time::Duration;

use super::{Pace, Results, Tally};

/// A closed loop of ten seconds in which nothing was counted.
pub(super) fn results() -> Results {
    Results {
        urls: vec!["http://127.0.0.1:8080/".into()],
        threads: 2,
        connections: 10,
        duration: Some(Duration::from_secs(10)),
        pace: Pace::Closed,
        began_unix_ms: 1_700_000_000_000,
        elapsed: Duration::from_secs(10),
        tally: Tally::default(),
        seconds: Vec::new(),
        cpu: Duration::from_millis(500),
        busiest_thread: 0.3,
        interrupted: false,
    }
}
