//! What the report says about why rows differ: flame graphs, functions, and events per request.

use super::charts::{self, FlameChart, FlameSide};
use crate::effect::level;
use crate::figures::CPU;
use crate::profile::{COUNTED, FunctionCost, ProfileRecord, ProfileScale, differing};
use crate::record::{StudyRecord, Subject};

/// Rows of cells; the first row is the head.
type WhyCells = Vec<Vec<String>>;

/// What is said about one row.
pub(super) struct WhySection<'r> {
    pub(super) title: String,
    /// The comparison with its baseline, with the functions that differ; `None` for a baseline.
    pub(super) difference: Option<(FlameChart<'r>, WhyCells)>,
    pub(super) flame: FlameChart<'r>,
}

/// Every flame graph of a report.
pub(crate) fn charts(record: &StudyRecord) -> Vec<FlameChart<'_>> {
    let programs = 0..record.programs.len();
    let sections = programs.flat_map(|program| sections(record, program));
    let charts = sections.flat_map(|of| {
        let difference = of.difference.map(|(chart, _)| chart);
        difference.into_iter().chain([of.flame])
    });
    charts.collect()
}

/// The rows of a program that have a profile.
pub(super) fn sections(record: &StudyRecord, program: usize) -> Vec<WhySection<'_>> {
    let rows = (0..record.rows().len()).map(|row| Subject { program, row });
    rows.filter_map(|subject| section(record, subject)).collect()
}

fn section(record: &StudyRecord, subject: Subject) -> Option<WhySection<'_>> {
    let own = side(record, subject)?;
    let base = Subject { row: record.study.baseline_of(subject.row), ..subject };
    let base = (base != subject).then(|| side(record, base)).flatten();
    let file = |key: &str| {
        let number = subject.row + 1;
        charts::file(record, &charts::section(record, subject.program), &format!("{key}-{number}"))
    };
    let caption = format!("{}: {FLAME_LEGEND}", own.name);
    let flame = FlameChart::new(file("flame"), caption, own.clone(), None);
    let mut title = format!("Baseline: {}", own.name);
    let difference = base.map(|base| {
        let compared = format!("{}, compared with {}", own.name, base.name);
        title = format!("Why: {compared}");
        let cells = functions(&own, &base);
        let caption = format!("{compared}: {DIFFERENCE_LEGEND}");
        (FlameChart::new(file("difference"), caption, own, Some(base)), cells)
    });
    Some(WhySection { title, difference, flame })
}

const FLAME_LEGEND: &str = "yellow is the program, green a library, grey the kernel";
const DIFFERENCE_LEGEND: &str =
    "orange is more than in the baseline, blue less, grey no sure difference";

fn side(record: &StudyRecord, subject: Subject) -> Option<FlameSide<'_>> {
    let Subject { program, row } = subject;
    let own = |of: &&ProfileRecord| (of.program, of.row) == (program, row) && of.samples() > 0;
    let profile = record.profiles.iter().find(own)?;
    let name = record.rows().get(row)?.name.clone();
    Some(FlameSide { name, profile, cpu_us: level(record, subject, CPU) })
}

fn functions(row: &FlameSide<'_>, baseline: &FlameSide<'_>) -> WhyCells {
    let scaled = |side: &FlameSide<'_>| ProfileScale::of(side.profile, side.cpu_us);
    let (row, baseline) = ((row.profile, scaled(row)), (baseline.profile, scaled(baseline)));
    let head = ["function (its own time per request)", "of", "baseline", "row", "difference"];
    let cells = |of: &FunctionCost<'_>| {
        let us = |us: f64| format!("{us:.2} us");
        let (name, module) = (of.function.name.clone(), of.function.module.clone());
        vec![name, module, us(of.baseline_us), us(of.row_us), of.difference.told()]
    };
    let mut rows: WhyCells = differing(row, baseline).iter().map(cells).collect();
    if rows.is_empty() {
        rows.push(["none surely differs", "", "", "", ""].map(str::to_owned).to_vec());
    }
    rows.insert(0, head.map(str::to_owned).to_vec());
    rows
}

