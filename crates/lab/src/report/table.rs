//! The tables and lines of a report, independent of its format.

use super::{capacity, date, latency, why};
use crate::capacity::searched;
use crate::distribution::{LatencyEffects, QUANTILES};
use crate::effect::{effect, level, ratio, told};
use crate::factorial::{self, FactorialEffect};
use crate::figures::{CAPACITY, CPU, P99, RATE, StudyColumn, columns};
use crate::record::{ALL_CALLS, AgentRecord, StudyRecord, Subject};

/// Rows of cells; the first row is the head.
pub(super) type Cells = Vec<Vec<String>>;

/// The figures of each row of a program, and their changes compared with the row's baseline.
pub(super) fn effects(record: &StudyRecord, program: usize) -> Cells {
    let mut columns = columns(&record.study.columns, record.study.search.is_some());
    if record.rows().iter().all(|row| row.found.is_none()) {
        columns.retain(|column| !matches!(column, StudyColumn::Found));
    }
    let head = columns.iter().map(|column| match column {
        StudyColumn::Level(measure) => measure.name.to_owned(),
        StudyColumn::Effect(_) | StudyColumn::CapacityEffect => "effect".to_owned(),
        StudyColumn::Overall(_) => format!("to {}", record.study.label(0)),
        StudyColumn::Capacity => match &record.study.search {
            Some(search) => format!("requests/s at {}", search.told()),
            None => CAPACITY.to_owned(),
        },
        StudyColumn::Found => "source".to_owned(),
    });
    let mut cells = vec![std::iter::once(String::new()).chain(head).collect::<Vec<_>>()];
    for (row, of) in record.rows().iter().enumerate() {
        let subject = Subject { program, row };
        if !record.has(subject) {
            continue;
        }
        let cell = |column: &StudyColumn| match column {
            StudyColumn::Level(measure) => (measure.text)(level(record, subject, *measure)),
            StudyColumn::Effect(measure) => {
                effect(record, subject, *measure).map_or_else(|| "baseline".to_owned(), told)
            }
            StudyColumn::Overall(_) if row == 0 => "baseline".to_owned(),
            StudyColumn::Overall(measure) => {
                told(ratio(record, subject, Subject { program, row: 0 }, *measure))
            }
            StudyColumn::Capacity => searched::told(record, subject),
            StudyColumn::CapacityEffect => {
                let base = Subject { row: record.study.baseline_of(row), ..subject };
                match base == subject {
                    true => "baseline".to_owned(),
                    false => searched::told_effect(record, subject, base),
                }
            }
            StudyColumn::Found => of.found.clone().unwrap_or_default(),
        };
        let name = record.study.label(row);
        cells.push(std::iter::once(name).chain(columns.iter().map(cell)).collect());
    }
    cells
}

/// The tables after the first one.
pub(super) fn further(record: &StudyRecord, program: usize) -> Vec<Cells> {
    let tables = [
        latency::of_program(record, program),
        factors(record, program),
        capacity::scaling(record, program),
        calls(record, program),
        why::counts(record, program),
    ];
    tables.into_iter().flatten().collect()
}

/// The effects of a factorial study's factors, alone and in combination.
fn factors(record: &StudyRecord, program: usize) -> Option<Cells> {
    if record.study.factorial.is_empty() {
        return None;
    }
    let head = ["factor", RATE.name, CPU.name];
    let row = |effect: FactorialEffect| vec![effect.name, told(effect.rate), told(effect.cpu)];
    let rows = factorial::effects(record, program).into_iter().map(row);
    Some(std::iter::once(head.map(str::to_owned).to_vec()).chain(rows).collect())
}

