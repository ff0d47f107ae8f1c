//! The changes that are worth trying for a configuration.
//!
//! The [settings](super::settings) are a table; of these, a configuration has as candidates those
//! that apply to it and change something in it.

use sandbox::EditableTree;

use super::edits::TuneChange;
use super::server::TunedServer;
use super::settings::{SETTINGS, TuneSetting};

/// A change that is worth trying.
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
        // Where `sendfile` is on, `sendfile` and `tcp_nopush` together are but the latter.
        let is_new = found.iter().all(|(_, known)| *known != changed);
        if !changes.is_empty() && is_new {
            found.push((candidate, changed));
        }
    }
    found.into_iter().map(|(candidate, _)| candidate).collect()
}

impl TuneCandidate {
    /// Its name, unique among the candidates of a configuration.
    pub fn name(&self) -> &'static str {
        self.setting.name
    }

    /// Of candidates with the same subject, at most one can be taken.
    pub fn subject(&self) -> &'static str {
        self.setting.subject
    }

    /// Why it may matter, in a sentence.
    pub fn why(&self) -> &'static str {
        self.setting.why
    }

    /// The configuration with it, and the lines that differ.
    pub fn apply(&self, tree: &EditableTree) -> (EditableTree, Vec<TuneChange>) {
        let mut tree = tree.clone();
        let edits = self.setting.edits.iter();
        let changes = edits.flat_map(|edit| edit.apply(&mut tree)).collect();
        (tree, changes)
    }

    /// The configuration with several of them.
    pub fn apply_all(candidates: &[Self], tree: &EditableTree) -> EditableTree {
        candidates.iter().fold(tree.clone(), |tree, candidate| candidate.apply(&tree).0)
    }
}

#[cfg(test)]
mod tests;