/// Events per request, as far as they were counted.
pub(super) fn counts(record: &StudyRecord, program: usize) -> Option<WhyCells> {
    let mut own: Vec<&ProfileRecord> =
        record.profiles.iter().filter(|of| of.program == program).collect();
    own.sort_by_key(|of| of.row);
    let is_counted = |key: &str| own.iter().any(|of| of.per_request.contains_key(key));
    let events: Vec<_> = COUNTED.iter().filter(|event| is_counted(event.key)).collect();
    if events.is_empty() {
        return None;
    }
    let head = events.iter().map(|event| event.name.to_owned());
    let mut cells: WhyCells = vec![std::iter::once("per request".to_owned()).chain(head).collect()];
    for of in own {
        let Some(row) = record.rows().get(of.row) else { continue };
        let count = |key: &str| of.per_request.get(key).copied();
        let texts =
            events.iter().map(|event| count(event.key).map_or_else(String::new, event.text));
        cells.push(std::iter::once(row.name.clone()).chain(texts).collect());
    }
    Some(cells)
}

/// How the profiles were taken, and what this machine cannot count.
pub(super) fn remarks(record: &StudyRecord) -> Vec<String> {
    let profiles = &record.profiles;
    let mut lines = Vec::new();
    let sampled: Vec<&ProfileRecord> = profiles.iter().filter(|of| of.samples() > 0).collect();
    if let Some(first) = sampled.first() {
        let counts = || sampled.iter().map(|of| of.samples());
        let (least, most) = (counts().min().unwrap_or(0), counts().max().unwrap_or(0));
        let event = &first.event;
        lines.push(format!("profiles: {least} to {most} samples a row, by {event}"));
    }
    let is_missing = |name: &str| profiles.iter().any(|of| of.missing.iter().any(|of| of == name));
    let missing = COUNTED.iter().map(|event| event.name).filter(|name| is_missing(name));
    let missing: Vec<&str> = missing.collect();
    if !missing.is_empty() {
        lines.push(format!("not counted, {NOT_COUNTED}: {}", missing.join(", ")));
    }
    for (of, why) in profiles.iter().filter_map(|of| Some((of, of.failure.as_ref()?))) {
        let program = record.programs.get(of.program).map_or("", |program| &program.name);
        let label = record.study.label(of.row);
        lines.push(format!("row \"{label}\" with {program} has no whole profile: {why}"));
    }
    lines
}

const NOT_COUNTED: &str =
    "because this machine or its kernel cannot (virtual machines often lack hardware counters)";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{profiled, record};

    #[test]
    fn each_row_has_a_flame_graph_and_each_compared_row_a_difference() {
        let files: Vec<String> = charts(&profiled(8)).into_iter().map(|chart| chart.file).collect();
        let expected =
            ["study-weir-flame-1.svg", "study-weir-difference-2.svg", "study-weir-flame-2.svg"];
        assert_eq!(files, expected);
        assert!(charts(&record(8)).is_empty());
    }

    #[test]
    fn functions_are_told_with_their_differences() {
        let record = profiled(8);
        let sections = sections(&record, 0);
        assert_eq!(sections[0].title, "Baseline: default");
        assert_eq!(sections[1].title, "Why: two, compared with default");
        let cells = &sections[1].difference.as_ref().unwrap().1;
        assert_eq!(cells[1], ["f0", "weir", "5.00 us", "0.00 us", "-5.00 us [-6.06 -3.94]"]);
        assert_eq!(cells.len(), 3);
        let same = side(&record, Subject { program: 0, row: 0 }).unwrap();
        assert_eq!(functions(&same, &same)[1][0], "none surely differs");
    }

    #[test]
    fn what_was_not_counted_is_told() {
        let mut record = profiled(8);
        record.profiles[1].failure = Some("perf: gone".to_owned());
        let cells = counts(&record, 0).unwrap();
        assert_eq!(cells[0], ["per request", "waits for locks"]);
        assert_eq!(cells[2], ["two", "0.5000"]);
        let remarks = remarks(&record);
        assert_eq!(remarks[0], "profiles: 200 to 200 samples a row, by cpu-clock");
        assert!(remarks[1].ends_with(": cycles"), "{remarks:?}");
        assert_eq!(remarks[2], "row \"two\" with weir has no whole profile: perf: gone");
    }
}
