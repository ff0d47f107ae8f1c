//! Verdicts and how they are told: the lines that differ, and a summary.
//!
//! A difference is explained only where its case notes exactly these lines; a note that no longer
//! holds is a difference itself.

use super::case::{Case, CaseConnection, Differs};
use super::diff::diff as diff_of;

/// Of a difference, this much is shown where all cases run; a single case shows everything.
pub(super) const DIFFERENCE_LINES_MAX: usize = 16;

/// A request may be longer than anybody wants to read.
const TITLE_CHARS_MAX: usize = 150;

#[derive(Debug, PartialEq)]
pub(super) enum RequestVerdict {
    Same,
    /// They differ as the case says.
    Explained,
    Different(Vec<String>),
}

/// What became of one case: a verdict for each of its requests, and what concerns all of it.
pub(super) struct CaseReport {
    pub(super) name: String,
    /// The title and the verdict of each request.
    pub(super) verdicts: Vec<(String, RequestVerdict)>,
    /// In what the servers differ beside that.
    pub(super) whole: Vec<String>,
}

impl CaseReport {
    /// Whether everything is the same, or as the case says.
    pub(super) fn is_fine(&self) -> bool {
        let differs = |verdict: &RequestVerdict| matches!(verdict, RequestVerdict::Different(_));
        self.whole.is_empty() && !self.verdicts.iter().any(|(_, verdict)| differs(verdict))
    }

    /// Of a case that could not be played: everything differs.
    pub(super) fn not_started(case: &Case, error: String) -> CaseReport {
        let titles = case.requests.iter().map(|request| title(case, request));
        let verdicts = titles.map(|title| (title, RequestVerdict::Different(vec![])));
        CaseReport { name: case.name.clone(), verdicts: verdicts.collect(), whole: vec![error] }
    }
}

/// The place of a request in its case, and how it begins.
pub(super) fn title(case: &Case, request: &CaseConnection) -> String {
    let title = format!("{}.case:{}: {}", case.name, request.line, request.title);
    title.chars().take(TITLE_CHARS_MAX).collect()
}

/// Whether a difference is what the case expects. `is_noted`: the reference is the release that the
/// notes were made with.
pub(super) fn judge(
    mut diff: Vec<String>,
    expected: Option<&Differs>,
    any_order: bool,
    is_noted: bool,
) -> RequestVerdict {
    // Another release may already do as Weir does, unless Weir differs from all.
    let expected = expected
        .filter(|expected| is_noted || !diff.is_empty() || expected.reason.starts_with("Weir"));
    let mut expected_lines = expected.map(|e| e.lines.clone()).unwrap_or_default();
    if any_order {
        diff.sort();
        expected_lines.sort();
    }
    match (expected, diff.is_empty()) {
        (None, true) => RequestVerdict::Same,
        (Some(_), false) if diff == expected_lines => RequestVerdict::Explained,
        (Some(expected), _) => {
            let surprise = diff_of(&expected_lines, &diff);
            let reason = format!("not as its \"differs: {}\" says:", expected.reason);
            RequestVerdict::Different([vec![reason], surprise].concat())
        }
        (None, false) => RequestVerdict::Different(diff),
    }
}

/// Prints what differs and the summary.
pub(super) fn print(reports: &[CaseReport], lines_max: usize) -> Result<(), String> {
    let cases = reports.len();
    let mut counts = [0; 3];
    let mut cases_different = 0;
    for report in reports {
        for (title, verdict) in &report.verdicts {
            match verdict {
                RequestVerdict::Same => counts[0] += 1,
                RequestVerdict::Explained => counts[1] += 1,
                RequestVerdict::Different(diff) => {
                    counts[2] += 1;
                    print_lines(title, diff, lines_max);
                }
            }
        }
        if !report.whole.is_empty() {
            cases_different += 1;
            let title = format!("{}.case: as a whole", report.name);
            print_lines(&title, &report.whole, lines_max);
        }
    }
    let [same, explained, different] = counts;
    println!(
        "{} requests in {cases} configurations: {same} same, {explained} explained, \
         {different} different",
        same + explained + different
    );
    match different + cases_different {
        0 => Ok(()),
        _ => Err("the servers differ".into()),
    }
}

/// Prints lines under a title, at most `lines_max`; nothing where there are none.
pub(super) fn print_lines(title: &str, lines: &[String], lines_max: usize) {
    if lines.is_empty() {
        return;
    }
    println!("{title}\n{}", lines[..lines.len().min(lines_max)].join("\n"));
    if lines.len() > lines_max {
        println!("... {} lines more", lines.len() - lines_max);
    }
    println!();
}
