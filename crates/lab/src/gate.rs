//! `--fail-if`: limits of effects, for scripts. A study fails if an effect is surely beyond a
//! limit, and passes if all are surely within it.

use std::fmt::Write as _;

use statistics::Interval;

use crate::effect;
use crate::figures::{StudyColumn, StudyMeasure, column};
use crate::record::{StudyRecord, Subject};

/// A limit of an effect: `rate<-3%`, `p99>10%`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct GateRule {
    /// As it was written.
    text: String,
    /// The figure's name in the columns of a study.
    measure: String,
    /// Whether effects below the limit fail; otherwise those above it.
    is_least: bool,
    /// The limit as a ratio.
    limit: f64,
}

/// The conclusion about one effect, and about all: the worst of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GateVerdict {
    /// The whole interval is within the limit.
    Passes,
    /// The interval includes the limit, or there are too few turns.
    Inconclusive,
    /// The whole interval is beyond the limit.
    Fails,
}

/// The conclusion about one row and one limit.
#[derive(Debug)]
pub(crate) struct GateResult {
    row: String,
    rule: String,
    effect: String,
    pub(crate) verdict: GateVerdict,
}

impl GateRule {
    /// Reads `MEASURE<PERCENT%` or `MEASURE>PERCENT%`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let invalid = || format!("--fail-if {text}: expected a limit such as rate<-3% or p99>10%");
        let at = text.find(['<', '>']).ok_or_else(invalid)?;
        let (measure, rest) = text.split_at(at);
        if measure_of(measure).is_none() {
            return Err(format!("--fail-if {text}: \"{measure}\" is no figure with effects"));
        }
        let percent = rest[1..].strip_suffix('%').ok_or_else(invalid)?;
        let percent: f64 = percent.trim().parse().map_err(|_| invalid())?;
        let limit = 1.0 + percent / 100.0;
        if !limit.is_finite() || limit <= 0.0 {
            return Err(invalid());
        }
        let (text, measure) = (text.to_owned(), measure.to_owned());
        Ok(Self { text, measure, is_least: rest.starts_with('<'), limit })
    }

    fn verdict(&self, effect: Option<Interval>) -> GateVerdict {
        let Some(Interval { low, high, .. }) = effect else { return GateVerdict::Inconclusive };
        let (best, worst) = if self.is_least { (high, low) } else { (low, high) };
        let is_beyond = |end: f64| if self.is_least { end < self.limit } else { end > self.limit };
        match (is_beyond(best), is_beyond(worst)) {
            (true, _) => GateVerdict::Fails,
            (false, true) => GateVerdict::Inconclusive,
            (false, false) => GateVerdict::Passes,
        }
    }
}

fn measure_of(name: &str) -> Option<StudyMeasure> {
    match column(&format!("{name} effect"))? {
        StudyColumn::Effect(measure) => Some(measure),
        _ => None,
    }
}

/// Applies all limits; if the run was interrupted, nothing is certain. Of two programs, the first
/// is compared with the second, row by row, and rows may have limits of their own; of one, each row
/// with its baseline.
pub(crate) fn judge(record: &StudyRecord, rules: &[GateRule]) -> Vec<GateResult> {
    let pair = |own: Subject| match record.programs.len() {
        1 => Some(Subject { row: record.study.baseline_of(own.row), ..own }),
        _ => Some(Subject { program: 1, ..own }).filter(|_| own.program == 0),
    };
    let pairs = record.subjects().filter_map(|own| Some((own, pair(own)?)));
    let pairs: Vec<_> = pairs.filter(|(own, to)| own != to && record.has(*to)).collect();
    let own_rules = |own: Subject| match record.programs.len() {
        1 => Vec::new(),
        _ => {
            let texts = record.rows()[own.row].fail_if.iter();
            texts.filter_map(|text| GateRule::parse(text).ok()).collect()
        }
    };
    let every = rules.iter().flat_map(|rule| pairs.iter().map(|pair| (rule.clone(), *pair)));
    let own = pairs.iter().flat_map(|pair| own_rules(pair.0).into_iter().map(|rule| (rule, *pair)));
    every.chain(own).filter_map(|(rule, pair)| judge_one(record, &rule, pair)).collect()
}

fn judge_one(
    record: &StudyRecord,
    rule: &GateRule,
    (own, to): (Subject, Subject),
) -> Option<GateResult> {
    let effect = effect::ratio(record, own, to, measure_of(&rule.measure)?);
    Some(GateResult {
        row: record.study.label(own.row).to_string(),
        rule: rule.text.clone(),
        effect: effect::told(effect),
        verdict: match record.is_interrupted() {
            true => GateVerdict::Inconclusive,
            false => rule.verdict(effect),
        },
    })
}

