//! The effects of rows on quantiles of latency, with intervals.
//!
//! The bootstrap draws blocks, with replacement. Of each draw, the turns of both rows in these
//! blocks are pooled, and the ratio of their quantiles is taken; the middle 95 % of the ratios are
//! the interval. Whatever the machine did in a block meets both rows of a ratio.

use std::collections::BTreeMap;

use statistics::{Interval, interval_of_samples, resampled, t_95};

use super::{PooledLatencies, blocks, pooled};
use crate::record::{StudyRecord, Subject};
use crate::study::BLOCKS_MIN;

/// A quantile of latency.
#[derive(Clone, Copy)]
pub(crate) struct LatencyQuantile {
    pub(crate) name: &'static str,
    pub(crate) share: f64,
}

/// The quantiles in reports.
pub(crate) const QUANTILES: [LatencyQuantile; 5] = [
    LatencyQuantile { name: "p50", share: 0.5 },
    LatencyQuantile { name: "p90", share: 0.9 },
    LatencyQuantile { name: "p99", share: 0.99 },
    LatencyQuantile { name: "p99.9", share: 0.999 },
    LatencyQuantile { name: "p99.99", share: 0.9999 },
];

/// The number of draws.
const DRAWS: usize = 2000;
/// The seed of the draws; fixed, so that reports of the same data are the same.
const SEED: u64 = 1;

/// A quantile with fewer requests beyond it is not shown.
pub(crate) const BEYOND_MIN: f64 = 20.0;

/// The latencies of several subjects, with the bootstrap of their quantiles. All subjects have the
/// same draws of blocks.
pub(crate) struct LatencyEffects {
    blocks: usize,
    subjects: BTreeMap<(usize, usize), SubjectLatencies>,
}

/// Why there is no quantile, or no effect on one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnknownLatency {
    /// The record has no latencies of the subject.
    NotKept,
    /// So many requests are beyond the quantile.
    FewRequests(u64),
    FewTurns,
}

struct SubjectLatencies {
    pooled: PooledLatencies,
    levels: [f64; QUANTILES.len()],
    draws: Vec<[f64; QUANTILES.len()]>,
}

impl LatencyEffects {
    pub(crate) fn of(record: &StudyRecord, subjects: &[Subject]) -> Self {
        Self::drawn(record, subjects, DRAWS)
    }

    pub(super) fn drawn(record: &StudyRecord, subjects: &[Subject], draws: usize) -> Self {
        let blocks = blocks(record).len();
        let draws: Vec<Vec<f64>> =
            resampled(blocks, draws, SEED).map(|places| weights(blocks, &places)).collect();
        let own = |subject: &Subject| {
            let latencies = SubjectLatencies::of(pooled(record, *subject)?, &draws);
            Some(((subject.program, subject.row), latencies))
        };
        Self { blocks, subjects: subjects.iter().filter_map(own).collect() }
    }

    /// Whether no subject has latencies.
    pub(crate) fn is_empty(&self) -> bool {
        self.subjects.is_empty()
    }

    /// The latency in microseconds at a quantile of [`QUANTILES`].
    pub(crate) fn level(&self, subject: Subject, quantile: usize) -> Result<f64, UnknownLatency> {
        Ok(self.subject(subject, quantile)?.levels[quantile])
    }

    /// The ratio of one subject's quantile to another's.
    pub(crate) fn ratio(
        &self,
        subject: Subject,
        to: Subject,
        quantile: usize,
    ) -> Result<Interval, UnknownLatency> {
        let (own, other) = (self.subject(subject, quantile)?, self.subject(to, quantile)?);
        // A disturbance of a few turns that happen to be those of one row would pass for an effect.
        let share = QUANTILES[quantile].share;
        if [own, other].iter().any(|of| of.pooled.turns_at(share) < BLOCKS_MIN) {
            return Err(UnknownLatency::FewTurns);
        }
        let pairs = own.draws.iter().zip(&other.draws);
        // A draw may have no requests, if there were none in some turns.
        let ratios = pairs.map(|(own, other)| own[quantile] / other[quantile]);
        let ratios: Vec<f64> = ratios.filter(|ratio| ratio.is_finite()).collect();
        let value = own.levels[quantile] / other.levels[quantile];
        Ok(interval(value, ratios, self.blocks))
    }

    fn subject(
        &self,
        subject: Subject,
        quantile: usize,
    ) -> Result<&SubjectLatencies, UnknownLatency> {
        let found = self.subjects.get(&(subject.program, subject.row));
        let found = found.ok_or(UnknownLatency::NotKept)?;
        let beyond = found.pooled.requests() * (1.0 - QUANTILES[quantile].share);
        match beyond + 1e-6 < BEYOND_MIN {
            true => Err(UnknownLatency::FewRequests(beyond as u64)),
            false => Ok(found),
        }
    }
}

impl SubjectLatencies {
    fn of(pooled: PooledLatencies, draws: &[Vec<f64>]) -> Self {
        let at = |weights: &[f64]| QUANTILES.map(|of| pooled.quantile(of.share, weights));
        let levels = at(&pooled.once());
        let draws = draws.iter().map(|weights| at(weights)).collect();
        Self { levels, draws, pooled }
    }
}

/// The interval of a ratio, made of those of all draws. For few blocks, the middle of the draws
/// alone is too narrow in 7 of 100 studies, so it also includes Student's interval of the
/// logarithms.
fn interval(value: f64, draws: Vec<f64>, blocks: usize) -> Interval {
    let logs: Vec<f64> = draws.iter().map(|ratio| ratio.ln()).collect();
    let mean = logs.iter().sum::<f64>() / logs.len() as f64;
    let squares: f64 = logs.iter().map(|log| (log - mean).powi(2)).sum();
    let freedom = blocks as f64 - 1.0;
    // The variance of bootstrap samples is that much too small.
    let variance = squares / logs.len() as f64 * blocks as f64 / freedom;
    let margin = (t_95(freedom) * variance.sqrt()).exp();
    let Interval { low, high, .. } = interval_of_samples(value, draws, blocks);
    Interval { value, low: low.min(value / margin), high: high.max(value * margin) }
}

/// How often each block was drawn.
fn weights(blocks: usize, places: &[usize]) -> Vec<f64> {
    let mut weights = vec![0.0; blocks];
    places.iter().for_each(|place| weights[*place] += 1.0);
    weights
}
