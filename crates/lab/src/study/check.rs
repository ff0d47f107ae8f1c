//! The checks of a study, made before anything runs.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddrV4};

use super::rows::ROWS_MAX;
use super::{BLOCKS_MIN, BackendAddress, FactorTarget, RowSetting, Study, StudyPlaces, StudyRow};
use crate::figures;
use crate::gate::GateRule;

/// The blanks of a template besides factors and backends: addresses to listen on, a folder with
/// files, and the number of the server's processors.
const BLANKS: [&str; 4] = ["listen", "listen_tls", "dir", "server_processors"];

/// The most backends of a study.
const BACKENDS_MAX: usize = 16;

/// Options of `weir backend` that set where it listens, which the lab decides.
const LISTENS: [&str; 4] = ["-l", "--listen", "--tcp-echo", "--udp-echo"];

/// The first problem outside the rows.
pub(super) fn problem(study: &Study) -> Option<String> {
    let blocks = study.blocks;
    let least = BLOCKS_MIN;
    if blocks.quick < least || blocks.full < least {
        return Some(format!("blocks must be at least {least}"));
    }
    if study.backend.count > BACKENDS_MAX {
        return Some(format!("backend.count must be at most {BACKENDS_MAX}"));
    }
    if let Some(option) = study.backend.options.iter().find(|word| LISTENS.contains(&&***word)) {
        return Some(format!("backend.options has {option}, but the lab says where to listen"));
    }
    study.load.problem().or_else(|| template(study)).or_else(|| factors(study))
}

fn template(study: &Study) -> Option<String> {
    let blanks = blanks(&study.template);
    let is_backend = |name: &str| {
        let number = name.strip_prefix("backend");
        let number = number.map(|number| match study.backend.udp {
            true => number.strip_suffix("_udp").unwrap_or(number),
            false => number,
        });
        let number = number.and_then(|number| number.parse::<usize>().ok());
        number.is_some_and(|number| (1..=study.backend.count).contains(&number))
    };
    let is_known =
        |name: &str| BLANKS.contains(&name) || is_backend(name) || study.factors.contains_key(name);
    let unknown = blanks.iter().find(|name| !is_known(name));
    unknown.map(|name| format!("the template has %%{name}%%, but there is no such factor"))
}

fn blanks(text: &str) -> BTreeSet<&str> {
    text.split("%%").skip(1).step_by(2).collect()
}

fn factors(study: &Study) -> Option<String> {
    let blanks = blanks(&study.template);
    for (name, factor) in &study.factors {
        let is_in_template = blanks.contains(name.as_str());
        if is_in_template != (factor.sets == FactorTarget::Template) {
            let said = if is_in_template { "is also in" } else { "is not in" };
            return Some(format!("the factor {name} {said} the template"));
        }
        let unknown = factor.text.keys().find(|name| !factor.all_levels().any(|of| of == **name));
        if let Some(level) = unknown {
            return Some(format!(
                "the factor {name} has a text for \"{level}\", but no such level"
            ));
        }
    }
    let named = study.factorial.iter().chain(&study.scaling);
    let unknown = named.into_iter().find(|name| !study.factors.contains_key(*name));
    if let Some(name) = unknown {
        return Some(format!("there is no factor {name}"));
    }
    let unknown = study.columns.iter().find(|name| figures::column(name).is_none());
    unknown.map(|name| format!("there is no column \"{name}\": {}", figures::column_names()))
}

/// The first problem with a row.
pub(super) fn rows(study: &Study) -> Option<String> {
    let Some(first) = study.rows.first() else {
        return Some("there is no row".to_owned());
    };
    if study.rows.len() > ROWS_MAX {
        return Some(format!("there are more than {ROWS_MAX} rows"));
    }
    if !first.set.is_empty() || first.based_on.is_some() {
        return Some(format!("row {}: the first row is the baseline and sets nothing", first.name));
    }
    let mut known = BTreeSet::new();
    for row in &study.rows {
        if let Some(problem) = links(row, &known).or_else(|| levels(study, row)) {
            return Some(format!("row {}: {problem}", row.name));
        }
        let base = row.compared_with.as_ref().and_then(|name| study.row(name));
        if let Some((_, base)) =
            base.filter(|(_, base)| base.only.is_some() && base.only != row.only)
        {
            return Some(format!("row {}: not all servers have row {}", row.name, base.name));
        }
        if let Err(problem) = setting(study, row) {
            return Some(format!("row {}: {problem}", row.name));
        }
        known.insert(row.name.as_str());
    }
    None
}

fn links(row: &StudyRow, known: &BTreeSet<&str>) -> Option<String> {
    if known.contains(row.name.as_str()) {
        return Some("there are two rows of this name".to_owned());
    }
    if known.is_empty() && row.only.is_some() {
        return Some("the first row is the baseline of all servers".to_owned());
    }
    for (what, name) in [("based_on", &row.based_on), ("compared_with", &row.compared_with)] {
        if let Some(name) = name.as_ref().filter(|name| !known.contains(name.as_str())) {
            return Some(format!("{what} names {name}, which is no row above it"));
        }
    }
    None
}

fn levels(study: &Study, row: &StudyRow) -> Option<String> {
    if row.direct && study.backend.count == 0 {
        return Some("direct needs a backend".to_owned());
    }
    if let Some(Err(problem)) =
        row.fail_if.iter().map(|text| GateRule::parse(text)).find(Result::is_err)
    {
        return Some(problem);
    }
    for (name, level) in &row.set {
        let Some(factor) = study.factors.get(name) else {
            return Some(format!("there is no factor {name}"));
        };
        if !factor.all_levels().any(|known| known == level) {
            return Some(format!("the factor {name} has no level \"{level}\""));
        }
    }
    None
}

fn setting(study: &Study, row: &StudyRow) -> Result<(), String> {
    let setting = RowSetting::of(study, row)?;
    if let Some(problem) = setting.load.problem() {
        return Err(problem);
    }
    if row.direct {
        let names_folder = setting.load.options.iter().any(|word| word.contains("%%dir%%"));
        return match names_folder {
            true => Err("direct has no folder %%dir%%".to_owned()),
            false => Ok(()),
        };
    }
    let any = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 1);
    let backends = vec![BackendAddress::of_http(any); study.backend.count];
    let places =
        StudyPlaces { listen: any, listen_tls: any, dir: "/", backends: &backends, processors: 1 };
    let text = study.configuration(row, places);
    if let Some(blank) = blanks(&text).first() {
        return Err(format!("%%{blank}%% is in a level, but nothing fills it"));
    }
    let other = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 2);
    let (blank, moved) = match setting.load.tls {
        true => ("listen_tls", StudyPlaces { listen_tls: other, ..places }),
        false => ("listen", StudyPlaces { listen: other, ..places }),
    };
    match study.configuration(row, moved) == text {
        true => Err(format!("its configuration has no %%{blank}%% to listen on")),
        false => Ok(()),
    }
}
