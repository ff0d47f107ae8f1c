//! The reference on a terminal: one directive, or a line for each.

use std::fmt::Write;

use conf::known::{self, KnownDirective};
use conf::{lacking, suggest};

use super::entry::{self, DirectiveEntry};
use super::text::{INDENT, field, paragraph};
use super::variable;

/// A line for each directive.
pub fn list() -> String {
    let mut out = String::new();
    let supported = entry::supported();
    let width = supported.keys().map(String::len).max().unwrap_or_default();
    for entries in supported.values() {
        for entry in entries {
            // The contexts distinguish directives with the same name.
            let contexts = match entries.len() {
                1 => String::new(),
                _ => format!(" ({})", entry.contexts()),
            };
            let _ = writeln!(out, "{:width$}  {}{contexts}", entry.name, entry.doc.summary());
        }
    }
    out
}

/// The page of a directive or variable, or an error if it does not exist. A name that is both has
/// both pages.
pub fn page(name: &str) -> Result<String, String> {
    if name.is_empty() || name.starts_with('$') {
        return variable::page(name).ok_or_else(|| variable::unknown(name));
    }
    match (directive(name), variable::page(name)) {
        (Ok(directive), Some(variable)) => Ok(format!("{directive}\n{variable}")),
        (Err(_), Some(variable)) => Ok(variable),
        (page, None) => page,
    }
}

fn directive(name: &str) -> Result<String, String> {
    let all = entry::all();
    if let Some(entries) = all.get(name) {
        let mut pages: Vec<_> = entries.iter().map(of_entry).collect();
        pages.extend(elsewhere(name));
        return Ok(pages.join("\n"));
    }
    match known::find(name.as_bytes()) {
        [] => Err(unknown(name)),
        known => Ok(unsupported(known)),
    }
}

fn of_entry(entry: &DirectiveEntry) -> String {
    let mut out = format!("{}\n\n", entry.name);
    if let Some(why) = &entry.doc.refused {
        paragraph(&mut out, &format!("Weir rejects a configuration with this directive: {why}"));
        return out;
    }
    for (at, form) in entry.syntax().iter().enumerate() {
        field(&mut out, if at == 0 { "Syntax:" } else { "" }, form);
    }
    field(&mut out, "Default:", entry.default().unwrap_or("none"));
    field(&mut out, "Context:", &entry.contexts());
    field(&mut out, "Module:", entry.in_nginx().map_or("not in nginx", |known| known.module));
    out.push('\n');
    let mut before = "";
    for text in &entry.doc.paragraphs {
        if !before.is_empty() && !text.starts_with("- ") {
            out.push('\n');
        }
        before = text;
        paragraph(&mut out, text);
    }
    if !entry.doc.example.is_empty() {
        let _ = write!(out, "\n{INDENT}Example:\n\n");
        for line in &entry.doc.example {
            let _ = writeln!(out, "{}", format!("{INDENT}    {line}").trim_end());
        }
    }
    for text in &entry.doc.differs {
        out.push('\n');
        paragraph(&mut out, &format!("Differs from nginx: {text}"));
    }
    out
}

/// The contexts in which nginx has a directive of this name and Weir does not.
fn elsewhere(name: &str) -> Option<String> {
    let missing = entry::missing().into_iter().filter(|known| known.name == name);
    let places: Vec<_> =
        missing.map(|known| format!("{} ({})", entry::contexts_of(known), known.module)).collect();
    let mut out = String::new();
    paragraph(&mut out, &format!("Not supported by this version in: {}.", places.join("; ")));
    (!places.is_empty()).then_some(out)
}

/// The page of a directive that only nginx has.
fn unsupported(known: &[KnownDirective]) -> String {
    let mut out = format!("{}\n\n", known[0].name);
    for known in known {
        field(&mut out, "Module:", known.module);
        field(&mut out, "Context:", &entry::contexts_of(known));
    }
    out.push('\n');
    match known[0].warning() {
        Some(warning) if matches!(known[0].standing, known::DirectiveSupport::Obsolete { .. }) => {
            paragraph(&mut out, &format!("It has no effect, as in nginx: {warning}."));
        }
        _ => {
            paragraph(&mut out, UNSUPPORTED);
            known.iter().filter_map(lacking::of).take(1).for_each(|row| {
                let instead = match row.of {
                    "" => format!("With --lenient: {}.", row.class.instead()),
                    of => format!("It is a setting of {of}, and not an error without it."),
                };
                out.push('\n');
                paragraph(&mut out, &instead);
            });
        }
    }
    out
}

const UNSUPPORTED: &str = "This version of Weir does not support this directive of nginx. Weir \
    rejects a configuration that uses it, and reports the file and line. weir check lists \
    everything in a configuration that this version does not support.";

/// The error for an unknown name, with a suggestion.
fn unknown(name: &str) -> String {
    let all = entry::all();
    if let Some(advice) = known::removed(name.as_bytes()) {
        return format!("there is no directive \"{name}\": {advice}");
    }
    let takes = |entry: &&DirectiveEntry| {
        let texts = entry.syntax().into_iter().chain(entry.doc.paragraphs.iter().cloned());
        texts.flat_map(words).any(|word| word == name)
    };
    let mut takers: Vec<_> =
        all.values().flatten().filter(takes).map(|entry| entry.name.as_str()).collect();
    takers.dedup();
    if !takers.is_empty() && takers.len() <= TAKERS_MAX {
        let takers = takers.join(", ");
        return format!("there is no directive \"{name}\"; it is a parameter of: {takers}");
    }
    let names = all.keys().map(String::as_str).chain(known::all().iter().map(|known| known.name));
    match suggest::nearest(name.as_bytes(), names) {
        Some(near) => format!("there is no directive \"{name}\"; {}", suggest::did_you_mean(near)),
        None => match variable::nearest(name) {
            Some(near) => {
                format!("there is no directive or variable \"{name}\"; did you mean \"${near}\"?")
            }
            None => {
                format!("there is no directive \"{name}\"; weir reference lists all directives")
            }
        },
    }
}

/// A word that more directives contain is not the name of a parameter.
const TAKERS_MAX: usize = 4;

/// The names of parameters in a text: `slow_start` of `[slow_start=TIME]`.
fn words(text: String) -> Vec<String> {
    let parts = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let names = parts.filter(|word| word.contains('_') || word.len() > 3);
    names.map(str::to_owned).collect()
}
