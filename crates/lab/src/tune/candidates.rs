//! The changes worth trying for a configuration.
//!
//! The [settings](super::settings) are a table; the candidates of a configuration are those that
//! apply to it and change it.

use sandbox::EditableTree;

use super::edits::TuneChange;
use super::server::TunedServer;
use super::settings::{SETTINGS, TuneSetting};

/// A change worth trying.
#[derive(Clone, Copy, Debug)]
pub struct TuneCandidate {
    setting: &'static TuneSetting,
}

/// The candidates for a configuration, in a fixed order.
pub fn candidates(tree: &EditableTree, server: TunedServer) -> Vec<TuneCandidate> {
    let applies = |setting: &&TuneSetting| (setting.servers)(server) && (setting.when)(tree);
    let all = SETTINGS.iter().filter(applies).map(|setting| TuneCandidate { setting });
    let mut found: Vec<(TuneCandidate, EditableTree)> = Vec::new();
    for candidate in all {
        let (changed, changes) = candidate.apply(tree);
        // `sendfile-nopush` also turns `sendfile` on; where that is on already, nothing but
        // `tcp_nopush` is left.
        let is_new = found.iter().all(|(_, known)| *known != changed);
        if !changes.is_empty() && is_new {
            found.push((candidate, changed));
        }
    }
    found.into_iter().map(|(candidate, _)| candidate).collect()
}

impl TuneCandidate {
    /// The name, unique among the candidates of a configuration.
    pub fn name(&self) -> &'static str {
        self.setting.name
    }

    /// At most one candidate of a subject can be kept.
    pub fn subject(&self) -> &'static str {
        self.setting.subject
    }

    /// The reason to try it, in a sentence.
    pub fn why(&self) -> &'static str {
        self.setting.why
    }

    /// The configuration with the change, and the changed lines.
    pub fn apply(&self, tree: &EditableTree) -> (EditableTree, Vec<TuneChange>) {
        let mut tree = tree.clone();
        let edits = self.setting.edits.iter();
        let changes = edits.flat_map(|edit| edit.apply(&mut tree)).collect();
        (tree, changes)
    }

    /// The configuration with several candidates.
    pub fn apply_all(candidates: &[Self], tree: &EditableTree) -> EditableTree {
        candidates.iter().fold(tree.clone(), |tree, candidate| candidate.apply(&tree).0)
    }
}

#[cfg(test)]
mod tests;