/// System calls per request if they were counted, the most frequent first.
fn calls(record: &StudyRecord, program: usize) -> Option<Cells> {
    let mut cells = vec![["system calls per request", "all", ""].map(str::to_owned).to_vec()];
    for of in record.calls.iter().filter(|of| of.program == program) {
        let Some(row) = record.rows().get(of.row) else { continue };
        let mut calls: Vec<(&String, &f64)> = of.per_request.iter().collect();
        calls.sort_by(|a, b| b.1.total_cmp(a.1));
        let all = of.per_request.get(ALL_CALLS).copied().unwrap_or_default();
        let named = calls.iter().filter(|(name, count)| *name != ALL_CALLS && **count >= 0.01);
        let named: Vec<String> = named.map(|(name, count)| format!("{name} {count:.2}")).collect();
        cells.push(vec![row.name.clone(), format!("{all:.2}"), named.join(", ")]);
    }
    (cells.len() > 1).then_some(cells)
}

/// The first program compared with the second, row by row.
pub(super) fn programs(record: &StudyRecord) -> Option<Cells> {
    let [first, second] = &record.programs[..] else { return None };
    let mut head = vec![format!("{} to {}", first.name, second.name)];
    head.extend([RATE.name, CPU.name].map(str::to_owned));
    head.extend(latency::COMPARED.map(|at| QUANTILES[at].name.to_owned()));
    head.extend(record.study.search.as_ref().map(|search| format!("at {}", search.told())));
    let subjects: Vec<Subject> = record.subjects().collect();
    let latencies = LatencyEffects::of(record, &subjects);
    let mut cells = vec![head];
    for (row, of) in record.rows().iter().enumerate() {
        let [own, other] = [0, 1].map(|program| Subject { program, row });
        if !record.has(own) || !record.has(other) {
            continue;
        }
        let effect = |measure| told(ratio(record, own, other, measure));
        let mut line = vec![of.name.clone(), effect(RATE), effect(CPU)];
        line.extend(latency::COMPARED.map(|at| latency::told(&latencies, own, other, at)));
        let searched = |_| searched::told_effect(record, own, other);
        line.extend(record.study.search.as_ref().map(searched));
        cells.push(line);
    }
    Some(cells)
}

/// Each row compared with an earlier run.
pub(super) fn baseline(record: &StudyRecord) -> Option<Cells> {
    let baseline = record.baseline.as_ref()?;
    let mut keys = [RATE, CPU, P99].map(|measure| (measure.key, measure.name.to_owned())).to_vec();
    let searched = record.study.search.as_ref();
    keys.extend(searched.map(|search| (CAPACITY, format!("at {}", search.told()))));
    let name = record.programs.first().map_or("", |program| &program.name);
    let head = format!("{name} to the earlier run");
    let mut cells =
        vec![std::iter::once(head).chain(keys.iter().map(|key| key.1.clone())).collect::<Vec<_>>()];
    for subject in record.subjects().filter(|subject| subject.program == 0) {
        let effect = |key: &(&str, String)| match baseline.effect(subject.row, key.0) {
            None => "too few starts".to_owned(),
            effect => told(effect),
        };
        let name = record.rows()[subject.row].name.clone();
        cells.push(std::iter::once(name).chain(keys.iter().map(effect)).collect());
    }
    Some(cells)
}

/// The first line of the report of an interrupted run.
pub(super) fn interruption(record: &StudyRecord) -> Option<String> {
    let (complete, blocks) = (record.complete_blocks(), record.blocks);
    record
        .is_interrupted()
        .then(|| format!("Interrupted after {complete} of {blocks} blocks; --resume goes on."))
}

/// The warning at the top of the report if most turns were disturbed.
pub(super) fn warning(record: &StudyRecord) -> Vec<String> {
    let marked = record.turns.iter().filter(|turn| !turn.marks.is_empty()).count();
    match marked * 2 > record.turns.len() {
        true => std::iter::once(DOUBTFUL.to_owned()).chain(doubts(record)).collect(),
        false => Vec::new(),
    }
}

const DOUBTFUL: &str = "Most turns were disturbed: repeat this on a quiet machine.";

/// The rows with failed requests, and the number of turns with each mark.
pub(super) fn doubts(record: &StudyRecord) -> Vec<String> {
    let mut counts = std::collections::BTreeMap::<&str, usize>::new();
    for mark in record.turns.iter().flat_map(|turn| &turn.marks) {
        *counts.entry(mark).or_default() += 1;
    }
    let turns = record.turns.len();
    let line = |(mark, count): (&str, usize)| {
        let what = match mark {
            "generator" => "were limited by the generator",
            "stolen" => "were disturbed by other machines on the same hardware",
            "others" => "were disturbed by other processes",
            // A mark of old records, made when errors were a reason to repeat a turn.
            _ => "had errors",
        };
        format!("{count} of {turns} turns {what}, after repeats")
    };
    failures(record).into_iter().chain(counts.into_iter().map(line)).collect()
}

