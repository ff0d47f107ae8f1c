//! Records and configurations for tests.

use std::path::Path;

use conf::MemoryFiles;
use sandbox::EditableTree;

use crate::distribution::LatencyCounts;
use crate::figures::MeasuredRun;
use crate::profile::{ProfileRecord, parsers};
use crate::record::{FORMAT, MachineRecord, ProgramRecord, StudyRecord, TurnRecord};
use crate::study::{Study, StudyRow};

const STUDY: &str = r#"
title = "A <study>"
explanation = "What | it is."
source = "seed 000"
template = "%%a%% %%listen%%"
[load]
connections = 8
[factor.a]
baseline = "1"
levels = ["2"]
[[row]]
name = "default"
[[row]]
name = "two"
set = { a = "2" }
found = "+92 %"
"#;

/// A record of one program and two rows; all turns are equal.
pub(crate) fn record(blocks: usize) -> StudyRecord {
    let measured = MeasuredRun {
        requests: 1000,
        seconds: 0.3,
        rate: 3333.0,
        cpu_us: 5.0,
        p99_us: 100.0,
        latencies: LatencyCounts::of([(80, 900), (100, 100)]),
        ..MeasuredRun::default()
    };
    let turn = |block, row| TurnRecord {
        program: 0,
        row,
        block,
        measured: measured.clone(),
        marks: Vec::new(),
        repeats: 0,
        all_errors: 0,
    };
    StudyRecord {
        format: FORMAT.to_owned(),
        name: "study".to_owned(),
        study: Study::parse("study", STUDY).expect("a study"),
        command: "weir lab run study".to_owned(),
        machine: MachineRecord {
            system: "Linux 6.1".to_owned(),
            processor: "a processor".to_owned(),
            processors: 2,
            began_unix_s: 1_700_000_000,
        },
        hosts: "all parts on loopback addresses (as a test)".to_owned(),
        agents: Vec::new(),
        programs: vec![ProgramRecord {
            name: "weir".to_owned(),
            path: "/usr/bin/weir".to_owned(),
            version: "weir 0.1.0".to_owned(),
            build: String::new(),
        }],
        blocks,
        calls: Vec::new(),
        profiles: Vec::new(),
        left_out: Vec::new(),
        remarks: Vec::new(),
        searches: Vec::new(),
        looks: None,
        baseline: None,
        turns: (0..blocks).flat_map(|block| [turn(block, 0), turn(block, 1)]).collect(),
    }
}

/// The same record with a profile of each row.
pub(crate) fn profiled(blocks: usize) -> StudyRecord {
    let mut record = record(blocks);
    for row in 0..2 {
        let sample = format!("cpu-clock:\n\t1 f{row} (/weir)\n\t2 main (/weir)\n\n");
        let mut profile = ProfileRecord { row, ..parsers::stacks(&sample.repeat(200)) };
        profile.per_request.insert("lock-waits".to_owned(), 0.5);
        profile.missing.push("cycles".to_owned());
        record.profiles.push(profile);
    }
    record
}

/// Adds a program whose turns are those of the first.
pub(crate) fn add_program(record: &mut StudyRecord, name: &str) {
    record.programs.push(ProgramRecord { name: name.to_owned(), ..record.programs[0].clone() });
    let turns = record.turns.iter().filter(|turn| turn.program == 0).cloned();
    let turns = turns.map(|turn| TurnRecord { program: record.programs.len() - 1, ..turn });
    record.turns.extend(turns.collect::<Vec<_>>());
}

/// A record of 8 blocks whose rows have the numbers for levels; all turns of a row are equal.
pub(crate) fn scaling_record(numbers: &[f64], rate: fn(f64) -> f64) -> StudyRecord {
    let mut record = record(8);
    record.study.scaling = Some("a".to_owned());
    let factor = record.study.factors.get_mut("a").expect("a factor");
    factor.levels = numbers[1..].iter().map(f64::to_string).collect();
    let row = |at: usize| StudyRow {
        name: if at == 0 { "one".to_owned() } else { format!("{}", numbers[at]) },
        set: (at > 0).then(|| ("a".to_owned(), numbers[at].to_string())).into_iter().collect(),
        ..StudyRow::default()
    };
    record.study.rows = (0..numbers.len()).map(row).collect();
    let first = record.turns[0].clone();
    let turn = |block: usize, row: usize| {
        let measured = MeasuredRun { rate: rate(numbers[row]), ..first.measured.clone() };
        TurnRecord { block, row, measured, ..first.clone() }
    };
    let turns = (0..8).flat_map(|block| (0..numbers.len()).map(move |row| (block, row)));
    record.turns = turns.map(|(block, row)| turn(block, row)).collect();
    record
}

/// The tree of a text, read as `/etc/nginx/nginx.conf`.
pub(crate) fn tree(text: &str) -> EditableTree {
    let mut files = MemoryFiles::default().with("/etc/nginx/nginx.conf", text);
    EditableTree::read(Path::new("/etc/nginx/nginx.conf"), &mut files).expect("a configuration")
}
