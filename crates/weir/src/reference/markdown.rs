//! The pages docs/directives.md and docs/unsupported.md.

use std::collections::BTreeMap;
use std::fmt::Write;

use conf::known::{DirectiveSupport, KnownDirective};
use conf::lacking;

use super::entry::{self, DirectiveEntry};
use super::text::wrap;

const COLUMNS: usize = 100;
/// The heading over directives that nginx's sources do not have.
const BEYOND: &str = "Not in nginx's sources";

/// The reference of every directive that Weir has.
pub fn directives() -> String {
    let supported = entry::supported();
    let mut out = String::from("# Directives\n");
    paragraph(
        &mut out,
        &format!(
            "This page lists every directive that Weir supports; `weir reference NAME` prints one \
             of them. The behavior is that of nginx {version} unless a directive says \"Differs \
             from nginx\". [unsupported.md](unsupported.md) lists the directives of nginx that \
             Weir does not support.",
            version = crate::name::NGINX_VERSION,
        ),
    );
    paragraph(
        &mut out,
        "`TIME` is a number with a unit (`500ms`, `30s`, `5m`, `1h30m`, `1d`); without a unit it \
         means seconds. `SIZE` is a number of bytes, optionally with `k`, `m`, or for files `g`. \
         `STRING` can contain variables, `TEXT` cannot. `cargo xtask docs` generates this page \
         from the declarations in the source code; do not edit it.",
    );
    index(&mut out, &supported);
    for (name, entries) in &supported {
        let _ = write!(out, "\n## {name}\n");
        for entry in entries {
            if entries.len() > 1 {
                let _ = write!(out, "\n### {name} in {}\n", entry.contexts());
            }
            section(&mut out, entry);
        }
    }
    out
}

/// Links to every directive, by nginx's modules.
fn index(out: &mut String, supported: &BTreeMap<String, Vec<DirectiveEntry>>) {
    let mut modules: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut beyond = Vec::new();
    for entry in supported.values().flatten() {
        match entry.in_nginx() {
            Some(known) => modules.entry(known.module).or_default().push(&entry.name),
            None => beyond.push(&*entry.name),
        }
    }
    out.push_str("\n## By module\n");
    for (module, mut names) in modules.into_iter().chain([(BEYOND, beyond)]) {
        names.dedup();
        let links: Vec<_> = names.iter().map(|name| format!("[{name}](#{name})")).collect();
        paragraph(out, &format!("**{module}:** {}", links.join(", ")));
    }
}

fn section(out: &mut String, entry: &DirectiveEntry) {
    let syntax: Vec<_> = entry.syntax().iter().map(|form| format!("`{form}`")).collect();
    let default = entry.default().map_or("none".to_owned(), |text| format!("`{text}`"));
    out.push('\n');
    item(out, "Syntax", &syntax.join(" or "));
    item(out, "Default", &default);
    item(out, "Context", &entry.contexts());
    if entry.in_nginx().is_none() {
        item(out, "Module", "not in nginx's sources");
    }
    let mut before = "";
    for text in &entry.doc.paragraphs {
        if text.starts_with("- ") && before.starts_with("- ") {
            lines(out, &linked(text));
        } else {
            paragraph(out, &linked(text));
        }
        before = text;
    }
    if !entry.doc.example.is_empty() {
        let _ = write!(out, "\n```nginx\n{}\n```\n", entry.doc.example.join("\n"));
    }
    for text in &entry.doc.differs {
        paragraph(out, &format!("**Differs from nginx:** {}", linked(text)));
    }
}

fn item(out: &mut String, name: &str, text: &str) {
    lines(out, &format!("- **{name}:** {text}"));
}

pub(super) fn paragraph(out: &mut String, text: &str) {
    out.push('\n');
    lines(out, text);
}

fn lines(out: &mut String, text: &str) {
    for line in wrap(text, COLUMNS) {
        let _ = writeln!(out, "{line}");
    }
}

/// Pages of docs/ become links.
pub(super) fn linked(text: &str) -> String {
    let words = text.split(' ').map(|word| {
        let file = word.split_once("docs/").and_then(|(before, rest)| {
            let (page, after) = rest.split_once(".md")?;
            matches!(before, "" | "(").then(|| format!("{before}[{page}.md]({page}.md){after}"))
        });
        file.unwrap_or_else(|| word.to_owned())
    });
    words.collect::<Vec<_>>().join(" ")
}

/// What Weir does in lenient mode instead of a directive.
fn instead(known: &KnownDirective) -> String {
    match lacking::of(known) {
        Some(row) if row.of.is_empty() => row.class.instead().to_owned(),
        Some(row) => format!("belongs to `{}`", row.of),
        None => String::new(),
    }
}

/// The directives of nginx that Weir does not have.
pub fn unsupported() -> String {
    let (obsolete, missing): (Vec<&KnownDirective>, Vec<_>) = entry::missing()
        .into_iter()
        .partition(|known| matches!(known.standing, DirectiveSupport::Obsolete { .. }));
    let mut out = String::from("# Unsupported directives\n");
    paragraph(
        &mut out,
        &format!(
            "This page lists the directives of nginx {} that this version of Weir does not \
             support. Weir rejects a configuration that uses one of them, and reports the file and \
             line, unless the directive has no effect, such as `ssi off`, or is a setting of a \
             directive that the configuration does not use. With `--lenient` the server starts and \
             does what the last column says ([check.md](check.md)). [directives.md](directives.md) \
             lists the supported directives. `cargo xtask docs` generates this page; do not edit \
             it.",
            crate::name::NGINX_VERSION,
        ),
    );
    let mut modules: BTreeMap<&str, Vec<&KnownDirective>> = BTreeMap::new();
    missing.iter().for_each(|known| modules.entry(known.module).or_default().push(known));
    for (module, rows) in modules {
        let _ = write!(
            out,
            "\n## {module}\n\n| directive | context | with `--lenient` |\n|---|---|---|\n"
        );
        for known in rows {
            let contexts = entry::contexts_of(known);
            let _ = writeln!(out, "| `{}` | {contexts} | {} |", known.name, instead(known));
        }
    }
    out.push_str("\n## Rejected on purpose\n");
    paragraph(&mut out, "These directives belong to NGINX Plus and are not in nginx's sources.");
    out.push_str("\n| directive | why |\n|---|---|\n");
    for entry in entry::refused() {
        let why = entry.doc.refused.as_deref().unwrap_or_default();
        let _ = writeln!(out, "| `{}` | {why} |", entry.name);
    }
    out.push_str("\n## Obsolete\n");
    let names: Vec<_> = obsolete.iter().map(|known| format!("`{}`", known.name)).collect();
    paragraph(
        &mut out,
        &format!("Accepted with a warning and ignored, as in nginx: {}.", names.join(", ")),
    );
    out
}
