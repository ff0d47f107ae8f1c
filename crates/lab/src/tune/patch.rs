//! The result of a search as changes of the user's own lines, each with its measured effect.
//!
//! The text is a unified diff of the user's own files, which `patch` applies; above it, comments
//! have the gain of each candidate. A line that several candidates change is shown once.

use std::fmt::Write as _;

use sandbox::EditableTree;
use serde::Serialize;

use super::candidates::TuneCandidate;
use super::confirmation::TuneResult;
use super::disturbance::TuneDisturbance;
use super::edits::TuneChange;
use super::gain::TuneEffect;
use super::goal::TuneGoal;
use super::text_change::{self, TextSpot};

/// All changes, with their effects.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TunePatch {
    /// The figure to improve.
    pub goal: &'static str,
    /// The effect of all changes together.
    pub together: Option<PatchEffect>,
    /// The changes; those of the most effective candidate first.
    pub hunks: Vec<TuneHunk>,
    /// The same as a unified diff.
    pub diff: String,
    /// The number of candidates tried.
    pub tried: usize,
    /// The names of the candidates that seemed to gain something and could not be confirmed.
    pub unconfirmed: Vec<&'static str>,
    /// The change of all figures with all changes, in blocks of their own.
    pub figures: Vec<PatchEffect>,
    /// The largest gain, in per cent, that a candidate may have of which nothing was seen.
    pub others_max: Option<f64>,
    /// How far the machine was disturbed.
    pub disturbance: TuneDisturbance,
}

/// A change of a line.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TuneHunk {
    /// `FILE:LINE` of the changed line, or of the block that gets a line.
    pub place: String,
    /// The innermost block.
    pub block: Option<String>,
    /// The old line; `None` if a line is added.
    pub old: Option<String>,
    /// The new line.
    pub new: String,
    /// The candidates that change the line.
    pub reasons: Vec<PatchReason>,
    #[serde(skip)]
    number: Option<usize>,
    #[serde(skip)]
    spot: Option<TextSpot>,
}

/// A candidate that changes a line.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PatchReason {
    pub name: &'static str,
    /// The reason to try it.
    pub why: &'static str,
    /// The effect beside the other candidates.
    pub effect: PatchEffect,
}

/// A change of the goal's figure in per cent, with its interval.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PatchEffect {
    /// The median.
    pub percent: f64,
    pub low: f64,
    pub high: f64,
    pub blocks: usize,
    /// The effect as text.
    pub told: String,
}

impl PatchEffect {
    pub(super) fn new(goal: TuneGoal, effect: TuneEffect) -> Self {
        let percent = goal.percent(effect.gain);
        let (blocks, told) = (effect.blocks, goal.told(effect.gain));
        let told = format!("{told}, {blocks} blocks");
        Self { percent: percent.value, low: percent.low, high: percent.high, blocks, told }
    }
}

impl TunePatch {
    /// The changes of a tree by those candidates that the result keeps.
    pub fn new(
        tree: &EditableTree,
        candidates: &[TuneCandidate],
        result: &TuneResult,
        goal: TuneGoal,
    ) -> Self {
        let sources = tree.sources.clone();
        let mut tree = tree.clone();
        let mut hunks: Vec<TuneHunk> = Vec::new();
        for effect in &result.kept {
            let Some(candidate) = candidates.get(effect.candidate) else { continue };
            let (changed, changes) = candidate.apply(&tree);
            tree = changed;
            let reason = PatchReason {
                name: candidate.name(),
                why: candidate.why(),
                effect: PatchEffect::new(goal, *effect),
            };
            changes.into_iter().for_each(|change| note(change, &reason, &mut hunks));
        }
        let changes = hunks.iter().filter_map(|hunk| Some((hunk.spot?, &*hunk.new)));
        let diff = text_change::diff(&sources, changes);
        let together = result.together.map(|effect| PatchEffect::new(goal, effect));
        let subjects: Vec<&str> = result
            .kept
            .iter()
            .filter_map(|kept| Some(candidates.get(kept.candidate)?.subject()))
            .collect();
        let dropped = result.dropped.iter().filter_map(|number| candidates.get(*number));
        // Of several values of a setting, the best is kept.
        let dropped = dropped.filter(|candidate| !subjects.contains(&candidate.subject()));
        let unconfirmed = dropped.map(TuneCandidate::name).collect();
        Self {
            goal: goal.figure(),
            together,
            hunks,
            diff,
            tried: candidates.len(),
            unconfirmed,
            figures: Vec::new(),
            others_max: result.others_max.map(|gain| (gain - 1.0) * 100.0),
            disturbance: TuneDisturbance::default(),
        }
    }

