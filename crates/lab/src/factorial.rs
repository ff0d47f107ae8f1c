//! The effects of a factorial study: the mean effect of each factor over the levels of the others,
//! and the interaction of each two factors.

use std::collections::BTreeMap;

use statistics::Interval;

use crate::effect::interval;
use crate::figures::{CPU, RATE, StudyMeasure};
use crate::record::StudyRecord;

/// A level of a factor, or a combination of levels of two factors.
pub(crate) struct FactorialEffect {
    pub(crate) name: String,
    /// The ratio to the factor's baseline; for two factors, the ratio to the product of both
    /// effects.
    pub(crate) rate: Option<Interval>,
    pub(crate) cpu: Option<Interval>,
}

/// Rows whose logarithms are added (1) or subtracted (-1), and the number of such sums.
struct Contrast {
    name: String,
    signs: Vec<(usize, f64)>,
    count: usize,
}

/// All effects; detected ones first, the largest first.
pub(crate) fn effects(record: &StudyRecord, program: usize) -> Vec<FactorialEffect> {
    let contrasts = contrasts(record);
    let mut effects: Vec<FactorialEffect> = contrasts
        .into_iter()
        .map(|contrast| FactorialEffect {
            rate: told(record, program, &contrast, RATE),
            cpu: told(record, program, &contrast, CPU),
            name: contrast.name,
        })
        .collect();
    effects.sort_by(|a, b| weight(b).total_cmp(&weight(a)));
    effects
}

/// The size of the largest detected effect; zero without one.
fn weight(effect: &FactorialEffect) -> f64 {
    let seen = [effect.rate, effect.cpu].into_iter().flatten();
    let seen = seen.filter(|interval| interval.excludes(1.0));
    seen.map(|interval| interval.value.ln().abs()).fold(0.0, f64::max)
}

/// The levels of a row, in the order of the study's factors.
type Combination<'r> = Vec<&'r str>;

fn contrasts(record: &StudyRecord) -> Vec<Contrast> {
    let study = &record.study;
    let levels = |row| {
        let levels = study.levels(row);
        study.factorial.iter().map(|name| levels[name.as_str()]).collect::<Combination<'_>>()
    };
    let rows: BTreeMap<Combination<'_>, usize> =
        study.rows.iter().enumerate().map(|(place, row)| (levels(row), place)).collect();
    let others: Vec<(usize, &str)> = study
        .factorial
        .iter()
        .enumerate()
        .flat_map(|(at, name)| study.factors[name].levels.iter().map(move |level| (at, &**level)))
        .collect();
    let mut contrasts: Vec<Contrast> =
        others.iter().map(|one| contrast(study, &rows, &[*one])).collect();
    for (at, first) in others.iter().enumerate() {
        for second in others[at + 1..].iter().filter(|second| second.0 != first.0) {
            contrasts.push(contrast(study, &rows, &[*first, *second]));
        }
    }
    contrasts
}

/// For every row that has none of the changes: the row with all of them, minus the rows with one,
/// plus the row itself if there are two changes.
fn contrast(
    study: &crate::study::Study,
    rows: &BTreeMap<Combination<'_>, usize>,
    changes: &[(usize, &str)],
) -> Contrast {
    let baseline = |at: usize| study.factors[&study.factorial[at]].baseline.as_str();
    let plain = rows.keys().filter(|row| changes.iter().all(|(at, _)| row[*at] == baseline(*at)));
    let (mut signs, mut count) = (Vec::new(), 0);
    for row in plain {
        count += 1;
        for subset in 0..1_usize << changes.len() {
            let mut changed = row.clone();
            let chosen = changes.iter().enumerate().filter(|(bit, _)| subset >> bit & 1 == 1);
            chosen.for_each(|(_, (at, level))| changed[*at] = level);
            let is_odd = (changes.len() - subset.count_ones() as usize) % 2 == 1;
            let sign = if is_odd { -1.0 } else { 1.0 };
            signs.extend(rows.get(&changed).map(|place| (*place, sign)));
        }
    }
    let name = |(at, level): &(usize, &str)| format!("{} {level}", study.factorial[*at]);
    let name = changes.iter().map(name).collect::<Vec<_>>().join(" \u{d7} ");
    Contrast { name, signs, count }
}

