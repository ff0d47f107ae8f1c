//! What a control plane says and the server's configuration decides instead: told once each.

use std::collections::BTreeSet;

#[derive(Debug, Default)]
pub(super) struct XdsNotes {
    told: BTreeSet<&'static str>,
    lines: Vec<String>,
}

impl XdsNotes {
    /// A cluster has a setting that is not used.
    pub(super) fn note(&mut self, setting: &'static str, cluster: &str) {
        if self.told.insert(setting) {
            self.lines.push(format!("{setting} is not used (cluster {cluster}, and maybe others)"));
        }
    }

    /// Lines for the log since the last call.
    pub(super) fn lines(&mut self) -> Vec<String> {
        std::mem::take(&mut self.lines)
    }
}
