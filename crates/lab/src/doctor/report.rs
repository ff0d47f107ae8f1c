//! The findings as text and as JSON.

use std::ffi::OsStr;
use std::fmt::Write as _;

use super::finding::DoctorFinding;
use super::machine::MachineLimits;

/// The most places shown for one finding.
const PLACES_MAX: usize = 5;

/// The report for a terminal.
pub(super) fn text(findings: &[DoctorFinding], machine: &MachineLimits, file: &OsStr) -> String {
    let mut text = String::new();
    for finding in findings {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{}: {}", finding.check, finding.what);
        let _ = writeln!(text, "  why: {}", finding.why);
        let _ = writeln!(text, "  fix: {}", finding.fix);
        if !finding.places.is_empty() {
            let _ = writeln!(text, "  at:  {}", places(&finding.places));
        }
        text.push('\n');
    }
    let file = file.to_string_lossy();
    let of_machine = match (machine.processors, machine.files) {
        (Some(processors), Some(files)) => {
            format!(" on {processors} processors with {files} descriptors")
        }
        _ => String::new(),
    };
    let _ = match findings.len() {
        0 => writeln!(text, "{file}{of_machine}: nothing found"),
        1 => writeln!(text, "{file}{of_machine}: 1 finding"),
        count => writeln!(text, "{file}{of_machine}: {count} findings"),
    };
    text
}

fn places(all: &[String]) -> String {
    let shown = all[..all.len().min(PLACES_MAX)].join(", ");
    match all.len().saturating_sub(PLACES_MAX) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// An array of objects.
pub(super) fn json(findings: &[DoctorFinding]) -> String {
    let mut text = serde_json::to_string_pretty(findings).unwrap_or_default();
    text.push('\n');
    text
}
