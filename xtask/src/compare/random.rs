//! `compare --random N`: configurations and requests that a seeded generator makes of grammars.
//!
//! A case is a function of its area and its number. A difference is shrunk to what it needs and
//! printed as a case file, which reproduces it. What is accepted stands in
//! `conformance/known-differences.txt`.

mod areas;
mod case;
mod grammar;
mod mutate;
mod shrink;
mod tree;
mod valid;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::case::Case;
use super::comparison::ProgramComparison;
use super::known::Difference;
use super::options::RandomCases;
use super::{diff, report};
use areas::AREAS;
use case::RandomCase;

/// These wait more than the corpus does.
const CASES_AT_ONCE: usize = 12;

/// Tries before a difference counts: clocks tick, and other programs take ports.
const TRIES: usize = 3;

/// Plays the cases; an error where any differ and the difference is not accepted.
pub(super) fn run(comparison: &ProgramComparison<'_>, wanted: &RandomCases) -> Result<(), String> {
    let mut jobs = Vec::new();
    for area in AREAS.iter().filter(|area| area.name.contains(&wanted.area)) {
        let grammar = areas::grammar(area, &comparison.reference.version)?;
        jobs.extend((0..wanted.count).map(|n| (area, grammar.clone(), wanted.seed + n)));
    }
    if wanted.prints {
        for (area, grammar, number) in &jobs {
            print!("{}", RandomCase::generate(area, grammar, *number).text());
        }
        return Ok(());
    }
    let run = RandomRun {
        comparison,
        shrinks: wanted.shrinks,
        next: AtomicUsize::new(0),
        tally: Mutex::default(),
    };
    std::thread::scope(|scope| {
        for _ in 0..CASES_AT_ONCE {
            scope.spawn(|| {
                while let Some((area, grammar, number)) =
                    jobs.get(run.next.fetch_add(1, Ordering::Relaxed))
                {
                    run.case(RandomCase::generate(area, grammar, *number));
                }
            });
        }
    });
    run.tally.into_inner().expect("no thread panics with it").print(jobs.len())
}

struct RandomRun<'a> {
    comparison: &'a ProgramComparison<'a>,
    shrinks: bool,
    next: AtomicUsize,
    tally: Mutex<CaseTally>,
}

/// How the cases fared, and which differences there were, by their kind.
#[derive(Default)]
struct CaseTally {
    same: usize,
    /// The number of refused cases by the message of the reference.
    refused: BTreeMap<String, usize>,
    /// Cases that differed once, and not when they were played again.
    unsteady: Vec<String>,
    explained: usize,
    skipped: usize,
    different: BTreeMap<String, Vec<String>>,
}

enum CaseOutcome {
    Same,
    /// The reference does not start with it, for this reason, and neither does the other.
    Refused(String),
    /// The reference finds a mistake of its own.
    Skipped,
    Explained,
    /// Titles of requests and how they differ.
    Different(Vec<(String, Vec<String>)>),
}

impl RandomRun<'_> {
    fn case(&self, case: RandomCase) {
        let mut outcome = self.outcome(&case);
        let mut tries = 1;
        while tries < TRIES && matches!(outcome, CaseOutcome::Different(_)) {
            outcome = self.outcome(&case);
            tries += 1;
        }
        let CaseOutcome::Different(found) = &outcome else {
            let mut tally = self.tally.lock().expect("no thread panics with it");
            if tries > 1 {
                tally.unsteady.push(case.name);
            }
            match outcome {
                CaseOutcome::Same => tally.same += 1,
                CaseOutcome::Refused(why) => *tally.refused.entry(why).or_default() += 1,
                CaseOutcome::Skipped => tally.skipped += 1,
                _ => tally.explained += 1,
            }
            return;
        };
        let kind = kind(found);
        let small = match self.shrinks {
            true => shrink::shrink(case.clone(), |case| match self.outcome(case) {
                CaseOutcome::Different(found) => self::kind(&found) == kind,
                _ => false,
            }),
            false => case.clone(),
        };
        let mut tally = self.tally.lock().expect("no thread panics with it");
        tally.different.entry(kind).or_default().push(case.name);
        self.print(&small, found);
    }

    fn print(&self, case: &RandomCase, first: &[(String, Vec<String>)]) {
        println!("==== {}", case.name);
        if self.shrinks {
            println!("{}\n----", tree::text(&case.config) + &tree::text(&case.stream));
            println!("{}\n----", case.requests.join("\n"));
        }
        for (title, lines) in first.iter().take(if self.shrinks { 1 } else { 3 }) {
            report::print_lines(title, lines, report::DIFFERENCE_LINES_MAX);
        }
    }

    fn outcome(&self, case: &RandomCase) -> CaseOutcome {
        let text = case.text();
        let parsed = match Case::parse(case.name.clone(), &text) {
            Ok(parsed) => parsed,
            Err(e) => return CaseOutcome::Different(vec![(case.name.clone(), vec![e])]),
        };
        let (nginx, weir) = self.comparison.both(&parsed);
        let _ = std::fs::remove_dir_all(self.comparison.scratch.join(&case.name));
        let (nginx, weir) = match (nginx, weir) {
            (Err(why), Err(_)) => return CaseOutcome::Refused(refusal(&why)),
            (Err(e), _) | (_, Err(e)) => {
                return CaseOutcome::Different(vec![(case.name.clone(), vec![e])]);
            }
            (Ok(nginx), Ok(weir)) => (nginx, weir),
        };
        if nginx.whole.iter().any(|line| line.contains("[alert]")) {
            return CaseOutcome::Skipped;
        }
        let mut differs = false;
        let mut found = Vec::new();
        let mut note = |title: String, lines: Vec<String>, text: &str| {
            let difference = Difference { title: &title, lines: &lines, case: text };
            differs |= !lines.is_empty();
            if !self.comparison.known.explain(&difference) {
                found.push((title, lines));
            }
        };
        for (index, request) in parsed.requests.iter().enumerate() {
            let lines = diff::diff(&nginx.transcripts[index], &weir.transcripts[index]);
            note(report::title(&parsed, request), lines, &parsed.text_of(&text, index));
        }
        let whole = diff::diff(&nginx.whole, &weir.whole);
        note(format!("{}.case: as a whole", case.name), whole, &parsed.config);
        match (differs, found.is_empty()) {
            (false, _) => CaseOutcome::Same,
            (true, true) => CaseOutcome::Explained,
            (true, false) => CaseOutcome::Different(found),
        }
    }
}