/// The results as lines for the terminal.
pub(crate) fn text(results: &[GateResult]) -> String {
    let mut out = String::new();
    for GateResult { row, rule, effect, verdict } in results {
        let verdict = match verdict {
            GateVerdict::Passes => "passes",
            GateVerdict::Inconclusive => "inconclusive",
            GateVerdict::Fails => "FAILS",
        };
        let _ = writeln!(out, "{verdict}: {row}: {effect} (limit: {rule})");
    }
    out
}

/// The results as a JUnit file, which CI systems show.
pub(crate) fn junit(study: &str, results: &[GateResult]) -> String {
    let count = |verdict| results.iter().filter(|result| result.verdict == verdict).count();
    let mut out = format!(
        "<testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" skipped=\"{}\">\n",
        escaped(study),
        results.len(),
        count(GateVerdict::Fails),
        count(GateVerdict::Inconclusive)
    );
    for result in results {
        let (row, rule) = (escaped(&result.row), escaped(&result.rule));
        let effect = escaped(&result.effect);
        let _ = writeln!(out, "  <testcase classname=\"{row}\" name=\"{rule}\">");
        let _ = match result.verdict {
            GateVerdict::Fails => writeln!(out, "    <failure message=\"{effect}\"/>"),
            GateVerdict::Inconclusive => writeln!(out, "    <skipped message=\"{effect}\"/>"),
            GateVerdict::Passes => writeln!(out, "    <system-out>{effect}</system-out>"),
        };
        out.push_str("  </testcase>\n");
    }
    out + "</testsuite>\n"
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::record;

    fn verdict(rule: &str, low: f64, high: f64) -> GateVerdict {
        GateRule::parse(rule).unwrap().verdict(Some(Interval { value: low, low, high }))
    }

    #[test]
    fn an_interval_is_within_a_limit_beyond_it_or_neither() {
        for (rule, low, high, expected) in [
            ("rate<-3%", 0.9, 0.96, GateVerdict::Fails),
            ("rate<-3%", 0.96, 0.98, GateVerdict::Inconclusive),
            ("rate<-3%", 0.97, 1.2, GateVerdict::Passes),
            ("p99>+10%", 1.11, 1.3, GateVerdict::Fails),
            ("p99>10%", 1.0, 1.2, GateVerdict::Inconclusive),
            ("cpu>0.5%", 0.9, 1.004, GateVerdict::Passes),
        ] {
            assert_eq!(verdict(rule, low, high), expected, "{rule} [{low} {high}]");
        }
        let rule = GateRule::parse("rate<0%").unwrap();
        assert_eq!(rule.verdict(None), GateVerdict::Inconclusive, "too few turns");
    }

    #[test]
    fn an_interrupted_run_decides_nothing() {
        let mut study = record(8);
        study.blocks = 9;
        let results = judge(&study, &[GateRule::parse("rate<-3%").unwrap()]);
        assert!(text(&results).starts_with("inconclusive: two: +0.0 %"), "{results:?}");
    }

    #[test]
    fn limits_that_mean_nothing_are_refused() {
        for (rule, message) in [
            ("rate", "expected a limit"),
            ("rate<3", "expected a limit"),
            ("rate<x%", "expected a limit"),
            ("rate<-100%", "expected a limit"),
            ("errors>1%", "\"errors\" is no figure with effects"),
            ("speed<1%", "\"speed\" is no figure with effects"),
        ] {
            let error = GateRule::parse(rule).err().unwrap_or_default();
            assert!(error.contains(message), "{rule}: {error}");
        }
    }

    #[test]
    fn a_rows_own_limit_compares_two_programs() {
        let mut study = record(8);
        study.study.rows[1].fail_if = vec!["rate<-3%".to_owned()];
        assert_eq!(text(&judge(&study, &[])), "");
        study.programs.push(study.programs[0].clone());
        let others = study.turns.clone().into_iter().map(|mut turn| {
            turn.program = 1;
            turn.measured.rate *= 2.0;
            turn
        });
        study.turns.extend(others.collect::<Vec<_>>());
        let told = text(&judge(&study, &[]));
        assert_eq!(told, "FAILS: two: -50.0 % [-50.0 -50.0] (limit: rate<-3%)\n");
    }

    #[test]
    fn rows_are_compared_with_their_baselines() {
        let rules = [GateRule::parse("rate<-3%").unwrap()];
        let mut study = record(8);
        for turn in study.turns.iter_mut().filter(|turn| turn.row == 1) {
            turn.measured.rate /= 2.0;
        }
        let results = judge(&study, &rules);
        assert_eq!(text(&results), "FAILS: two: -50.0 % [-50.0 -50.0] (limit: rate<-3%)\n");
        let junit = junit("a<b", &results);
        assert!(junit.starts_with("<testsuite name=\"a&lt;b\" tests=\"1\" failures=\"1\" "));
        assert!(junit.contains("<failure message=\"-50.0 % [-50.0 -50.0]\"/>"), "{junit}");
    }
}
