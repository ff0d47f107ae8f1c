//! The table of a study, whatever it is shown in.

use crate::effect::{CPU, P99, RATE, StudyMeasure, Subject, level, ratio, told};
use crate::record::StudyRecord;

/// Rows of cells; the first row is the head.
pub(super) type Cells = Vec<Vec<String>>;

/// What each row of a program has gained over its baseline.
pub(super) fn effects(record: &StudyRecord, program: usize) -> Cells {
    let head = ["", "requests/s", "effect", "CPU/request", "effect", "p99", "source"];
    let mut cells = vec![head.map(str::to_owned).to_vec()];
    for (row, of) in record.rows().iter().enumerate() {
        let subject = Subject { program, row };
        let effect = |measure: StudyMeasure| match row {
            0 => "baseline".to_owned(),
            _ => told(ratio(record, subject, Subject { program, row: 0 }, measure)),
        };
        cells.push(vec![
            of.name.clone(),
            format!("{:.0}", level(record, subject, RATE)),
            effect(RATE),
            format!("{:.2} us", level(record, subject, CPU)),
            effect(CPU),
            format!("{:.2} ms", level(record, subject, P99) / 1000.0),
            of.found.clone().unwrap_or_default(),
        ]);
    }
    cells
}

/// The first program beside the second, row by row.
pub(super) fn programs(record: &StudyRecord) -> Option<Cells> {
    let [first, second] = &record.programs[..] else { return None };
    let head = [
        format!("{} to {}", first.name, second.name),
        RATE.name.to_owned(),
        CPU.name.to_owned(),
        P99.name.to_owned(),
    ];
    let mut cells = vec![head.to_vec()];
    for (row, of) in record.rows().iter().enumerate() {
        let [own, other] = [0, 1].map(|program| Subject { program, row });
        let effect = |measure| told(ratio(record, own, other, measure));
        cells.push(vec![of.name.clone(), effect(RATE), effect(CPU), effect(P99)]);
    }
    Some(cells)
}

/// How many turns are marked, by their marks.
pub(super) fn doubts(record: &StudyRecord) -> Vec<String> {
    let mut counts = std::collections::BTreeMap::<&str, usize>::new();
    for mark in record.turns.iter().flat_map(|turn| &turn.marks) {
        *counts.entry(mark).or_default() += 1;
    }
    let turns = record.turns.len();
    let line = |(mark, count): (&str, usize)| {
        let what = match mark {
            "generator" => "were limited by the generator",
            "stolen" => "were disturbed by others on the machine",
            _ => "had errors",
        };
        format!("{count} of {turns} turns {what}, after repeats")
    };
    counts.into_iter().map(line).collect()
}

/// What ran, and where.
pub(super) fn origin(record: &StudyRecord) -> Vec<String> {
    let load = &record.study.load;
    let machine = &record.machine;
    let programs = record.programs.iter().map(|program| program.version.as_str());
    let placed = if load.pinned {
        "server and generator on a processor each"
    } else {
        "server and generator share all processors"
    };
    let connections = match load.close {
        true => format!("{} connections, a new one for each request", load.connections),
        false => format!("{} connections", load.connections),
    };
    vec![
        format!(
            "{} blocks of turns of {} ms, {connections}, {placed}, on loopback",
            record.complete_blocks(),
            load.turn_ms
        ),
        format!("{}, {} processors, {}", machine.processor, machine.processors, machine.system),
        programs.collect::<Vec<_>>().join("; "),
        format!("repeat it: {}", record.command),
    ]
}
