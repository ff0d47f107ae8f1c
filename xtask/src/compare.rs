//! `xtask compare`: the same configuration and the same bytes to Weir and to an installed nginx.
//!
//! Every case of `conformance/side-by-side` starts both servers, sends its requests to each and
//! compares all that came back: status, fields, body, how the connection ended, log lines. What
//! differs must be noted in the case, line by line, with its reason. This is no benchmark, and it
//! knows nothing about HTTP that a case could say itself.

mod case;
mod client;
mod diff;
mod place;
mod reply;
mod server;
mod text;
mod times;

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use case::{Case, Differs, Request};
use client::Answer;
use place::Place;
use server::{LogLine, Program, Server};

/// What the command is for.
pub(crate) const HELP: &str = "\
run the side-by-side corpus against an installed nginx

See conformance/README.md; without options it says which there are.";

const USAGE: &str = "usage: compare --weir PATH [--nginx PATH] [--case NAME] [--any-order] [--show]
  --weir PATH    the program under test
  --nginx PATH   the reference, /usr/sbin/nginx unless given
  --case NAME    only the cases whose name contains NAME
  --any-order    header fields may come in another order
  --show         print what the reference answers";

/// Cases wait more than they work.
const CASES_AT_ONCE: usize = 4;

/// Compares the two programs that `args` name; an error where they differ unexplained.
pub(crate) fn run(args: &[String]) -> Result<(), String> {
    let options = Options::parse(args)?;
    let scratch = Scratch::create()?;
    let reference = Program::reference(&options.nginx)
        .map_err(|e| format!("{e}\nthe reference is Debian's nginx: apt-get install nginx"))?;
    let weir = Program::under_test(&options.weir, &scratch.0.join("bin"))?;
    let cases = read_cases(&options)?;
    let bench = Bench { reference, weir, options: &options, scratch: &scratch.0 };
    let reports = bench.compare_all(&cases);
    report(&reports, cases.len())
}

struct Options {
    weir: PathBuf,
    nginx: PathBuf,
    case: String,
    any_order: bool,
    show: bool,
}

impl Options {
    fn parse(args: &[String]) -> Result<Options, String> {
        let mut options = Options {
            weir: PathBuf::new(),
            nginx: "/usr/sbin/nginx".into(),
            case: String::new(),
            any_order: false,
            show: false,
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
                _ => return Err(format!("\"{arg}\" is no option\n{USAGE}")),
            }
        }
        match options.weir.as_os_str().is_empty() {
            true => Err(USAGE.into()),
            false => Ok(options),
        }
    }
}

/// A folder that is gone when the comparison is.
struct Scratch(PathBuf);

impl Scratch {
    fn create() -> Result<Scratch, String> {
        let dir = std::env::temp_dir().join(format!("weir-compare-{}", std::process::id()));
        std::fs::create_dir(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
        Ok(Scratch(dir))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn read_cases(options: &Options) -> Result<Vec<Case>, String> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../conformance/side-by-side");
    let entries = std::fs::read_dir(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    let paths = entries.flatten().map(|entry| entry.path());
    let mut paths: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|extension| extension == "case"))
        .filter(|path| path.to_string_lossy().contains(&options.case))
        .collect();
    paths.sort();
    match paths.is_empty() {
        true => Err(format!("no case is called \"{}\"", options.case)),
        false => paths.iter().map(|path| Case::read(path)).collect(),
    }
}

/// What became of one request.
#[derive(Debug, PartialEq)]
enum Verdict {
    Same,
    Explained,
    Different(Vec<String>),
}

/// What became of one case: a verdict for each of its requests, and what concerns all of it.
struct Report {
    name: String,
    verdicts: Vec<(usize, String, Verdict)>,
    whole: Vec<String>,
}

/// The two programs and the ground on which they are compared.
struct Bench<'a> {
    reference: Program,
    weir: Program,
    options: &'a Options,
    scratch: &'a Path,
}

impl Bench<'_> {
    fn compare_all(&self, cases: &[Case]) -> Vec<Report> {
        let next = AtomicUsize::new(0);
        let reports = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for _ in 0..CASES_AT_ONCE {
                scope.spawn(|| {
                    while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let report = self.compare(case);
                        reports.lock().expect("no thread panics with it").push(report);
                    }
                });
            }
        });
        let mut reports = reports.into_inner().expect("no thread panics with it");
        reports.sort_by(|a, b| a.name.cmp(&b.name));
        reports
    }

    fn compare(&self, case: &Case) -> Report {
        // The names are equally long, so that a reply with a path in it is.
        let side = |program, name: &str| {
            let dir = self.scratch.join(&case.name).join(name);
            Side::play(program, case, &dir, self.options.any_order)
                .map_err(|e| format!("{name} {e}"))
        };
        let sides =
            side(&self.reference, "nginx").and_then(|n| Ok((n, side(&self.weir, "weir-")?)));
        match sides {
            Ok((nginx, weir)) => self.compare_sides(case, &nginx, &weir),
            Err(error) => not_started(case, error),
        }
    }

    fn compare_sides(&self, case: &Case, nginx: &Side, weir: &Side) -> Report {
        // Two of the same version have no difference that a case could explain.
        let twins = self.reference.version == self.weir.version;
        let mut verdicts = Vec::new();
        for (index, request) in case.requests.iter().enumerate() {
            let (left, right) = (&nginx.transcripts[index], &weir.transcripts[index]);
            if self.options.show {
                print_difference(&title(&case.name, request.line, &request.title), left);
            }
            let expected = request.differs.as_ref().filter(|_| !twins);
            let verdict = judge(diff::diff(left, right), expected, self.options.any_order);
            verdicts.push((request.line, request.title.clone(), verdict));
        }
        let whole = diff::diff(&nginx.whole, &weir.whole);
        Report { name: case.name.clone(), verdicts, whole }
    }
}