/// The median over the blocks of a contrast's ratio, with its interval.
fn told(
    record: &StudyRecord,
    program: usize,
    contrast: &Contrast,
    measure: StudyMeasure,
) -> Option<Interval> {
    let turns: Vec<_> = (0..record.rows().len()).map(|row| record.turns_of(program, row)).collect();
    let of_block = |block: usize| {
        let mut sum = 0.0;
        for (row, sign) in &contrast.signs {
            sum += sign * (measure.of)(&turns[*row].get(&block)?.measured).ln();
        }
        let ratio = (sum / contrast.count.max(1) as f64).exp();
        (ratio.is_finite() && ratio > 0.0).then_some(ratio)
    };
    let ratios: Vec<f64> = (0..record.blocks).filter_map(of_block).collect();
    interval(record, &ratios)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::MeasuredRun;
    use crate::record::TurnRecord;
    use crate::study::Study;

    const STUDY: &str = r#"
title = "t"
explanation = "e"
template = "%%a%% %%b%% %%listen%%"
factorial = ["a", "b"]
[load]
connections = 1
[factor.a]
baseline = "off"
levels = ["on"]
[factor.b]
baseline = "1"
levels = ["2", "3"]
"#;

    /// Eight blocks: `a` doubles the time, `b 2` triples it, `b 3` does not change it, and `a` with
    /// `b 2` multiplies it by another 5.
    fn record() -> StudyRecord {
        let mut record = crate::testing::record(8);
        record.study = Study::parse("s", STUDY).expect("a study");
        let turn = |block: usize, row: usize| {
            let levels = record.study.levels(&record.study.rows[row]);
            let (a, b) = (levels["a"] == "on", levels["b"] == "2");
            let factors = [(a, 2.0), (b, 3.0), (a && b, 5.0)];
            let cpu_us: f64 = factors.iter().filter(|of| of.0).map(|of| of.1).product();
            let drift = 1.0 + block as f64 / 10.0;
            let measured =
                MeasuredRun { cpu_us: cpu_us * drift, rate: 9.0, ..MeasuredRun::default() };
            TurnRecord {
                program: 0,
                row,
                block,
                measured,
                marks: Vec::new(),
                repeats: 0,
                all_errors: 0,
            }
        };
        record.turns = (0..8)
            .flat_map(|block| (0..6).map(move |row| (block, row)))
            .map(|(block, row)| turn(block, row))
            .collect();
        record
    }

    #[test]
    fn combinations_are_rows() {
        let names = record().study.rows.iter().map(|row| row.name.clone()).collect::<Vec<_>>();
        assert_eq!(names.len(), 6);
        assert_eq!((&*names[0], &*names[5]), ("a off, b 1", "a on, b 3"));
    }

    #[test]
    fn factors_have_effects_and_interactions() {
        let effects = effects(&record(), 0);
        let names: Vec<&str> = effects.iter().map(|effect| effect.name.as_str()).collect();
        assert_eq!(names[..3], ["b 2", "a on \u{d7} b 2", "a on"]);
        let value = |name: &str| {
            let effect = effects.iter().find(|effect| effect.name == name).expect("a name");
            effect.cpu.expect("an interval").value
        };
        // With and without `a`: the square root of 3 and 3 * 5.
        assert!((value("b 2") - 45.0_f64.sqrt()).abs() < 1e-9);
        assert!((value("a on \u{d7} b 2") - 5.0).abs() < 1e-9);
        assert!((value("a on") - (2.0_f64 * 10.0 * 2.0).cbrt()).abs() < 1e-9);
        assert!((value("b 3") - 1.0).abs() < 1e-9 && (value("a on \u{d7} b 3") - 1.0).abs() < 1e-9);
    }
}