    /// The text for the terminal.
    pub fn text(&self) -> String {
        let warning = self.disturbance.warning();
        let mut out = warning.map(|warning| format!("# {warning}\n")).unwrap_or_default();
        let tried = self.tried;
        if self.hunks.is_empty() && self.unconfirmed.is_empty() {
            let _ =
                writeln!(out, "# None of {tried} settings that were tried gains anything here.");
            return out + &self.bound();
        }
        if let Some(together) = &self.together {
            let _ = writeln!(out, "# All changes together: {}", together.told);
        }
        for figure in &self.figures {
            let _ = writeln!(out, "#     {}", figure.told);
        }
        if !self.unconfirmed.is_empty() {
            let (names, doubt) = (self.unconfirmed.join(", "), "a longer --budget may tell");
            let _ =
                writeln!(out, "# Seemed to gain something, but not for sure: {names} ({doubt})");
        }
        let mut shown = Vec::new();
        for reason in self.hunks.iter().flat_map(|hunk| &hunk.reasons) {
            if !shown.contains(&reason.name) {
                shown.push(reason.name);
                let _ = writeln!(out, "# {}: {}", reason.name, reason.effect.told);
                let _ = writeln!(out, "#     {}", reason.why);
            }
        }
        out + &self.bound() + &self.diff
    }

    /// What may have been overlooked.
    fn bound(&self) -> String {
        let line = |percent: f64| {
            format!("# Gains of the others up to {percent:.1} % cannot be excluded (95 %).\n")
        };
        self.others_max.filter(|percent| *percent > 0.0).map(line).unwrap_or_default()
    }
}

/// Adds a change, to the hunk of the same line if there is one. Each line of a file that is
/// included twice occurs twice in the tree.
fn note(change: TuneChange, reason: &PatchReason, hunks: &mut Vec<TuneHunk>) {
    let place = change.place.to_string();
    let is_same_line = |hunk: &&mut TuneHunk| match change.number {
        Some(_) if hunk.number == change.number => true,
        // A line that another candidate added is changed again.
        None if change.old.is_some() => change.old.as_ref() == Some(&hunk.new),
        _ => hunk.place == place && hunk.old == change.old && hunk.new == change.new,
    };
    match hunks.iter_mut().find(is_same_line) {
        Some(hunk) => {
            hunk.new = change.new;
            if !hunk.reasons.contains(reason) {
                hunk.reasons.push(reason.clone());
            }
        }
        None => hunks.push(TuneHunk {
            place,
            block: change.block,
            old: change.old,
            new: change.new,
            reasons: vec![reason.clone()],
            number: change.number,
            spot: change.spot,
        }),
    }
}

#[cfg(test)]
mod tests {
    use statistics::Interval;

    use super::*;
    use crate::testing::tree;
    use crate::tune::candidates::candidates;
    use crate::tune::server::TunedServer;

    const TEXT: &str = "worker_processes 1;\nevents {}\nhttp {\n server {\n  listen 80;\n \
                        root /srv;\n }\n}\n";

    /// The patch of these candidates, each with a gain of 12.3 %.
    fn patch(text: &str, names: &[&str], goal: TuneGoal) -> TunePatch {
        let tree = tree(text);
        let all = candidates(&tree, TunedServer::Nginx(1, 22, 1));
        let gain = Interval { value: 1.123, low: 1.101, high: 1.14 };
        let effect = |name: &&str| TuneEffect {
            candidate: all.iter().position(|candidate| candidate.name() == *name).unwrap(),
            gain,
            blocks: 40,
        };
        let kept: Vec<TuneEffect> = names.iter().map(effect).collect();
        let together = kept.first().copied();
        let result = TuneResult { kept, together, ..TuneResult::default() };
        TunePatch::new(&tree, &all, &result, goal)
    }

