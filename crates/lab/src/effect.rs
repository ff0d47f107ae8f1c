//! Effects: the median of ratios within blocks, with its interval.

use statistics::{Interval, median, median_interval};

use crate::record::{MeasuredRun, StudyRecord};
use crate::study::Study;

/// A figure of a turn.
#[derive(Clone, Copy)]
pub(crate) struct StudyMeasure {
    /// Its name in the columns of a study.
    pub(crate) key: &'static str,
    /// Its name in tables.
    pub(crate) name: &'static str,
    pub(crate) of: fn(&MeasuredRun) -> f64,
    /// How it is written.
    pub(crate) text: fn(f64) -> String,
}

/// Requests per second.
pub(crate) const RATE: StudyMeasure =
    StudyMeasure { key: "rate", name: "requests/s", of: |run| run.rate, text: whole };
/// CPU time per request.
pub(crate) const CPU: StudyMeasure =
    StudyMeasure { key: "cpu", name: "CPU/request", of: |run| run.cpu_us, text: microseconds };
pub(crate) const P50: StudyMeasure =
    StudyMeasure { key: "p50", name: "p50", of: |run| run.p50_us, text: latency };
pub(crate) const P99: StudyMeasure =
    StudyMeasure { key: "p99", name: "p99", of: |run| run.p99_us, text: latency };
pub(crate) const P999: StudyMeasure =
    StudyMeasure { key: "p999", name: "p99.9", of: |run| run.p999_us, text: latency };
pub(crate) const MAX: StudyMeasure =
    StudyMeasure { key: "max", name: "max", of: |run| run.max_us, text: latency };

/// All of them.
const MEASURES: [StudyMeasure; 19] = [
    RATE,
    CPU,
    StudyMeasure { key: "mean", name: "mean", of: |run| run.mean_us, text: latency },
    P50,
    P99,
    P999,
    MAX,
    StudyMeasure { key: "user", name: "user/request", of: |run| run.user_us, text: microseconds },
    StudyMeasure {
        key: "system",
        name: "system/request",
        of: |run| run.system_us,
        text: microseconds,
    },
    StudyMeasure { key: "busy", name: "%CPU", of: |run| run.busy * 100.0, text: whole },
    StudyMeasure { key: "errors", name: "errors", of: |run| run.errors as f64, text: whole },
    StudyMeasure {
        key: "memory",
        name: "memory",
        of: |run| run.memory_bytes / 1e6,
        text: |megabytes| format!("{megabytes:.1} MB"),
    },
    StudyMeasure {
        key: "switches",
        name: "switches/request",
        of: |run| run.switches,
        text: |switches| format!("{switches:.2}"),
    },
    StudyMeasure { key: "packets-in", name: "packets/s in", of: |run| run.packets_in, text: whole },
    StudyMeasure {
        key: "packets-out",
        name: "packets/s out",
        of: |run| run.packets_out,
        text: whole,
    },
    StudyMeasure { key: "bytes-in", name: "bytes/s in", of: |run| run.bytes_in, text: whole },
    StudyMeasure { key: "bytes-out", name: "bytes/s out", of: |run| run.bytes_out, text: whole },
    StudyMeasure { key: "sockets", name: "sockets", of: |run| run.sockets as f64, text: whole },
    StudyMeasure {
        key: "time-wait",
        name: "TIME_WAIT",
        of: |run| run.time_wait as f64,
        text: whole,
    },
];

/// Those that may be 0.
const COUNTS: [&str; 4] = ["errors", "sockets", "time-wait", "switches"];

/// Columns of a study that names none.
const USUAL: [&str; 6] = ["rate", "rate effect", "cpu", "cpu effect", "p99", "found"];

/// What a column of a table shows.
#[derive(Clone, Copy)]
pub(crate) enum StudyColumn {
    Level(StudyMeasure),
    Effect(StudyMeasure),
    /// What the source has found.
    Found,
}

/// The columns of a study's table.
pub(crate) fn columns(study: &Study) -> Vec<StudyColumn> {
    match &study.columns[..] {
        [] => USUAL.iter().filter_map(|name| column(name)).collect(),
        names => names.iter().filter_map(|name| column(name)).collect(),
    }
}

