//! The latencies of many turns together.

use std::collections::BTreeMap;

use super::counts::{LatencyCounts, LatencyRange};

/// The latencies of a subject's turns. Each turn can count several times, or not at all.
pub(crate) struct PooledLatencies {
    ranges: Vec<LatencyRange>,
    turns: usize,
    /// For each range, the requests of each turn up to its end.
    up_to: Vec<f64>,
}

impl PooledLatencies {
    pub(crate) fn of(turns: &[&LatencyCounts]) -> Self {
        let mut counts = BTreeMap::<LatencyRange, Vec<f64>>::new();
        for (turn, latencies) in turns.iter().enumerate() {
            for (range, requests) in latencies.ranges() {
                counts.entry(range).or_insert_with(|| vec![0.0; turns.len()])[turn] += requests;
            }
        }
        let mut sums = vec![0.0; turns.len()];
        let mut up_to = Vec::with_capacity(counts.len() * turns.len());
        for requests in counts.values() {
            sums.iter_mut().zip(requests).for_each(|(sum, requests)| *sum += requests);
            up_to.extend_from_slice(&sums);
        }
        Self { ranges: counts.into_keys().collect(), turns: turns.len(), up_to }
    }

    /// The weights with which every turn counts once.
    pub(crate) fn once(&self) -> Vec<f64> {
        vec![1.0; self.turns]
    }

    /// The number of requests.
    pub(crate) fn requests(&self) -> f64 {
        self.ranges.len().checked_sub(1).map_or(0.0, |last| self.weighed(last, &self.once()))
    }

    /// The latency, in microseconds, that this share of the requests does not exceed. `weights`
    /// says how often each turn counts. NaN if there are no requests.
    ///
    /// Within a range, latencies are taken as evenly distributed: quantiles would otherwise change
    /// in steps, and so would their ratios.
    pub(crate) fn quantile(&self, share: f64, weights: &[f64]) -> f64 {
        let Some(last) = self.ranges.len().checked_sub(1) else { return f64::NAN };
        let place = share * self.weighed(last, weights);
        let at = self.first_up_to(place, weights).min(last);
        let below = if at == 0 { 0.0 } else { self.weighed(at - 1, weights) };
        let own = self.weighed(at, weights) - below;
        let part = if own > 0.0 { ((place - below) / own).clamp(0.0, 1.0) } else { f64::NAN };
        let range = self.ranges[at];
        range.first as f64 + range.width() * part
    }

    /// The number of turns with requests that are as slow as this quantile, or slower.
    pub(crate) fn turns_at(&self, share: f64) -> usize {
        let once = self.once();
        let Some(last) = self.ranges.len().checked_sub(1) else { return 0 };
        let at = self.first_up_to(share * self.weighed(last, &once), &once).min(last);
        let faster = |turn| if at == 0 { 0.0 } else { self.row(at - 1)[turn] };
        (0..self.turns).filter(|turn| self.row(last)[*turn] > faster(*turn)).count()
    }

    /// The first range up to whose end there are so many requests.
    fn first_up_to(&self, requests: f64, weights: &[f64]) -> usize {
        let (mut from, mut to) = (0, self.ranges.len());
        while from < to {
            let middle = from.midpoint(to);
            if self.weighed(middle, weights) < requests { from = middle + 1 } else { to = middle }
        }
        from
    }

    /// The requests up to a range's end.
    fn weighed(&self, range: usize, weights: &[f64]) -> f64 {
        self.row(range).iter().zip(weights).map(|(requests, weight)| requests * weight).sum()
    }

    fn row(&self, range: usize) -> &[f64] {
        &self.up_to[range * self.turns..][..self.turns]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(latencies: &[(u64, u64)]) -> LatencyCounts {
        LatencyCounts::of(latencies.iter().copied())
    }

    #[test]
    fn turns_are_weighed() {
        let turns = [turn(&[(100, 900), (200, 100)]), turn(&[(300, 10)])];
        let pooled = PooledLatencies::of(&turns.each_ref());
        assert_eq!(pooled.requests(), 1010.0);
        let at = |share, weights: [f64; 2]| pooled.quantile(share, &weights);
        assert_eq!(at(0.45, [1.0, 0.0]), 100.5, "the middle of 100 us");
        assert_eq!(at(1.0, [1.0, 0.0]), 201.0);
        assert_eq!((at(0.5, [0.0, 2.0]), at(1.0, [1.0, 1.0])), (301.0, 302.0));
        assert_eq!([0.5, 0.95, 0.995].map(|share| pooled.turns_at(share)), [2, 2, 1]);
    }

    #[test]
    fn no_requests_have_no_quantiles() {
        let turns = [turn(&[]), turn(&[(5, 1)])];
        assert!(PooledLatencies::of(&[]).quantile(0.5, &[]).is_nan());
        let pooled = PooledLatencies::of(&turns.each_ref());
        assert!(pooled.quantile(0.5, &[3.0, 0.0]).is_nan(), "only turns without requests");
        assert_eq!(PooledLatencies::of(&[&turns[0]]).requests(), 0.0);
    }
}