    #[test]
    fn each_line_is_shown_with_its_effect() {
        let patch = patch(TEXT, &["pinned-workers", "sendfile-nopush"], TuneGoal::Rate);
        assert_eq!(
            patch.text(),
            "# All changes together: +12.3 % requests/s [+10.1 +14.0], 40 blocks
# pinned-workers: +12.3 % requests/s [+10.1 +14.0], 40 blocks
#     one worker for each processor, which stays on it and finds its data in its cache
# sendfile-nopush: +12.3 % requests/s [+10.1 +14.0], 40 blocks
#     the kernel sends files itself, and the header goes into the same packet
--- a/etc/nginx/nginx.conf
+++ b/etc/nginx/nginx.conf
@@ -1,6 +1,9 @@
-worker_processes 1;
+worker_cpu_affinity auto;
+worker_processes auto;
 events {}
 http {
+ sendfile on;
+ tcp_nopush on;
  server {
   listen 80;
  root /srv;
"
        );
    }

    #[test]
    fn a_line_that_several_change_is_shown_once() {
        let patch = patch(TEXT, &["backlog", "reuseport"], TuneGoal::Cpu);
        assert_eq!(patch.hunks.len(), 1);
        let text = patch.text();
        let lines = "-  listen 80;\n+  listen 80 backlog=4096 reuseport;\n";
        assert!(text.contains(lines), "{text}");
        assert!(
            text.contains("# backlog: -11.0 % CPU/request [-12.3 -9.2], 40 blocks\n"),
            "{text}"
        );
        assert!(text.contains("\n# reuseport: -11.0 % "), "{text}");
    }

    #[test]
    fn unconfirmed_candidates_are_named() {
        let tree = tree(TEXT);
        let all = candidates(&tree, TunedServer::Weir);
        let result = TuneResult { dropped: vec![0, 1], ..TuneResult::default() };
        let text = TunePatch::new(&tree, &all, &result, TuneGoal::Rate).text();
        let names = [all[0].name(), all[1].name()].join(", ");
        assert!(text.contains(&names) && text.contains("a longer --budget"), "{text}");
    }

    #[test]
    fn the_largest_possible_gain_of_the_others_is_named() {
        let tree = tree(TEXT);
        let all = candidates(&tree, TunedServer::Weir);
        let result = TuneResult { others_max: Some(1.0314), ..TuneResult::default() };
        let text = TunePatch::new(&tree, &all, &result, TuneGoal::Cpu).text();
        assert!(text.ends_with("# Gains of the others up to 3.1 % cannot be excluded (95 %).\n"));
    }

    #[test]
    fn a_result_without_changes_is_one_line() {
        let patch = patch(TEXT, &[], TuneGoal::Rate);
        assert_eq!(
            patch.text(),
            format!("# None of {} settings that were tried gains anything here.\n", patch.tried)
        );
    }

    #[test]
    fn a_file_that_is_included_twice_changes_once() {
        let mut files = conf::MemoryFiles::default()
            .with("/c/n", "http { include l; server { include l; root /srv; } }")
            .with("/c/l", "access_log /a;\n");
        let tree = EditableTree::read(std::path::Path::new("/c/n"), &mut files).unwrap();
        let all = candidates(&tree, TunedServer::Weir);
        let log = all.iter().position(|candidate| candidate.name() == "access-log-buffer").unwrap();
        let gain = Interval { value: 2.0, low: 1.5, high: 3.0 };
        let effect = TuneEffect { candidate: log, gain, blocks: 40 };
        let result = TuneResult { kept: vec![effect], ..TuneResult::default() };
        let patch = TunePatch::new(&tree, &all, &result, TuneGoal::Rate);
        let [hunk] = &patch.hunks[..] else { panic!("{patch:?}") };
        assert_eq!(hunk.place, "/c/l:1");
        let json = serde_json::to_value(&patch).unwrap();
        assert_eq!(json["hunks"][0]["new"], "access_log /a combined buffer=64k flush=5s;");
        assert_eq!(json["hunks"][0]["reasons"][0]["effect"]["percent"], 100.0);
    }
}
