//! Effects: the median of the ratios within blocks, with its confidence interval.

use statistics::{Interval, median, median_interval};

use crate::figures::StudyMeasure;
use crate::record::{StudyRecord, Subject};
use crate::study::BLOCKS_MIN;

/// The seed of the bootstrap samples; fixed, so that reports of the same data are the same.
const SEED: u64 = 1;

/// The median of a figure over a subject's turns.
pub(crate) fn level(record: &StudyRecord, subject: Subject, measure: StudyMeasure) -> f64 {
    let turns = record.turns_of(subject.program, subject.row);
    let values: Vec<f64> = turns.values().map(|turn| (measure.of)(&turn.measured)).collect();
    median(&values)
}

/// The ratio of one subject to another, block by block; `None` if there are too few blocks.
pub(crate) fn ratio(
    record: &StudyRecord,
    subject: Subject,
    to: Subject,
    measure: StudyMeasure,
) -> Option<Interval> {
    let (own, others) =
        (record.turns_of(subject.program, subject.row), record.turns_of(to.program, to.row));
    let pair = |(block, turn): (&usize, &&crate::record::TurnRecord)| {
        let other = others.get(block)?;
        let ratio = (measure.of)(&turn.measured) / (measure.of)(&other.measured);
        // A turn without a reply has a rate of 0, which counts.
        ratio.is_finite().then_some(ratio)
    };
    interval(&own.iter().filter_map(pair).collect::<Vec<_>>())
}

/// The median of ratios with its interval; `None` if there are too few.
pub(crate) fn interval(ratios: &[f64]) -> Option<Interval> {
    if ratios.len() < BLOCKS_MIN { None } else { median_interval(ratios, SEED) }
}

/// The effect of a row compared with its baseline; the outer `None` is for a row that is the
/// baseline.
pub(crate) fn effect(
    record: &StudyRecord,
    subject: Subject,
    measure: StudyMeasure,
) -> Option<Option<Interval>> {
    let row = record.study.baseline_of(subject.row);
    let to = Subject { row, ..subject };
    (to != subject).then(|| ratio(record, subject, to, measure))
}

/// The conclusion from an effect's interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum EffectVerdict {
    /// There is an effect.
    Effect,
    /// An effect is smaller than this many per cent, which is at most [`NONE_MAX`].
    NoneAbove(f64),
    /// There may be an effect, and not a small one.
    Inconclusive,
}

/// The largest effect, in per cent, that the interval of the verdict "none" may include.
const NONE_MAX: f64 = 5.0;

/// An interval that ends this near to a ratio of 1 counts as including it: it would be printed as
/// +0.0 %.
const DIFFERENCE_MIN: f64 = 0.0005;

impl EffectVerdict {
    /// The verdict on an interval of a ratio.
    pub(crate) fn of(ratio: Interval) -> Self {
        let bound = percent(ratio.low).abs().max(percent(ratio.high).abs());
        let nearer = (ratio.low - 1.0).abs().min((ratio.high - 1.0).abs());
        match ratio.excludes(1.0) && nearer >= DIFFERENCE_MIN {
            true => Self::Effect,
            false if bound <= NONE_MAX => Self::NoneAbove(bound),
            false => Self::Inconclusive,
        }
    }
}

fn percent(ratio: f64) -> f64 {
    (ratio - 1.0) * 100.0
}

/// An effect with its interval, and the verdict if it is not "effect": `+12.3 % [+10.1 +14.0]`,
/// `+0.2 % [-0.9 +1.1], none above 1.1 %`, `+3.0 % [-18.7 +40.1], inconclusive`.
pub(crate) fn told(ratio: Option<Interval>) -> String {
    let Some(ratio) = ratio else { return "too few turns".to_owned() };
    let estimate = estimate(ratio);
    match EffectVerdict::of(ratio) {
        EffectVerdict::Effect => estimate,
        EffectVerdict::NoneAbove(bound) => format!("{estimate}, none above {bound:.1} %"),
        EffectVerdict::Inconclusive => format!("{estimate}, inconclusive"),
    }
}

/// An effect with its interval: `+12.3 % [+10.1 +14.0]`.
pub(crate) fn estimate(ratio: Interval) -> String {
    let [value, low, high] = [ratio.value, ratio.low, ratio.high].map(percent);
    format!("{value:+.1} % [{low:+.1} {high:+.1}]")
}

#[cfg(test)]
mod tests {
    use statistics::SplitMix;

    use super::*;
    use crate::figures::CPU;
    use crate::testing::record;

    const BASELINE: Subject = Subject { program: 0, row: 0 };
    const ROW: Subject = Subject { program: 0, row: 1 };

    /// A record of 40 blocks whose second row takes `factor` of the CPU time. The machine's speed
    /// drifts by up to a fifth from block to block, and turns differ by some per cent.
    fn measured(factor: f64, seed: u64) -> StudyRecord {
        let mut random = SplitMix::new(seed);
        let mut record = record(40);
        let mut drift = 1.0;
        for (at, turn) in record.turns.iter_mut().enumerate() {
            if at % 2 == 0 {
                drift = 0.8 + 0.4 * random.unit();
            }
            let noise: f64 = (0..6).map(|_| random.unit() - 0.5).sum::<f64>() * 0.06;
            let own = if turn.row == 1 { factor } else { 1.0 };
            turn.measured.cpu_us = 5.0 * drift * own * (1.0 + noise);
        }
        record
    }

    /// The number of studies, out of 100, that detect an effect on CPU time.
    fn seen(factor: f64) -> usize {
        let sees = |seed: &u64| {
            let effect = ratio(&measured(factor, *seed), ROW, BASELINE, CPU);
            effect.is_some_and(|effect| effect.excludes(1.0))
        };
        (0..100).filter(sees).count()
    }

    #[test]
    fn two_equal_rows_have_no_effect() {
        assert!(seen(1.0) <= 5, "{}", seen(1.0));
    }

    #[test]
    fn five_per_cent_are_detected() {
        assert!(seen(1.05) >= 90, "{}", seen(1.05));
        assert!(seen(0.95) >= 90, "{}", seen(0.95));
    }

    #[test]
    fn effects_are_printed_with_their_intervals() {
        let interval = |value, low, high| Some(Interval { value, low, high });
        assert_eq!(told(interval(1.123, 1.101, 1.14)), "+12.3 % [+10.1 +14.0]");
        let none = told(interval(0.999, 0.99, 1.012));
        assert_eq!(none, "-0.1 % [-1.0 +1.2], none above 1.2 %");
        let almost_none = told(interval(1.006, 1.0003, 1.026));
        assert_eq!(almost_none, "+0.6 % [+0.0 +2.6], none above 2.6 %");
        let unknown = told(interval(1.03, 0.813, 1.401));
        assert_eq!(unknown, "+3.0 % [-18.7 +40.1], inconclusive");
        assert_eq!(told(None), "too few turns");
    }

    #[test]
    fn blocks_without_a_pair_do_not_count() {
        let mut record = measured(1.0, 1);
        record.turns.retain(|turn| turn.row == 0 || turn.block < 2);
        assert_eq!(ratio(&record, ROW, BASELINE, CPU), None);
        assert!(level(&record, ROW, CPU) > 0.0);
    }
}
