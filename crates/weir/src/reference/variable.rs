//! The variables that configurations can use, from the tables of both subsystems.

use std::collections::BTreeMap;
use std::fmt::Write;

use conf::{lacking, suggest};
use session::variables::VariableDoc;

use super::markdown::{linked, paragraph};
use super::text;

/// A variable as one subsystem has it.
#[derive(Clone, Copy)]
pub struct VariableEntry {
    pub subsystem: &'static str,
    pub doc: VariableDoc,
}

impl VariableEntry {
    /// The name with `$`, and `...` for what a configuration adds.
    pub fn shown(&self) -> String {
        let rest = if self.doc.is_prefix { "..." } else { "" };
        format!("${}{rest}", self.doc.name)
    }

    /// The sentence, and whether the value can be changed.
    fn text(&self) -> String {
        let changes =
            if self.doc.changeable { " `set` and `map` may give it another value." } else { "" };
        format!("{}{changes}", self.doc.text)
    }

    fn module(&self) -> &'static str {
        self.doc.module.unwrap_or(BEYOND)
    }
}

const BEYOND: &str = "not in nginx";
const PAGE: &str = "docs/variables.md";

/// All of them, those of `http {}` first.
pub fn all() -> Vec<VariableEntry> {
    let of = |subsystem| move |doc| VariableEntry { subsystem, doc };
    http::variable_docs().map(of("http")).chain(stream::variable_docs().map(of("stream"))).collect()
}

/// The page of the variable of that name, with `$` or without.
pub fn page(name: &str) -> Option<String> {
    let name = name.trim_start_matches('$').to_ascii_lowercase();
    let entries = find(&name);
    let first = entries.first()?;
    let mut out = format!("{}\n\n", first.shown());
    let join = |part: fn(&VariableEntry) -> &'static str| {
        let mut parts: Vec<_> = entries.iter().map(part).collect();
        parts.dedup();
        parts.join(", ")
    };
    text::field(&mut out, "Context:", &join(|entry| entry.subsystem));
    text::field(&mut out, "Module:", &join(VariableEntry::module));
    text::field(&mut out, "Docs:", &documents(&entries).join(", "));
    for (at, entry) in entries.iter().enumerate() {
        let said = entries[..at].iter().any(|other| other.doc.text == entry.doc.text);
        if !said {
            out.push('\n');
            let text = entry.text();
            let is_one = entries.iter().all(|other| other.doc.text == entry.doc.text);
            let text = if is_one { text } else { format!("In {} {{}}: {text}", entry.subsystem) };
            text::paragraph(&mut out, &text);
        }
    }
    Some(out)
}

/// The entries of one name; without any, those of the longest beginning that it has.
fn find(name: &str) -> Vec<VariableEntry> {
    let all = all();
    let length = |entry: &VariableEntry| match entry.doc.is_prefix {
        true => name.starts_with(entry.doc.name).then_some(entry.doc.name.len()),
        false => (name == entry.doc.name).then_some(name.len() + 1),
    };
    let longest = all.iter().filter_map(length).max();
    all.iter().filter(|entry| longest.is_some() && length(entry) == longest).copied().collect()
}

/// The pages that say more.
fn documents(entries: &[VariableEntry]) -> Vec<String> {
    let mut pages = vec![PAGE.to_owned()];
    let words = entries.iter().flat_map(|entry| entry.doc.text.split([' ', '(', ')', ';']));
    for word in words.filter(|word| word.starts_with("docs/")) {
        let page = word.trim_end_matches('.').to_owned();
        if !pages.contains(&page) {
            pages.push(page);
        }
    }
    pages
}

/// Why there is no variable of that name.
pub fn unknown(name: &str) -> String {
    let bare = name.trim_start_matches('$');
    if bare.is_empty() {
        return "a name is missing; a shell replaces $NAME, so leave out the $ or write \
                '$NAME' in single quotes"
            .to_owned();
    }
    let none = format!("there is no variable \"${bare}\"");
    if let Some(row) = lacking::of_variable(bare.to_ascii_lowercase().as_bytes()) {
        return format!("{none}: it belongs to {}, which Weir does not support", row.module);
    }
    match nearest(bare) {
        Some(near) => format!("{none}; did you mean \"${near}\"?"),
        None => format!("{none}; {PAGE} lists all variables"),
    }
}

/// The variable that was probably meant.
pub fn nearest(name: &str) -> Option<String> {
    let all = all();
    let names = all.iter().filter(|entry| !entry.doc.is_prefix).map(|entry| entry.doc.name);
    suggest::nearest(name.to_ascii_lowercase().as_bytes(), names).map(str::to_owned)
}

/// The page docs/variables.md.
pub fn markdown() -> String {
    let mut out = String::from("# Variables\n");
    for text in INTRODUCTION {
        paragraph(&mut out, text);
    }
    for subsystem in ["http", "stream"] {
        let _ = write!(out, "\n## Variables of {subsystem} {{}}\n");
        let mut modules: BTreeMap<&str, Vec<VariableEntry>> = BTreeMap::new();
        for entry in all().into_iter().filter(|entry| entry.subsystem == subsystem) {
            modules.entry(entry.module()).or_default().push(entry);
        }
        for (module, mut entries) in modules {
            entries.sort_by_key(|entry| entry.doc.name);
            let _ =
                write!(out, "\n### {module} ({subsystem})\n\n| variable | value |\n|---|---|\n");
            for entry in entries {
                let _ = writeln!(out, "| `{}` | {} |", entry.shown(), linked(&entry.text()));
            }
        }
    }
    out
}

const INTRODUCTION: [&str; 3] = [
    "This page lists the variables that every configuration can use; `weir reference NAME` prints \
     one of them, with `$` or without. Names have no case. `cargo xtask docs` generates this page \
     from the declarations in the source code; do not edit it.",
    "Other variables come from the configuration: `map`, `geo`, `split_clients`, `keyval`, `set` \
     and `auth_request_set` define them, and so do named groups of regular expressions \
     (`(?<name>...)`). `$1` to `$9` are the groups of the expression that matched last.",
    "In the variables of `upstream`, a value for each server that was tried stands in order, with \
     commas between them.",
];
