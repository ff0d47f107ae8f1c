//! The charts of a report. The page and the charts' own files share their drawing.

mod chart;
mod distribution;
mod effects;
mod flame;
mod flame_panel;
mod plot;
mod scale;
mod scaling;

use std::path::Path;

pub(crate) use chart::{ReportChart, STYLE};
use effects::ShownEffect;
pub(crate) use flame::{FlameChart, STYLE as FLAME_STYLE};
pub(crate) use flame_panel::FlameSide;
use statistics::Interval;

use crate::effect::{effect, ratio};
use crate::factorial::{self, FactorialEffect};
use crate::figures::{CPU, RATE, StudyMeasure};
use crate::record::{StudyRecord, Subject};

/// Every chart of a report.
pub(crate) fn all(record: &StudyRecord) -> Vec<ReportChart> {
    let programs = (0..record.programs.len()).flat_map(|program| of_program(record, program));
    programs.chain(side_by_side(record)).collect()
}

/// The charts of one program.
pub(super) fn of_program(record: &StudyRecord, program: usize) -> Vec<ReportChart> {
    let section = section(record, program);
    let file = |key: &str| file(record, &section, key);
    let effects = |measure: StudyMeasure| {
        let shown = |row: usize| {
            let subject = Subject { program, row };
            let ratio = effect(record, subject, measure).filter(|_| record.has(subject))?;
            Some(ShownEffect { name: record.study.label(row), ratio })
        };
        (0..record.rows().len()).filter_map(shown).collect::<Vec<_>>()
    };
    let first = record.rows().first().map_or("", |row| row.name.as_str());
    let caption = |what: &str| format!("{what}, compared with \"{first}\" (95 % intervals)");
    let ranked = factors(record, program, [file("factors-rate"), file("factors-cpu")]);
    let charts = ranked.into_iter().flatten().chain(rate_and_cpu(
        [file("rate"), file("cpu")],
        caption,
        [effects(RATE), effects(CPU)],
    ));
    let charts = charts
        .chain(scaling::chart(file("scaling"), record, program))
        .chain(distribution::chart(file("latency"), record, program));
    charts.filter(|chart| !chart.is_empty()).collect()
}

/// The factors of a factorial study, ranked.
fn factors(record: &StudyRecord, program: usize, files: [String; 2]) -> Option<[ReportChart; 2]> {
    if record.study.factorial.is_empty() {
        return None;
    }
    let effects = factorial::effects(record, program);
    let of = |ratio: fn(&FactorialEffect) -> Option<Interval>| {
        let shown = |effect: &FactorialEffect| ShownEffect {
            name: effect.name.clone(),
            ratio: ratio(effect),
        };
        effects.iter().map(shown).collect::<Vec<_>>()
    };
    let caption = |what: &str| {
        format!("{what}: each factor on average over the others, and two beyond both (ranked)")
    };
    Some(rate_and_cpu(files, caption, [of(|effect| effect.rate), of(|effect| effect.cpu)]))
}

/// The first program compared with the second.
pub(super) fn side_by_side(record: &StudyRecord) -> Vec<ReportChart> {
    let [own, other] = &record.programs[..] else { return Vec::new() };
    let effects = |measure: StudyMeasure| {
        let effect = |(row, of): (usize, &crate::study::StudyRow)| {
            let [own, other] = [0, 1].map(|program| Subject { program, row });
            let ratio = ratio(record, own, other, measure);
            let has_both = record.has(own) && record.has(other);
            has_both.then(|| ShownEffect { name: of.name.clone(), ratio })
        };
        record.rows().iter().enumerate().filter_map(effect).collect::<Vec<_>>()
    };
    let caption = |what: &str| {
        format!("{what} of {}, compared with {} (95 % intervals)", own.name, other.name)
    };
    let files = ["rate", "cpu"].map(|key| file(record, "side-by-side", key));
    let charts = rate_and_cpu(files, caption, [effects(RATE), effects(CPU)]);
    charts.into_iter().filter(|chart| !chart.is_empty()).collect()
}

/// The charts of effects on both figures: more requests per second are better, more CPU time is
/// worse.
fn rate_and_cpu(
    [rate_file, cpu_file]: [String; 2],
    caption: impl Fn(&str) -> String,
    [rate, cpu]: [Vec<ShownEffect>; 2],
) -> [ReportChart; 2] {
    [
        effects::chart(rate_file, caption("Requests per second"), &rate, true),
        effects::chart(cpu_file, caption("CPU time per request"), &cpu, false),
    ]
}

/// The file's name, `STUDY-SECTION-KEY.svg`: charts of several studies can share a folder.
pub(super) fn file(record: &StudyRecord, section: &str, key: &str) -> String {
    let study = Path::new(&record.name).file_stem().unwrap_or_default();
    format!("{}-{section}-{key}.svg", plain(&study.to_string_lossy()))
}

/// A program's part of file names. The names of two builds may differ in special characters only.
pub(super) fn section(record: &StudyRecord, program: usize) -> String {
    let names: Vec<String> = record.programs.iter().map(|of| plain(&of.name)).collect();
    let name = &names[program];
    if names[..program].contains(name) { format!("{name}-{program}") } else { name.clone() }
}

/// A name without characters that a link would have to escape.
fn plain(name: &str) -> String {
    let words = name.split(|sign: char| !sign.is_ascii_alphanumeric());
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{add_program, record};

    fn files(record: &StudyRecord) -> Vec<String> {
        all(record).into_iter().map(|chart| chart.file).collect()
    }

    #[test]
    fn each_chart_has_a_file_of_its_own() {
        let mut record = record(8);
        record.name = "my/own study.toml".to_owned();
        add_program(&mut record, "/a-weir");
        record.programs[0].name = "/a/weir".to_owned();
        let of = |section: &str, keys: &[&str]| {
            let name = |key: &&str| format!("own-study-{section}-{key}.svg");
            keys.iter().map(name).collect::<Vec<_>>()
        };
        let program = ["rate", "cpu", "latency"];
        let expected =
            [of("a-weir", &program), of("a-weir-1", &program), of("side-by-side", &program[..2])];
        assert_eq!(files(&record), expected.concat());
    }

    #[test]
    fn a_chart_without_rows_is_left_out() {
        let mut record = record(8);
        record.study.rows.truncate(1);
        record.turns.retain(|turn| turn.row == 0);
        assert_eq!(files(&record), ["study-weir-latency.svg"]);
    }
}
