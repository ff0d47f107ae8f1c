//! Tallies and errors: empty ones, sums, and derived figures.

use super::histogram::histogram;
use super::{BackgroundStats, Errors, Results, RunStats, StatusCounts, TlsStats};

impl Default for RunStats {
    fn default() -> Self {
        Self {
            replies: 0,
            bytes: 0,
            statuses: StatusCounts::default(),
            latency_us: histogram(),
            rate: histogram(),
            lateness_us: histogram(),
            unsent: 0,
            errors: Errors::default(),
            tls: TlsStats::default(),
            background: BackgroundStats::default(),
        }
    }
}

impl RunStats {
    /// Adds the counts of another thread or run.
    pub fn add(&mut self, other: &Self) {
        self.replies += other.replies;
        self.bytes += other.bytes;
        self.statuses.add_all(&other.statuses);
        for (sum, more) in [
            (&mut self.latency_us, &other.latency_us),
            (&mut self.rate, &other.rate),
            (&mut self.lateness_us, &other.lateness_us),
        ] {
            sum.add(more).expect("a histogram that grows");
        }
        self.unsent += other.unsent;
        self.errors.add(&other.errors);
        self.tls.add(&other.tls);
        self.background.add(&other.background);
    }

    /// Replies with a status of 400 or more, or in no class.
    pub fn bad_statuses(&self) -> u64 {
        self.statuses.bad()
    }

    /// Requests that have ended, successfully or not.
    pub fn requests(&self) -> u64 {
        self.replies + self.errors.sum()
    }

    /// Requests and connections without a reply of 1xx to 3xx.
    pub fn failures(&self) -> u64 {
        self.errors.sum() + self.bad_statuses()
    }
}

impl Errors {
    /// Adds the counts of another thread.
    pub fn add(&mut self, other: &Self) {
        for ((_, sum), (_, more)) in self.named_mut().into_iter().zip(other.named()) {
            *sum += more;
        }
    }

    pub fn sum(&self) -> u64 {
        self.named().iter().map(|(_, count)| count).sum()
    }

    pub fn named(&self) -> [(&'static str, u64); 9] {
        // `named_mut` has the only list of names.
        let mut copy = *self;
        copy.named_mut().map(|(name, count)| (name, *count))
    }

    pub(super) fn named_mut(&mut self) -> [(&'static str, &mut u64); 9] {
        [
            ("refused", &mut self.refused),
            ("unreachable", &mut self.unreachable),
            ("handshake", &mut self.handshake),
            ("reset", &mut self.reset),
            ("closed", &mut self.closed),
            ("short", &mut self.short),
            ("invalid", &mut self.invalid),
            ("write", &mut self.write),
            ("timeout", &mut self.timeout),
        ]
    }
}

impl Results {
    /// Replies per second, over the whole run.
    pub fn replies_per_second(&self) -> f64 {
        self.per_second(self.tally.replies)
    }

    /// Bytes received per second, over the whole run.
    pub fn bytes_per_second(&self) -> f64 {
        self.per_second(self.tally.bytes)
    }

    /// A count per second, over the whole run.
    pub(super) fn per_second(&self, count: u64) -> f64 {
        match self.elapsed.as_secs_f64() {
            0.0 => 0.0,
            seconds => count as f64 / seconds,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{IdleStats, SlowStats};

    fn tally(scale: u64) -> RunStats {
        let mut tally =
            RunStats { replies: scale, bytes: 2 * scale, unsent: 3 * scale, ..RunStats::default() };
        for (n, (_, count)) in (1..).zip(tally.errors.named_mut()) {
            *count = n * scale;
        }
        for status in 1..=5 {
            tally.statuses.add(100 * status, u64::from(status) * scale);
        }
        tally.background.idle = IdleStats { connections: scale, open: scale, closed: 1, failed: 2 };
        tally.background.slow = SlowStats { connections: 1, replies: 2, bytes: scale, failed: 3 };
        tally.latency_us.record(scale * 1000).unwrap();
        tally.rate.record(scale * 10).unwrap();
        tally.lateness_us.record(scale).unwrap();
        tally
    }

    #[test]
    fn everything_is_added() {
        let mut sum = tally(1);
        sum.add(&tally(10));
        assert_eq!((sum.replies, sum.bytes, sum.unsent), (11, 22, 33));
        assert_eq!(sum.statuses.classes(), [0, 11, 22, 33, 44, 55]);
        assert_eq!(sum.errors.named().map(|(_, n)| n), [11, 22, 33, 44, 55, 66, 77, 88, 99]);
        let idle = IdleStats { connections: 11, open: 11, closed: 2, failed: 4 };
        let slow = SlowStats { connections: 2, replies: 4, bytes: 11, failed: 6 };
        assert_eq!(sum.background, BackgroundStats { idle, slow });
        let histograms = [&sum.latency_us, &sum.rate, &sum.lateness_us];
        assert_eq!(histograms.map(|h| (h.len(), h.min())), [(2, 1000), (2, 10), (2, 1)]);
    }

    #[test]
    fn failures_are_errors_and_bad_statuses() {
        assert_eq!(tally(1).failures(), 45 + 4 + 5);
    }
}
