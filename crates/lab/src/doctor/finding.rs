//! The findings of the checks.

use conf::{Directive, Span};
use serde::Serialize;

use super::configuration::ExaminedConfig;

/// One problem.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct DoctorFinding {
    /// The check's name.
    pub(super) check: &'static str,
    /// The problem, with the numbers that were found.
    pub(super) what: String,
    /// Why it hurts.
    pub(super) why: &'static str,
    /// The command, or the line of the configuration, that fixes it.
    pub(super) fix: String,
    /// The lines of the configuration that cause it: `FILE:LINE`.
    pub(super) places: Vec<String>,
}

/// The findings so far.
pub(super) struct FindingList<'c> {
    configuration: &'c ExaminedConfig,
    check: &'static str,
    list: Vec<DoctorFinding>,
}

impl<'c> FindingList<'c> {
    pub(super) fn new(configuration: &'c ExaminedConfig) -> Self {
        Self { configuration, check: "", list: Vec::new() }
    }

    /// Attributes the following findings to a check.
    pub(super) fn begin(&mut self, check: &'static str) {
        self.check = check;
    }

    /// Adds a finding about the machine, or about the configuration as a whole.
    pub(super) fn add(&mut self, what: String, why: &'static str, fix: String) {
        self.add_at(&[], what, why, fix);
    }

    /// Adds a finding about some directives.
    pub(super) fn add_at(
        &mut self,
        directives: &[&Directive],
        what: String,
        why: &'static str,
        fix: String,
    ) {
        let place = |directive: &&Directive| self.place(directive.name.span);
        let places = directives.iter().map(place).collect();
        self.list.push(DoctorFinding { check: self.check, what, why, fix, places });
    }

    fn place(&self, span: Span) -> String {
        let place = self.configuration.sources.place(span);
        place.strip_prefix(" in ").unwrap_or(&place).to_owned()
    }

    pub(super) fn into_list(self) -> Vec<DoctorFinding> {
        self.list
    }
}