/// The column of a name: `rate`, `rate effect`, `found`.
pub(crate) fn column(name: &str) -> Option<StudyColumn> {
    let measure = |key: &str| MEASURES.into_iter().find(|measure| measure.key == key);
    match (name, name.strip_suffix(" effect")) {
        ("found", _) => Some(StudyColumn::Found),
        // What may be 0 has no ratio.
        (_, Some(key)) if !COUNTS.contains(&key) => measure(key).map(StudyColumn::Effect),
        (_, Some(_)) => None,
        (key, None) => measure(key).map(StudyColumn::Level),
    }
}

/// The names that may stand in `columns`.
pub(crate) fn column_names() -> String {
    let keys = MEASURES.map(|measure| measure.key).join(", ");
    let counts = COUNTS.join(", ");
    format!("it must be found, or one of {keys}, alone or (not {counts}) with \" effect\"")
}

fn whole(number: f64) -> String {
    format!("{number:.0}")
}

fn microseconds(us: f64) -> String {
    format!("{us:.2} us")
}

fn latency(us: f64) -> String {
    format!("{:.2} ms", us / 1000.0)
}

/// A row of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Subject {
    pub(crate) program: usize,
    pub(crate) row: usize,
}

/// What bootstrap samples are drawn with: reports of the same data are the same.
const SEED: u64 = 1;

/// The median of what a subject's turns have measured.
pub(crate) fn level(record: &StudyRecord, subject: Subject, measure: StudyMeasure) -> f64 {
    let turns = record.turns_of(subject.program, subject.row);
    let values: Vec<f64> = turns.values().map(|turn| (measure.of)(&turn.measured)).collect();
    median(&values)
}

/// The ratio of a subject to another, block by block; `None` of too few blocks.
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
        (ratio.is_finite() && ratio > 0.0).then_some(ratio)
    };
    interval(&own.iter().filter_map(pair).collect::<Vec<_>>())
}

/// The fewest blocks with which an interval can hold in 95 of 100 studies: of fewer, all ratios are
/// too often on one side.
pub(crate) const BLOCKS_MIN: usize = 6;

/// The median of ratios with its interval; `None` of too few.
pub(crate) fn interval(ratios: &[f64]) -> Option<Interval> {
    if ratios.len() < BLOCKS_MIN { None } else { median_interval(ratios, SEED) }
}

/// What a row of a program changes, compared with its baseline; `None` for a row that is one.
pub(crate) fn effect(
    record: &StudyRecord,
    subject: Subject,
    measure: StudyMeasure,
) -> Option<Option<Interval>> {
    let row = record.study.baseline_of(subject.row);
    let to = Subject { row, ..subject };
    (to != subject).then(|| ratio(record, subject, to, measure))
}

/// `+12.3 % [+10.1 +14.0]`, or that nothing was seen.
pub(crate) fn told(ratio: Option<Interval>) -> String {
    let percent = |ratio: f64| (ratio - 1.0) * 100.0;
    match ratio {
        None => "too few turns".to_owned(),
        Some(ratio) => {
            let (low, high) = (percent(ratio.low), percent(ratio.high));
            match ratio.excludes(1.0) {
                true => format!("{:+.1} % [{low:+.1} {high:+.1}]", percent(ratio.value)),
                false => format!("no effect seen [{low:+.1} {high:+.1}]"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use statistics::SplitMix;

    use super::*;
    use crate::testing::record;

    const BASELINE: Subject = Subject { program: 0, row: 0 };
    const ROW: Subject = Subject { program: 0, row: 1 };

    /// A record of 40 blocks whose second row takes `factor` of the CPU time. The machine drifts by
    /// a fifth from block to block, and turns differ by some per cent.
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

    /// How many of 100 studies see an effect on CPU time.
    fn seen(factor: f64) -> usize {
        let sees = |seed: &u64| {
            let effect = ratio(&measured(factor, *seed), ROW, BASELINE, CPU);
            effect.is_some_and(|effect| effect.excludes(1.0))
        };
        (0..100).filter(sees).count()
    }

    #[test]
    fn the_same_twice_has_no_effect() {
        assert!(seen(1.0) <= 5, "{}", seen(1.0));
    }

    #[test]
    fn five_per_cent_are_found() {
        assert!(seen(1.05) >= 90, "{}", seen(1.05));
        assert!(seen(0.95) >= 90, "{}", seen(0.95));
    }

    #[test]
    fn effects_are_told_with_their_intervals() {
        let interval = |value, low, high| Some(Interval { value, low, high });
        assert_eq!(told(interval(1.123, 1.101, 1.14)), "+12.3 % [+10.1 +14.0]");
        assert_eq!(told(interval(0.999, 0.99, 1.01)), "no effect seen [-1.0 +1.0]");
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
