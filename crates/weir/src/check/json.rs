//! The report as JSON. docs/check.md says what the fields mean; new ones may be added.

use std::fmt::Write;

use conf::Error;

use super::report::{Finding, ReportPosition, UnsupportedItem, word};
use crate::name::name;

/// The whole report, on one line.
pub fn text(report: &UnsupportedItem<'_>) -> String {
    let UnsupportedItem { file, errors, findings, settings, warnings, remarks, sources } = report;
    let message = |error: &&Error| {
        let place = place(ReportPosition::of(error.span.or(error.mark), sources).as_ref());
        let help = error.help.as_deref().map_or("null".to_owned(), quoted);
        format!("{{\"message\":{},\"help\":{help},{place}}}", quoted(&error.message))
    };
    let settings = settings
        .iter()
        .map(|(what, count)| format!("{{\"directive\":{},\"lines\":{count}}}", quoted(what)));
    format!(
        "{{\"weir\":{},\"file\":{},\"exit_code\":{},\"errors\":{},\"findings\":{},\
         \"settings\":{},\"warnings\":{},\"remarks\":{}}}\n",
        quoted(name().version),
        quoted(file),
        report.exit_code(),
        list(errors.iter().map(message)),
        list(findings.iter().map(finding)),
        list(settings),
        list(warnings.iter().map(message)),
        list(remarks.iter().map(message)),
    )
}

fn finding(finding: &Finding) -> String {
    let Finding { what, module, instead, starts, .. } = finding;
    format!(
        "{{\"consequence\":\"{}\",\"directive\":{},\"module\":{},\"instead\":{},\
         \"starts\":{starts},{}}}",
        word(finding.consequence),
        quoted(what),
        module.map_or("null".to_owned(), quoted),
        quoted(instead),
        place(finding.place.as_ref()),
    )
}

fn place(place: Option<&ReportPosition>) -> String {
    match place {
        Some(ReportPosition { file, line }) => format!("\"file\":{},\"line\":{line}", quoted(file)),
        None => "\"file\":null,\"line\":null".to_owned(),
    }
}

fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(","))
}

fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => out.extend(['\\', character]),
            '\0'..='\u{1f}' => {
                // Writing to a string does not fail.
                let _ = write!(out, "\\u{:04x}", u32::from(character));
            }
            _ => out.push(character),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_quoted() {
        assert_eq!(quoted("a \"b\\\n\u{1f} é"), "\"a \\\"b\\\\\\u000a\\u001f é\"");
    }
}
