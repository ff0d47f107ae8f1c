//! The Universal Scalability Law of a series, with intervals from bootstrap samples of its blocks.

use statistics::{Interval, ScalingLaw, interval_of_samples, median, resampled};

use super::ScalingSeries;
use crate::figures::RATE;
use crate::record::StudyRecord;
use crate::study::BLOCKS_MIN;

/// The numbers that a fit needs without coherence, and with it.
const NUMBERS_MIN: usize = 2 + 1;
const NUMBERS_OF_COHERENCE: usize = NUMBERS_MIN + 1;

/// How far beyond the largest number the law is trusted.
const BEYOND: f64 = 2.0;

/// The law does not hold if it misses a measured rate by more than this share.
const MISS_MAX: f64 = 0.1;

const SAMPLES: usize = 1000;
const SEED: u64 = 1;

/// Points of the drawn curve, on both sides of the largest number.
const POINTS: usize = 30;

/// The fit of a series, or the reason why it has none.
pub(crate) enum SeriesFit {
    /// The reason.
    None(String),
    Fit(Box<CapacityFit>),
}

/// A fitted law.
pub(crate) struct CapacityFit {
    /// The measured numbers and rates.
    pub(crate) measured: Vec<(f64, Interval)>,
    pub(crate) first: Interval,
    pub(crate) contention: Interval,
    /// `None` if there were too few numbers to tell it from contention.
    pub(crate) coherence: Option<Interval>,
    /// Where the rate is highest, at most [`Self::end`]; its interval may end there too.
    pub(crate) peak: Interval,
    /// The highest rate up to [`Self::end`].
    pub(crate) highest: Interval,
    /// Numbers and rates of the law up to [`Self::end`].
    pub(crate) curve: Vec<(f64, Interval)>,
    /// The largest deviation of a measured rate from the law, as a share.
    pub(crate) miss: f64,
}

impl SeriesFit {
    pub(crate) fn of(record: &StudyRecord, series: &ScalingSeries) -> Self {
        let factor = record.study.scaling.as_deref().unwrap_or_default();
        let count = series.rows.len();
        if count < NUMBERS_MIN {
            return Self::None(format!(
                "{count} numbers of {factor}: a fit needs {NUMBERS_MIN}, and \
                 {NUMBERS_OF_COHERENCE} to see coherence"
            ));
        }
        let blocks = ScalingBlocks::of(record, series);
        if blocks.0.len() < BLOCKS_MIN {
            return Self::None("too few turns".to_owned());
        }
        let numbers: Vec<f64> = series.rows.iter().map(|of| f64::from(of.0)).collect();
        match CapacityFit::of(&numbers, &blocks) {
            Some(fit) => Self::Fit(Box::new(fit)),
            None => Self::None("too few turns".to_owned()),
        }
    }
}

impl CapacityFit {
    fn of(numbers: &[f64], blocks: &ScalingBlocks) -> Option<Self> {
        let terms = if numbers.len() < NUMBERS_OF_COHERENCE { 2 } else { 3 };
        let count = blocks.0.len();
        let law_of = |rates: &[f64]| {
            let points: Vec<(f64, f64)> =
                numbers.iter().copied().zip(rates.iter().copied()).collect();
            ScalingLaw::fit(&points, terms)
        };
        let rates = blocks.rates(&(0..count).collect::<Vec<_>>());
        let law = law_of(&rates)?;
        let samples: Vec<(Vec<f64>, ScalingLaw)> = resampled(count, SAMPLES, SEED)
            .map(|sample| blocks.rates(&sample))
            .filter_map(|rates| {
                let law = law_of(&rates)?;
                Some((rates, law))
            })
            .collect();
        let interval = |of: &dyn Fn(ScalingLaw) -> f64| {
            let all = samples.iter().map(|sample| of(sample.1)).collect();
            interval_of_samples(of(law), all, count)
        };
        let measured = numbers.iter().zip(&rates).enumerate().map(|(at, (number, rate))| {
            let all = samples.iter().map(|sample| sample.0[at]).collect();
            (*number, interval_of_samples(*rate, all, count))
        });
        let largest = numbers.last().copied()?;
        let end = largest * BEYOND;
        let peak = |law: ScalingLaw| law.peak().min(end);
        let curve = places(*numbers.first()?, largest).chain(places(largest, end));
        let curve = curve.map(|number| (number, interval(&|law| law.rate(number))));
        let miss = |(number, rate): (&f64, &f64)| (rate / law.rate(*number) - 1.0).abs();
        Some(Self {
            measured: measured.collect(),
            first: interval(&|law| law.first),
            contention: interval(&|law| law.contention),
            coherence: (terms == 3).then(|| interval(&|law| law.coherence)),
            peak: interval(&peak),
            highest: interval(&|law| law.rate(peak(law))),
            curve: curve.collect(),
            miss: numbers.iter().zip(&rates).map(miss).fold(0.0, f64::max),
        })
    }

    /// The largest number that was measured.
    pub(crate) fn largest(&self) -> f64 {
        self.measured.last().map_or(0.0, |of| of.0)
    }

    /// The number up to which the law is trusted.
    pub(crate) fn end(&self) -> f64 {
        self.largest() * BEYOND
    }

    /// Whether the measured rates follow the law.
    pub(crate) fn fits(&self) -> bool {
        self.miss <= MISS_MAX
    }

    /// Whether the peak is known: not beyond what the law may say, and of rates that follow it.
    pub(crate) fn has_peak(&self) -> bool {
        self.fits() && self.coherence.is_some() && self.peak.value < self.end()
    }
}

/// Numbers at equal ratios.
fn places(first: f64, end: f64) -> impl Iterator<Item = f64> {
    let share = |at: usize| at as f64 / (POINTS - 1) as f64;
    (0..POINTS).map(move |at| first * (end / first).powf(share(at)))
}

/// The logarithms of the rates of each block with turns of all rows: the mean of the block, and the
/// distance of each row from it.
struct ScalingBlocks(Vec<LogRates>);

type LogRates = (f64, Vec<f64>);

impl ScalingBlocks {
    fn of(record: &StudyRecord, series: &ScalingSeries) -> Self {
        let rows = series.rows.iter().map(|of| record.turns_of(series.program, of.1));
        let rows: Vec<_> = rows.collect();
        let of_block = |block: usize| {
            let rates = rows.iter().map(|turns| Some((RATE.of)(&turns.get(&block)?.measured).ln()));
            let rates: Vec<f64> = rates.collect::<Option<_>>()?;
            let mean = rates.iter().sum::<f64>() / rates.len() as f64;
            // A turn without a reply has no logarithm.
            mean.is_finite().then(|| (mean, rates.iter().map(|rate| rate - mean).collect()))
        };
        Self((0..record.blocks).filter_map(of_block).collect())
    }

    /// The median rate of each row over a sample of blocks. The machine's drift from block to block
    /// is in the blocks' means, so that it does not bend the curve.
    fn rates(&self, sample: &[usize]) -> Vec<f64> {
        let of_sample = |of: &dyn Fn(&LogRates) -> f64| {
            median(&sample.iter().map(|block| of(&self.0[*block])).collect::<Vec<_>>())
        };
        let mean = of_sample(&|block| block.0);
        let rows = self.0.first().map_or(0, |block| block.1.len());
        (0..rows).map(|row| (mean + of_sample(&|block| block.1[row])).exp()).collect()
    }
}

#[cfg(test)]
mod tests;
