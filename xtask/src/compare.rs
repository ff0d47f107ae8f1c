//! `xtask compare`: the same configuration and the same bytes to Weir and to an installed nginx.
//!
//! Every case of `conformance/side-by-side` starts both servers, sends its requests to each and
//! compares all that came back: status, fields, body, how the connection ended, log lines. What
//! differs must be noted in the case, line by line, with its reason. This is no benchmark, and it
//! knows nothing about HTTP that a case could say itself.

mod access;
mod backend;
mod case;
mod client;
mod curl;
mod diff;
mod gzip;
mod known;
mod place;
mod random;
mod reply;
mod report;
mod script;
mod server;
mod side;
mod text;
mod times;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use case::Case;
use known::{Difference, KnownDifferences};
use random::RandomCases;
use report::{CaseReport, RequestVerdict};
use server::ComparedProgram;
use side::ServerTranscript;

pub(crate) const HELP: &str = "\
run the side-by-side corpus against an installed nginx

See conformance/README.md; without options it says which there are.";

const USAGE: &str =
    "Usage: cargo xtask compare --weir PATH [--nginx PATH] [--case NAME] [--any-order] [--show]
               [--keep] [--access]
               [--random N [--seed S] [--area WORD] [--shrink | --print]]
  --weir PATH    the program under test
  --nginx PATH   the reference, /usr/sbin/nginx unless given
  --case NAME    only the cases whose name contains NAME
  --any-order    header fields may come in another order
  --show         print what the reference answers
  --keep         leave the servers' folders, logs and all, and say where
  --access       instead of the corpus, every access rule by every way into a location and before
                 every content; --case chooses rules
  --random N     instead of the corpus, N generated configurations of each area
  --seed S       the number of the first, 0 unless given
  --area WORD    only areas whose name contains WORD
  --shrink       shrink what differs to what the difference needs
  --print        print the generated cases instead of playing them";

/// Debian 12's; the notes in the cases say what differs from it.
const REFERENCE_VERSION: &str = "1.22.1";

/// Cases wait more than they work.
const CASES_AT_ONCE: usize = 4;

/// Of a difference, this much is shown where all cases run; a single case shows everything.
const DIFFERENCE_LINES_MAX: usize = 16;

/// Compares the two programs that `args` name; an error where they differ unexplained.
pub(crate) fn run(args: &[String]) -> Result<(), String> {
    let options = Options::parse(args)?;
    let scratch = ComparisonFolder::create()?;
    let reference = ComparedProgram::reference(&options.nginx)
        .map_err(|e| format!("{e}\nthe reference is Debian's nginx: apt-get install nginx"))?;
    let weir = ComparedProgram::under_test(&options.weir, &scratch.0.join("bin"))?;
    if reference.version != REFERENCE_VERSION {
        println!("the reference is {}, not {REFERENCE_VERSION}", reference.version);
    }
    let known = KnownDifferences::read(&reference.version)?;
    let comparison =
        ProgramComparison { reference, weir, known, options: &options, scratch: &scratch.0 };
    if options.random.count > 0 {
        return random::run(&comparison, &options.random);
    }
    let cases = match options.access {
        true => access::cases(&options.case)?,
        false => read_cases(&options)?,
    };
    let reports = comparison.all(&cases);
    if options.keep {
        println!("kept in {}", scratch.0.display());
        std::mem::forget(scratch);
    }
    let lines_max = if options.case.is_empty() { DIFFERENCE_LINES_MAX } else { usize::MAX };
    report::print(&reports, lines_max)
}

struct Options {
    weir: PathBuf,
    nginx: PathBuf,
    case: String,
    any_order: bool,
    show: bool,
    keep: bool,
    access: bool,
    random: RandomCases,
}

impl Options {
    fn parse(args: &[String]) -> Result<Options, String> {
        let mut options = Options {
            weir: PathBuf::new(),
            nginx: "/usr/sbin/nginx".into(),
            case: String::new(),
            any_order: false,
            show: false,
            keep: false,
            access: false,
            random: RandomCases::default(),
        };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or_else(|| format!("{arg} wants a value\n{USAGE}"));
            match arg.as_str() {
                "--weir" => options.weir = value()?.into(),
                "--nginx" => options.nginx = value()?.into(),
                "--case" => options.case = value()?.clone(),
                "--any-order" => options.any_order = true,
                "--show" => options.show = true,
                "--keep" => options.keep = true,
                "--access" => options.access = true,
                "--random" => options.random.count = number(value()?)?,
                "--seed" => options.random.seed = number(value()?)?,
                "--area" => options.random.area = value()?.clone(),
                "--shrink" => options.random.shrinks = true,
                "--print" => options.random.prints = true,
                _ => return Err(format!("\"{arg}\" is no option\n{USAGE}")),
            }
        }
        match options.weir.as_os_str().is_empty() {
            true => Err(USAGE.into()),
            false => Ok(options),
        }
    }
}

fn number(word: &str) -> Result<u64, String> {
    word.parse().map_err(|_| format!("\"{word}\" is no number"))
}

/// A folder that is gone when the comparison is.
struct ComparisonFolder(PathBuf);

impl ComparisonFolder {
    fn create() -> Result<ComparisonFolder, String> {
        let dir = std::env::temp_dir().join(format!("weir-compare-{}", std::process::id()));
        std::fs::create_dir(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
        Ok(ComparisonFolder(dir))
    }
}

impl Drop for ComparisonFolder {
    fn drop(&mut self) {
        // Who is not root cannot empty the folders that a case has locked.
        let _ =
            Command::new("chmod").args(["-R", "u+rwx"]).arg(&self.0).stderr(Stdio::null()).status();
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn read_cases(options: &Options) -> Result<Vec<Case>, String> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../conformance/side-by-side");
    let entries = std::fs::read_dir(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    let paths = entries.flatten().map(|entry| entry.path());
    let mut paths: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|extension| extension == "case"))
        .filter(|path| {
            path.file_stem().is_some_and(|n| n.to_string_lossy().contains(&options.case))
        })
        .collect();
    paths.sort();
    match paths.is_empty() {
        true => Err(format!("no case is called \"{}\"", options.case)),
        false => paths.iter().map(|path| Case::read(path)).collect(),
    }
}

/// What a program did in a case, or why it did not start.
type PlayedCase = Result<ServerTranscript, String>;

/// The two programs and the ground on which they are compared.
struct ProgramComparison<'a> {
    reference: ComparedProgram,
    weir: ComparedProgram,
    known: KnownDifferences,
    options: &'a Options,
    scratch: &'a Path,
}

impl ProgramComparison<'_> {
    fn all(&self, cases: &[Case]) -> Vec<CaseReport> {
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
    fn both(&self, case: &Case) -> (PlayedCase, PlayedCase) {
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

#[cfg(test)]
mod tests;