fn not_started(case: &Case, error: String) -> Report {
    let different = |r: &Request| (r.line, r.title.clone(), Verdict::Different(vec![]));
    let verdicts = case.requests.iter().map(different).collect();
    Report { name: case.name.clone(), verdicts, whole: vec![error] }
}

fn judge(mut diff: Vec<String>, expected: Option<&Differs>, any_order: bool) -> Verdict {
    let mut expected_lines = expected.map(|e| e.lines.clone()).unwrap_or_default();
    if any_order {
        diff.sort();
        expected_lines.sort();
    }
    match (expected, diff.is_empty()) {
        (None, true) => Verdict::Same,
        (Some(_), false) if diff == expected_lines => Verdict::Explained,
        (Some(expected), _) => {
            let surprise = diff::diff(&expected_lines, &diff);
            let reason = format!("not as its \"differs: {}\" says:", expected.reason);
            Verdict::Different([vec![reason], surprise].concat())
        }
        (None, false) => Verdict::Different(diff),
    }
}

/// All that one server did in one case, in lines.
struct Side {
    /// For each request: the answer, how the connection ended, what was logged.
    transcripts: Vec<Vec<String>>,
    /// What belongs to no request.
    whole: Vec<String>,
}

impl Side {
    fn play(program: &Program, case: &Case, dir: &Path, any_order: bool) -> Result<Side, String> {
        let server = Server::start(program, case, dir)?;
        let place = server.place.clone();
        let mut ports = Vec::new();
        let mut transcripts = Vec::new();
        for request in &case.requests {
            let answer = client::play(request, &place, &ports);
            ports.push(answer.as_ref().map_or(0, |answer| answer.port));
            transcripts.push(answer_lines(answer, &place, any_order));
        }
        let (logged, whole) = server.stop();
        let mut side = Side { transcripts, whole };
        for line in logged {
            side.add(&line, &ports, &place);
        }
        Ok(side)
    }

    /// A log line that begins with the port of a client belongs to its request.
    fn add(&mut self, line: &LogLine, ports: &[u16], place: &Place) {
        let (number, text) = match line.text.iter().position(|&b| b == b' ') {
            Some(space) => (&line.text[..space], &line.text[space + 1..]),
            None => (&line.text[..0], &line.text[..]),
        };
        let port = ports.iter().position(|port| port.to_string().as_bytes() == number);
        let shown = |text| text::shown(&place.blanked(&times::blanked(text)));
        let file = &line.file;
        match port {
            Some(index) => self.transcripts[index].push(format!("{file}: {}", shown(text))),
            None => self.whole.push(format!("{file}: {}", shown(&line.text))),
        }
    }
}

fn answer_lines(answer: Result<Answer, String>, place: &Place, any_order: bool) -> Vec<String> {
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => return vec![error],
    };
    let replies = answer.replies.iter();
    let mut lines: Vec<String> =
        replies.flat_map(|reply| reply::lines(reply, place, any_order)).collect();
    lines.push(answer.ending.into());
    lines
}

/// Prints what differs and the summary.
fn report(reports: &[Report], cases: usize) -> Result<(), String> {
    let mut counts = [0; 3];
    let mut cases_different = 0;
    for report in reports {
        for (line, text, verdict) in &report.verdicts {
            match verdict {
                Verdict::Same => counts[0] += 1,
                Verdict::Explained => counts[1] += 1,
                Verdict::Different(diff) => {
                    counts[2] += 1;
                    print_difference(&title(&report.name, *line, text), diff);
                }
            }
        }
        if !report.whole.is_empty() {
            cases_different += 1;
            print_difference(&format!("{}.case: as a whole", report.name), &report.whole);
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

fn title(case: &str, line: usize, request: &str) -> String {
    let title = format!("{case}.case:{line}: {request}");
    title.chars().take(150).collect()
}

fn print_difference(title: &str, diff: &[String]) {
    if !diff.is_empty() {
        println!("{title}\n{}\n", diff.join("\n"));
    }
}
