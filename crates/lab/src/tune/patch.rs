//! The result of a search as changes of the user's own lines, each with its measured effect.
//!
//! It is written for people: each change has its file and line, the old line and the new one, and
//! its gain as comments. A line that several candidates change is shown once.

use std::fmt::Write as _;

use sandbox::EditableTree;
use serde::Serialize;

use super::candidates::TuneCandidate;
use super::confirmation::TuneResult;
use super::edits::TuneChange;
use super::gain::TuneEffect;
use super::goal::TuneGoal;

/// All changes, with their effects.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TunePatch {
    /// The figure to improve.
    pub goal: &'static str,
    /// The effect of all changes together.
    pub together: Option<PatchEffect>,
    /// The changes; those of the most effective candidate first.
    pub hunks: Vec<TuneHunk>,
    /// The number of candidates tried.
    pub tried: usize,
    /// The names of the candidates that seemed to gain something and could not be confirmed.
    pub unconfirmed: Vec<&'static str>,
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
    fn new(goal: TuneGoal, effect: TuneEffect) -> Self {
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
        let mut tree = tree.clone();
        let mut hunks = Vec::new();
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
        let together = result.together.map(|effect| PatchEffect::new(goal, effect));
        let names = result.dropped.iter().filter_map(|number| candidates.get(*number));
        let unconfirmed = names.map(TuneCandidate::name).collect();
        Self { goal: goal.figure(), together, hunks, tried: candidates.len(), unconfirmed }
    }

    /// The text for the terminal.
    pub fn text(&self) -> String {
        let mut out = String::new();
        let tried = self.tried;
        if self.hunks.is_empty() && self.unconfirmed.is_empty() {
            return format!("# None of {tried} settings that were tried gains anything here.\n");
        }
        if let Some(together) = &self.together {
            let _ = writeln!(out, "# All changes together: {}", together.told);
        }
        if !self.unconfirmed.is_empty() {
            let (names, doubt) = (self.unconfirmed.join(", "), "a longer --budget may tell");
            let _ =
                writeln!(out, "# Seemed to gain something, but not for sure: {names} ({doubt})");
        }
        let mut last: Option<&TuneHunk> = None;
        for hunk in &self.hunks {
            if last.is_none_or(|last| !last.has_heading_of(hunk)) {
                out.push_str(&hunk.heading());
            }
            out.push_str(&hunk.lines());
            last = Some(hunk);
        }
        out
    }
}

/// Adds a change, to the hunk of the same line if there is one. Each line of a file that is
/// included twice occurs twice in the tree.
fn note(change: TuneChange, reason: &PatchReason, hunks: &mut Vec<TuneHunk>) {
    let place = change.place.to_string();
    let is_same_line = |hunk: &&mut TuneHunk| match change.number {
        Some(_) if hunk.number == change.number => true,
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
        }),
    }
}

impl TuneHunk {
    fn has_heading_of(&self, other: &Self) -> bool {
        self.heading() == other.heading()
    }

    fn heading(&self) -> String {
        let mut out = format!("\n@ {}", self.place);
        if let Some(block) = &self.block {
            let _ = write!(out, " in {block}");
        }
        out.push('\n');
        for reason in &self.reasons {
            let _ = writeln!(out, "# {}", reason.effect.told);
            let _ = writeln!(out, "# {}: {}", reason.name, reason.why);
        }
        out
    }

    fn lines(&self) -> String {
        let old = self.old.as_ref().map_or(String::new(), |old| format!("- {old}\n"));
        format!("{old}+ {}\n", self.new)
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
        let result = TuneResult { kept, together, dropped: Vec::new() };
        TunePatch::new(&tree, &all, &result, goal)
    }

    #[test]
    fn each_line_is_shown_with_its_effect() {
        let patch = patch(TEXT, &["pinned-workers", "sendfile-nopush"], TuneGoal::Rate);
        assert_eq!(
            patch.text(),
            "# All changes together: +12.3 % requests/s [+10.1 +14.0], 40 blocks

@ /etc/nginx/nginx.conf:1
# +12.3 % requests/s [+10.1 +14.0], 40 blocks
# pinned-workers: one worker for each processor, which stays on it and finds its data in its cache
- worker_processes 1;
+ worker_processes auto;
+ worker_cpu_affinity auto;

@ /etc/nginx/nginx.conf:3 in http
# +12.3 % requests/s [+10.1 +14.0], 40 blocks
# sendfile-nopush: the kernel sends files itself, and the header goes into the same packet
+ sendfile on;
+ tcp_nopush on;
"
        );
    }

    #[test]
    fn a_line_that_several_change_is_shown_once() {
        let patch = patch(TEXT, &["backlog", "reuseport"], TuneGoal::Cpu);
        assert_eq!(patch.hunks.len(), 1);
        let text = patch.text();
        let line = "- listen 80;\n+ listen 80 backlog=4096 reuseport;\n";
        assert!(text.ends_with(line), "{text}");
        assert!(
            text.contains("-11.0 % CPU/request [-12.3 -9.2], 40 blocks\n# backlog: "),
            "{text}"
        );
        assert!(text.contains("\n# reuseport: "), "{text}");
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
