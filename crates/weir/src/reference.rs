//! Every directive that nginx has, with its state here, as Markdown: the tables speak.

use std::collections::BTreeMap;
use std::fmt::Write;

use conf::Info;
use conf::known::{self, Known};

use crate::settings;

/// A subsystem's tables: feature, prefix, rows.
type Tables = [(&'static str, &'static str, &'static [Info])];

/// The reference.
pub fn markdown() -> String {
    let mut modules: BTreeMap<&str, Vec<(&Known, State)>> = BTreeMap::new();
    for known in known::all() {
        modules.entry(known.module).or_default().push((known, state(known)));
    }
    let states = modules.values().flatten();
    let (all, done) = (known::all().len(), states.filter(|(_, state)| state.is_done()).count());
    let mut out = format!(
        "# Directives\n\n\
         Every directive of nginx {version}, by module, with its state in Weir. Written by `weir \
         reference`, from\nthe tables that the program reads configurations with: do not edit.\n\n\
         {done} of {all} are done. One that is not yet is refused with its file and line; with \
         `--lenient` it is\npassed over. What nginx itself ignores is ignored here, too.\n",
        version = crate::name::NGINX_VERSION,
    );
    for (module, rows) in modules {
        section(&mut out, module, &rows);
    }
    out
}

/// What Weir does with a directive.
#[derive(Clone, Copy)]
enum State {
    Done(&'static Info),
    /// Part of the grammar.
    Grammar,
    /// nginx accepts it and does nothing.
    Obsolete,
    NotYet,
}

impl State {
    fn is_done(&self) -> bool {
        !matches!(self, Self::NotYet)
    }
}

fn state(known: &Known) -> State {
    let http: &Tables = http::TABLES;
    let own: &Tables = settings::TABLES;
    let (tables, blocks) = match known.module {
        "ngx_conf_module" => return State::Grammar,
        "ngx_http_module" | "ngx_events_module" => (own, settings::BLOCKS),
        module if module.starts_with("ngx_http_") => (http, http::BLOCKS),
        module if module.starts_with("ngx_stream_") || module.starts_with("ngx_mail_") => {
            return State::NotYet;
        }
        _ => (own, settings::BLOCKS),
    };
    let row = tables.iter().find_map(|(_, prefix, rows)| row(rows, prefix, known.name));
    let found = row.or_else(|| self::row(blocks, "", known.name));
    match (found, known.standing) {
        (Some(info), _) => State::Done(info),
        (None, known::Standing::Obsolete { .. }) => State::Obsolete,
        (None, _) => State::NotYet,
    }
}

fn row(rows: &'static [Info], prefix: &str, name: &str) -> Option<&'static Info> {
    let local = name.strip_prefix(prefix)?;
    rows.iter().find(|info| info.name == local)
}

fn section(out: &mut String, module: &str, rows: &[(&Known, State)]) {
    let done = rows.iter().filter(|(_, state)| state.is_done()).count();
    let _ = write!(out, "\n## {module}\n\n{done} of {} done.\n\n", rows.len());
    let _ = writeln!(out, "| directive | state | where | default | |\n|---|---|---|---|---|");
    for (known, state) in rows {
        let contexts = known.contexts.replace(',', ", ");
        let (word, default, docs) = match state {
            State::Done(info) => ("done", code(info.default), text(info.docs)),
            State::Grammar => ("done", String::new(), "Reads other files in its place.".into()),
            State::Obsolete => ("ignored", String::new(), "Obsolete in nginx, too.".into()),
            State::NotYet => ("not yet", String::new(), String::new()),
        };
        let _ = writeln!(out, "| `{}` | {word} | {contexts} | {default} | {docs} |", known.name);
    }
}

fn code(default: &str) -> String {
    if default.is_empty() { String::new() } else { format!("`{default}`") }
}

/// Documentation in a cell.
fn text(docs: &[&str]) -> String {
    docs.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(module: &str, name: &str) -> String {
        let reference = markdown();
        let (_, section) = reference.split_once(&format!("## {module}\n")).unwrap();
        let start = format!("| `{name}` |");
        section.lines().find(|line| line.starts_with(&start)).unwrap().to_owned()
    }

    #[test]
    fn what_is_there_and_what_is_not_are_told_apart() {
        assert!(line("ngx_core_module", "worker_processes").contains("| done |"));
        assert!(line("ngx_http_core_module", "server_name").contains("| done |"));
        assert!(line("ngx_http_core_module", "location").contains("| done |"));
        assert!(line("ngx_stream_core_module", "listen").contains("| not yet |"));
        assert!(line("ngx_conf_module", "include").contains("| done |"));
        assert!(line("ngx_event_core_module", "use").contains("| done |"));
    }

    #[test]
    fn every_row_that_is_done_says_what_it_does() {
        let reference = markdown();
        for line in reference.lines().filter(|line| line.contains("| done |")) {
            assert!(!line.ends_with("|  |"), "{line}");
        }
    }
}
