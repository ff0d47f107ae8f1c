//! Quantiles of latency as tables.

use statistics::Interval;

use crate::distribution::{LatencyEffects, QUANTILES, UnknownLatency};
use crate::effect::{self, EffectVerdict};
use crate::record::{StudyRecord, Subject};

/// The line about these tables, if the record has latencies.
pub(super) fn explanation(record: &StudyRecord) -> Option<String> {
    let has_any = record.turns.iter().any(|turn| !turn.measured.latencies.is_empty());
    has_any.then(|| {
        "latency: of all requests of all turns together; changes in parentheses may be chance"
            .to_owned()
    })
}

/// The quantiles of each row of a program, and below them their changes compared with the row's
/// baseline; `None` if the record has no latencies.
pub(super) fn of_program(record: &StudyRecord, program: usize) -> Option<Vec<Vec<String>>> {
    let own = record.subjects().filter(|subject| subject.program == program);
    let own: Vec<Subject> = own.collect();
    let effects = LatencyEffects::of(record, &own);
    if effects.is_empty() {
        return None;
    }
    let head = std::iter::once("latency").chain(QUANTILES.iter().map(|quantile| quantile.name));
    let mut cells = vec![head.map(str::to_owned).collect::<Vec<_>>()];
    for subject in own {
        let level = |quantile| effects.level(subject, quantile).map_or_else(unknown, duration);
        cells.push(line(record.study.label(subject.row), level));
        let to = Subject { row: record.study.baseline_of(subject.row), ..subject };
        if to != subject {
            // Where the line above says why there is no quantile, nothing is left to say.
            cells.push(line(String::new(), |at| match effects.level(subject, at) {
                Ok(_) => effects.ratio(subject, to, at).map_or_else(unknown, change),
                Err(_) => String::new(),
            }));
        }
    }
    Some(cells)
}

fn line(name: String, cell: impl Fn(usize) -> String) -> Vec<String> {
    std::iter::once(name).chain((0..QUANTILES.len()).map(cell)).collect()
}

fn unknown(why: UnknownLatency) -> String {
    match why {
        UnknownLatency::NotKept => "not kept".to_owned(),
        UnknownLatency::FewRequests(count) => format!("too few requests ({count})"),
        UnknownLatency::FewTurns => "too few turns".to_owned(),
    }
}

/// A change in little room: `+12.3 % [+10.1 +14.0]`, and in parentheses if there may be none.
fn change(ratio: Interval) -> String {
    match EffectVerdict::of(ratio) {
        EffectVerdict::Effect => effect::estimate(ratio),
        EffectVerdict::NoneAbove(_) | EffectVerdict::Inconclusive => {
            format!("({})", effect::estimate(ratio))
        }
    }
}

/// The quantiles by which programs are compared, as places in [`QUANTILES`].
pub(super) const COMPARED: [usize; 3] = [0, 2, 3];

/// The change of a quantile, told with its verdict.
pub(super) fn told(effects: &LatencyEffects, own: Subject, to: Subject, quantile: usize) -> String {
    effects.ratio(own, to, quantile).map_or_else(unknown, |ratio| effect::told(Some(ratio)))
}

/// Microseconds as a time with three significant digits.
pub(super) fn duration(us: f64) -> String {
    let (value, unit) = match us {
        _ if us < 1e3 => (us, "us"),
        _ if us < 1e6 => (us / 1e3, "ms"),
        _ => (us / 1e6, "s"),
    };
    let digits = match value {
        _ if value < 9.995 => 2,
        _ if value < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.digits$} {unit}")
}
