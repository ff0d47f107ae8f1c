//! The report as JSON. docs/check.md explains the fields; new ones may be added.

use conf::{Error, Sources};
use serde::Serialize;

use super::report::{Finding, ReportPosition, UnsupportedItem, place};
use crate::name::name;

/// The fields in their order.
#[derive(Serialize)]
struct ReportRecord<'r> {
    weir: &'static str,
    file: &'r str,
    exit_code: u8,
    errors: Vec<MessageRecord<'r>>,
    findings: &'r [Finding],
    settings: Vec<SettingRecord<'r>>,
    warnings: Vec<MessageRecord<'r>>,
    remarks: Vec<MessageRecord<'r>>,
}

#[derive(Serialize)]
struct MessageRecord<'r> {
    message: &'r str,
    help: Option<&'r str>,
    #[serde(flatten, serialize_with = "place")]
    place: Option<ReportPosition>,
}

#[derive(Serialize)]
struct SettingRecord<'r> {
    directive: &'r str,
    lines: usize,
}

/// The whole report, on one line.
pub fn text(report: &UnsupportedItem<'_>) -> String {
    let settings = report.settings.iter();
    let record = ReportRecord {
        weir: name().version,
        file: &report.file,
        exit_code: report.exit_code(),
        errors: messages(&report.errors, report.sources),
        findings: &report.findings,
        settings: settings
            .map(|(directive, lines)| SettingRecord { directive, lines: *lines })
            .collect(),
        warnings: messages(&report.warnings, report.sources),
        remarks: messages(&report.remarks, report.sources),
    };
    serde_json::to_string(&record).expect("field names are strings") + "\n"
}

fn messages<'r>(errors: &[&'r Error], sources: &Sources) -> Vec<MessageRecord<'r>> {
    let message = |error: &&'r Error| MessageRecord {
        message: &error.message,
        help: error.help.as_deref(),
        place: ReportPosition::of(error.span.or(error.mark), sources),
    };
    errors.iter().map(message).collect()
}