impl CaseTally {
    fn print(self, cases: usize) -> Result<(), String> {
        let different = self.different.values().map(Vec::len).sum::<usize>();
        let mut kinds: Vec<_> = self.different.into_iter().collect();
        kinds.sort_by_key(|(_, names)| std::cmp::Reverse(names.len()));
        for (kind, names) in kinds {
            let some: Vec<&str> = names.iter().take(4).map(String::as_str).collect();
            println!("{:4} {kind}  ({})", names.len(), some.join(", "));
        }
        for (why, count) in &self.refused {
            println!("{count:4} refused: {why}");
        }
        if !self.unsteady.is_empty() {
            println!("differed, but not each time: {}", self.unsteady.join(", "));
        }
        println!(
            "{cases} configurations: {} same, {} refused by both, {} explained, {} in which the \
             reference fails, {different} different",
            self.same,
            self.refused.values().sum::<usize>(),
            self.explained,
            self.skipped
        );
        if different == 0 { Ok(()) } else { Err("the servers differ".into()) }
    }
}

/// The reference's message about a configuration, without the file and line.
fn refusal(why: &str) -> String {
    let message = why.split_once("] ").map_or(why, |(_, message)| message);
    let line = message.lines().next().unwrap_or_default();
    line.split(" in /").next().unwrap_or_default().to_owned()
}

/// What a difference is about: the labels of the lines of its first request.
fn kind(found: &[(String, Vec<String>)]) -> String {
    let Some((title, lines)) = found.first() else { return String::new() };
    let area = title.split('-').next().unwrap_or_default();
    let mut labels: Vec<&str> = lines.iter().map(|line| label(line)).collect();
    labels.sort_unstable();
    labels.dedup();
    labels.truncate(6);
    format!("{area}: {}", labels.join(", "))
}

/// A line up to the value in it.
fn label(line: &str) -> &str {
    let end = match line.get(2..) {
        Some(rest) if rest.starts_with("HTTP/") => line.len().min(14),
        Some(rest) if rest.starts_with("vars.log: ") => line.find('=').unwrap_or(line.len()),
        Some(rest) if rest.starts_with("access.log") => 12,
        Some(_) => line.find(": ").unwrap_or(line.len().min(20)),
        None => line.len(),
    };
    line.get(..end).unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_a_function_of_its_area_and_number() {
        for area in AREAS {
            let grammar = areas::grammar(area, "1.31.5").unwrap();
            let case = |number| RandomCase::generate(area, &grammar, number);
            assert_eq!(case(7), case(7), "{}", area.name);
            assert_ne!(case(7).text(), case(8).text(), "{}", area.name);
        }
    }

    #[test]
    fn every_case_can_be_read() {
        for area in AREAS {
            let grammar = areas::grammar(area, "1.22.1").unwrap();
            for number in 0..200 {
                let text = RandomCase::generate(area, &grammar, number).text();
                let case = Case::parse("x".into(), &text);
                assert!(case.is_ok(), "{}: {:?}\n{text}", area.name, case.err());
            }
        }
    }

    #[test]
    fn differences_are_grouped_by_what_differs() {
        let lines =
            ["- HTTP/1.1 200 OK", "+ HTTP/1.1 404 Not Found", "- X-A: 1", "- vars.log: uri=/a"];
        let lines = lines.map(str::to_owned).to_vec();
        let found = [("rewrite-7.case:1: GET /".to_owned(), lines)];
        let expected = "rewrite: + HTTP/1.1 404, - HTTP/1.1 200, - X-A, - vars.log: uri";
        assert_eq!(kind(&found), expected);
    }
}
