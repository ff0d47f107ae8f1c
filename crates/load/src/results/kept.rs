//! From a run to what is kept of it: of each second a few numbers, of the whole everything.

use super::{Kept, Moment, Results, Second};

impl From<&Second> for Moment {
    fn from(second: &Second) -> Self {
        let tally = &second.tally;
        Self {
            at: second.at,
            replies: tally.replies,
            errors: tally.failures(),
            mean_us: tally.latency_us.mean(),
            p50_us: tally.latency_us.value_at_quantile(0.5),
            p99_us: tally.latency_us.value_at_quantile(0.99),
            max_us: tally.latency_us.max(),
        }
    }
}

impl From<&Results> for Kept {
    fn from(results: &Results) -> Self {
        Self {
            urls: results.urls.clone(),
            threads: results.threads,
            connections: results.connections,
            duration: results.duration,
            pace: results.pace,
            began_unix_ms: results.began_unix_ms,
            elapsed: results.elapsed,
            tally: results.tally.clone(),
            seconds: results.seconds.iter().map(Moment::from).collect(),
            cpu: results.cpu,
            busiest_thread: results.busiest_thread,
            interrupted: results.interrupted,
        }
    }
}
