//! The two programs and the ground on which they are compared.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::case::Case;
use super::known::{Difference, KnownDifferences};
use super::options::Options;
use super::report::{self, CaseReport, RequestVerdict};
use super::server::ComparedProgram;
use super::side::ServerTranscript;
use super::{access, diff};

/// Debian 12's; the notes in the cases say what differs from it.
pub(super) const REFERENCE_VERSION: &str = "1.22.1";

/// Cases wait more than they work.
const CASES_AT_ONCE: usize = 4;

/// What a program did in a case, or why it did not start.
pub(super) type PlayedCase = Result<ServerTranscript, String>;

/// The two programs and the ground on which they are compared.
pub(super) struct ProgramComparison<'a> {
    pub(super) reference: ComparedProgram,
    pub(super) weir: ComparedProgram,
    pub(super) known: KnownDifferences,
    pub(super) options: &'a Options,
    pub(super) scratch: &'a Path,
}

impl ProgramComparison<'_> {
    pub(super) fn all(&self, cases: &[Case]) -> Vec<CaseReport> {
        let next = AtomicUsize::new(0);
        let reports = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for _ in 0..CASES_AT_ONCE {
                scope.spawn(|| {
                    while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let report = self.one(case);
                        reports.lock().expect("no thread panics with it").push(report);
                    }
                });
            }
        });
        let mut reports = reports.into_inner().expect("no thread panics with it");
        reports.sort_by(|a, b| a.name.cmp(&b.name));
        reports
    }

    /// Cases have deadlines, which a machine that is busy with something else can miss: one that
    /// differs is played again.
    fn one(&self, case: &Case) -> CaseReport {
        let first = self.once(case);
        if first.is_fine() {
            return first;
        }
        let _ = std::fs::remove_dir_all(self.scratch.join(&case.name));
        let again = self.once(case);
        if again.is_fine() {
            println!("{} differed, but not when it was played again", case.name);
        }
        again
    }

    fn once(&self, case: &Case) -> CaseReport {
        match self.both(case) {
            (Ok(nginx), Ok(weir)) => self.sides(case, &nginx, &weir),
            (Err(error), _) | (_, Err(error)) => CaseReport::not_started(case, error),
        }
    }

    /// What each program did.
    pub(super) fn both(&self, case: &Case) -> (PlayedCase, PlayedCase) {
        // The names are equally long, so that a reply with a path in it is.
        let side = |program, name: &str| {
            let dir = self.scratch.join(&case.name).join(name);
            ServerTranscript::play(program, case, &dir, self.options.any_order)
                .map(|side| if self.options.access { side.reduced(access::decides) } else { side })
                .map_err(|e| format!("{name} {e}"))
        };
        (side(&self.reference, "nginx"), side(&self.weir, "weir-"))
    }

    fn sides(&self, case: &Case, nginx: &ServerTranscript, weir: &ServerTranscript) -> CaseReport {
        // Two of the same version have no difference that a case could explain.
        let twins = self.reference.version == self.weir.version;
        let mut verdicts = Vec::new();
        for (index, request) in case.requests.iter().enumerate() {
            let (left, right) = (&nginx.transcripts[index], &weir.transcripts[index]);
            let title = report::title(case, request);
            if self.options.show {
                report::print_lines(&title, left, usize::MAX);
            }
            let expected = request.differs.as_ref().filter(|_| !twins);
            let is_noted = self.reference.version == REFERENCE_VERSION;
            let diff = diff::diff(left, right);
            let verdict = report::judge(diff, expected, self.options.any_order, is_noted);
            let verdict = match verdict {
                RequestVerdict::Different(lines) if self.explains(case, &title, &lines) => {
                    RequestVerdict::Explained
                }
                verdict => verdict,
            };
            verdicts.push((title, verdict));
        }
        let whole = diff::diff(&nginx.whole, &weir.whole);
        CaseReport { name: case.name.clone(), verdicts, whole }
    }

    fn explains(&self, case: &Case, title: &str, lines: &[String]) -> bool {
        self.known.explain(&Difference { title, lines, case: &case.config })
    }
}
