//! What is wrong with a study, before anything runs.

use std::collections::BTreeSet;

use super::{BLANKS, Study, StudyLoad, StudyRow};

/// Connections that a generator can be asked for.
const CONNECTIONS_MAX: u32 = 10_000;
/// Milliseconds of a turn: shorter ones are noise, longer ones drift apart.
const TURN_MS: std::ops::RangeInclusive<u64> = 50..=10_000;

/// Backends of one study.
const BACKENDS_MAX: usize = 16;

/// The first problem.
pub(super) fn problem(study: &Study) -> Option<String> {
    let blocks = study.blocks;
    if blocks.quick < 3 || blocks.full < 3 {
        return Some("blocks must be at least 3".to_owned());
    }
    if study.backend.count > BACKENDS_MAX {
        return Some(format!("backend.count must be at most {BACKENDS_MAX}"));
    }
    load(&study.load).or_else(|| template(study)).or_else(|| table(study))
}

fn load(load: &StudyLoad) -> Option<String> {
    if !(1..=CONNECTIONS_MAX).contains(&load.connections) {
        return Some(format!("load.connections must be from 1 to {CONNECTIONS_MAX}"));
    }
    if !TURN_MS.contains(&load.turn_ms) {
        let (from, to) = (TURN_MS.start(), TURN_MS.end());
        return Some(format!("load.turn_ms must be from {from} to {to}"));
    }
    (!load.path.starts_with('/')).then(|| "load.path must begin with a slash".to_owned())
}

fn template(study: &Study) -> Option<String> {
    let blanks: BTreeSet<&str> = study.template.split("%%").skip(1).step_by(2).collect();
    let is_backend = |name: &str| {
        let number = name.strip_prefix("backend").and_then(|number| number.parse::<usize>().ok());
        number.is_some_and(|number| (1..=study.backend.count).contains(&number))
    };
    let is_known =
        |name: &str| BLANKS.contains(&name) || is_backend(name) || study.factors.contains_key(name);
    if let Some(unknown) = blanks.iter().find(|name| !is_known(name)) {
        return Some(format!("the template has %%{unknown}%%, but there is no such factor"));
    }
    if !blanks.contains("port") {
        return Some("the template has no %%port%% to listen on".to_owned());
    }
    let unused = study.factors.keys().find(|name| !blanks.contains(name.as_str()));
    unused.map(|name| format!("the factor {name} is not in the template"))
}

fn table(study: &Study) -> Option<String> {
    let Some((first, others)) = study.rows.split_first() else {
        return Some("there is no row".to_owned());
    };
    if !first.set.is_empty() || first.based_on.is_some() || first.direct {
        return Some(format!("row {}: the first row is the baseline and sets nothing", first.name));
    }
    let mut known = BTreeSet::from([first.name.as_str()]);
    for row in others {
        if let Some(problem) = row_problem(study, row, &known) {
            return Some(format!("row {}: {problem}", row.name));
        }
        known.insert(&row.name);
    }
    None
}

fn row_problem(study: &Study, row: &StudyRow, known: &BTreeSet<&str>) -> Option<String> {
    if known.contains(row.name.as_str()) {
        return Some("there are two rows of this name".to_owned());
    }
    if let Some(base) = row.based_on.as_ref().filter(|base| !known.contains(base.as_str())) {
        return Some(format!("based_on names {base}, which is no row above it"));
    }
    if row.direct && study.backend.count == 0 {
        return Some("direct needs a backend".to_owned());
    }
    if let Some(problem) = load(&study.load_of(row)) {
        return Some(problem);
    }
    for (name, level) in &row.set {
        let Some(factor) = study.factors.get(name) else {
            return Some(format!("there is no factor {name}"));
        };
        if *level != factor.baseline && !factor.levels.contains(level) {
            return Some(format!("the factor {name} has no level \"{level}\""));
        }
    }
    None
}