/// The rows with errors, unless the study expects errors.
fn failures(record: &StudyRecord) -> Vec<String> {
    let mut counts = std::collections::BTreeMap::<(usize, usize), u64>::new();
    for turn in record.turns.iter().filter(|turn| turn.all_errors > 0 && !record.study.load.errors)
    {
        *counts.entry((turn.row, turn.program)).or_default() += turn.all_errors;
    }
    let line = |((row, program), errors): ((usize, usize), u64)| {
        let (label, program) = (record.study.label(row), &record.programs[program].name);
        format!("row \"{label}\" with {program}: {errors} requests failed")
    };
    counts.into_iter().map(line).collect()
}

const UNPAIRED: &str = "what else differs between both days is part of the effects";

/// The conditions of the measurement: load, hosts, machine and programs.
pub(super) fn origin(record: &StudyRecord) -> Vec<String> {
    let load = &record.study.load;
    let machine = &record.machine;
    let programs = record.programs.iter().map(|program| program.version.as_str());
    let placed = if !record.agents.is_empty() {
        "latencies and rates are those of the client's clock alone"
    } else if load.pinned {
        "server and generator on a processor each"
    } else {
        "server and generator share all processors"
    };
    let mut connections = format!("{} connections", load.connections);
    if load.close {
        connections.push_str(", a new one for each request");
    }
    if record.study.factors.values().any(|factor| factor.sets.is_of_the_load()) {
        connections.push_str(" unless a row says otherwise");
    }
    let looks = record.looks.as_ref().map(|looks| looks.told(record.complete_blocks()));
    let baseline = record.baseline.as_ref().map(|of| {
        let (version, date) = (&of.program.version, date::utc(of.began_unix_s));
        format!("compared with {} ({version}, began {date}): {UNPAIRED}", of.file)
    });
    let searches = record.study.search.as_ref().map(|search| {
        let count = record.searches.iter().map(|of| of.repeat + 1).max().unwrap_or_default();
        format!("{count} searches of each row, in steps of {} ms", search.step_ms)
    });
    let of = if record.agents.is_empty() { "" } else { "this machine: " };
    let mut lines =
        vec![format!("{} blocks of turns of {} ms", record.complete_blocks(), load.turn_ms)];
    lines.extend(latency::explanation(record));
    lines.extend([looks, baseline, searches].into_iter().flatten());
    lines.extend([
        connections,
        placed.to_owned(),
        record.hosts.clone(),
        format!("{of}{}, {} processors, {}", machine.processor, machine.processors, machine.system),
    ]);
    lines.extend(record.agents.iter().map(agent));
    lines.push(programs.collect::<Vec<_>>().join("; "));
    lines.extend(left_out(record));
    lines.extend_from_slice(&record.remarks);
    lines.extend([
        format!("began {}", date::utc(machine.began_unix_s)),
        format!("repeat it: {}", record.command),
    ]);
    lines
}

fn agent(agent: &AgentRecord) -> String {
    let AgentRecord { place, processor, processors, system, .. } = agent;
    let (offset, error) = (agent.clock_offset_us / 1000.0, agent.clock_error_us / 1000.0);
    format!(
        "{} on {place}: {processor}, {processors} processors, {system}; its clock is \
         {offset:+.3} ms ± {error:.3} ms from this machine's",
        agent.parts.join(" and ")
    )
}

/// The rows that were left out, with reasons.
fn left_out(record: &StudyRecord) -> impl Iterator<Item = String> {
    record.left_out.iter().map(|out| {
        let (row, program) = (&record.rows()[out.row].name, &record.programs[out.program].name);
        format!("row \"{row}\" with {program} is left out: {}", out.why)
    })
}
