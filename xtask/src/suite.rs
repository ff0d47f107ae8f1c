//! nginx's own test suite against our program, held to the list of what is still short.
//!
//! The tests and the runner stay outside the project; here is only the judgement: a file that
//! falls short must be listed with its reason, and a listed one that passes must leave the list.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::args::Args;
use crate::{packages, project};

pub(crate) const HELP: &str = "run nginx's test suite and hold it to conformance/nginx-tests.txt

Usage: cargo xtask suite --tests DIR [--area WORD]... [--file NAME.t]... [--jobs N] [--show]
                         [--weir PATH] [--runner PATH]

  --tests DIR    a work tree of nginx/nginx-tests, kept outside the project
  --area WORD    only areas whose name contains WORD, may repeat
  --file NAME.t  only this file, may repeat
  --jobs N       how many files at a time
  --show         print the failing assertions
  --weir PATH    this program instead of a fresh release build
  --runner PATH  the program that runs the suite and compares it with nginx's own result

Fails on a file that falls short and is not listed, and on a listed one that passes.
";

/// The runner that the project's developers share; its table of areas lies beside it.
const RUNNER: &str = "/work/shared/nginx/suite";
const AREAS: &str = "tests.tsv";

/// Perl modules that the suite speaks TLS with, and their Debian packages. Without them it skips a
/// hundred files.
const MODULES: &[(&str, &str)] =
    &[("IO::Socket::SSL", "libio-socket-ssl-perl"), ("Net::SSLeay", "libnet-ssleay-perl")];

/// Lines of `NAME.t why it falls short`; `#` starts a comment.
const KNOWN: &str = "conformance/nginx-tests.txt";

pub(crate) fn run(words: &[String]) -> Result<(), String> {
    let mut args = Args::new(words);
    let tests = args.option("--tests")?.ok_or("--tests DIR is needed")?;
    let runner = PathBuf::from(args.option("--runner")?.unwrap_or_else(|| RUNNER.into()));
    let weir = args.option("--weir")?.map(PathBuf::from);
    let jobs = args.option("--jobs")?;
    let show = args.flag("--show");
    let selection = Selection { areas: args.each("--area")?, files: args.each("--file")? };
    args.end()?;
    if !runner.exists() {
        return Err(format!(
            "{} is not there: name the suite's runner by --runner",
            runner.display()
        ));
    }
    let ran = selection.files(&runner, Path::new(&tests))?;
    if ran.is_empty() {
        return Err(format!("{tests} has no test file of that choice"));
    }
    packages::need(&[("perl", "perl"), ("prove", "perl"), ("openssl", "openssl")])?;
    packages::need_perl(MODULES)?;
    let known = known(&fs::read_to_string(project::root().join(KNOWN)).unwrap_or_default())?;
    let weir = weir.map_or_else(|| project::release("weir"), Ok)?;

    let mut command = Command::new(&runner);
    command.args(["--tests", &tests, "--binary"]).arg(weir).args(selection.options());
    command.args(jobs.iter().flat_map(|jobs| ["--jobs", jobs]));
    command.args(show.then_some("--show"));
    judge(&ran, &short(&mut command)?, &known)
}

/// What the command line chose; nothing chosen is everything.
struct Selection {
    areas: Vec<String>,
    files: Vec<String>,
}

impl Selection {
    fn options(&self) -> Vec<&str> {
        let areas = self.areas.iter().flat_map(|area| ["--area", area.as_str()]);
        areas.chain(self.files.iter().flat_map(|file| ["--file", file.as_str()])).collect()
    }

    /// The files the runner will take, by the rule of its own `--help`.
    fn files(&self, runner: &Path, tests: &Path) -> Result<BTreeSet<String>, String> {
        let table = runner.with_file_name(AREAS);
        let table =
            fs::read_to_string(&table).map_err(|err| format!("{}: {err}", table.display()))?;
        let rows = table.lines().skip(1).filter_map(|line| {
            let (file, rest) = line.split_once('\t')?;
            Some((file, rest.split('\t').next()?))
        });
        let chosen = rows.filter(|(file, area)| self.takes(file, area));
        let here = chosen.filter(|(file, _)| tests.join(file).exists());
        Ok(here.map(|(file, _)| file.to_owned()).collect())
    }

    fn takes(&self, file: &str, area: &str) -> bool {
        let area = area.to_lowercase();
        self.areas.is_empty() && self.files.is_empty()
            || self.files.iter().any(|name| name == file)
            || self.areas.iter().any(|word| area.contains(&word.to_lowercase()))
    }
}

fn known(text: &str) -> Result<BTreeMap<String, String>, String> {
    let mut known = BTreeMap::new();
    for (line, number) in text.lines().zip(1..) {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        match line.split_once(' ').map(|(file, reason)| (file, reason.trim())) {
            Some((file, reason)) if !reason.is_empty() => {
                if known.insert(file.to_owned(), reason.to_owned()).is_some() {
                    return Err(format!("{KNOWN}:{number}: {file} is listed twice"));
                }
            }
            _ => return Err(format!("{KNOWN}:{number}: a file and the reason are needed")),
        }
    }
    Ok(known)
}

/// Runs the suite, shows what it prints, and keeps the files that fell short.
fn short(command: &mut Command) -> Result<BTreeMap<String, String>, String> {
    let fail = |err| format!("the suite's runner: {err}");
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(fail)?;
    let output = child.stdout.take().expect("stdout is piped");
    let mut short = BTreeMap::new();
    for line in BufReader::new(output).lines() {
        let line = line.map_err(fail)?;
        println!("{line}");
        if let Some((file, why)) = shortfall(&line) {
            short.insert(file.to_owned(), why.to_owned());
        }
    }
    let status = child.wait().map_err(fail)?;
    if status.success() { Ok(short) } else { Err(format!("the suite's runner: {status}")) }
}

/// `NAME.t    fail: detail` and `NAME.t    skipped: detail` are the runner's lines.
fn shortfall(line: &str) -> Option<(&str, &str)> {
    let (file, why) = line.split_once(' ')?;
    let why = why.trim_start();
    let short = why.starts_with("fail:") || why.starts_with("skipped:");
    (file.ends_with(".t") && short).then_some((file, why))
}

fn judge(
    ran: &BTreeSet<String>,
    short: &BTreeMap<String, String>,
    known: &BTreeMap<String, String>,
) -> Result<(), String> {
    let mut wrong = Vec::new();
    for (file, why) in short.iter().filter(|(file, _)| !known.contains_key(*file)) {
        wrong.push(format!("{file} is not listed as falling short: {why}"));
    }
    for file in known.keys().filter(|file| ran.contains(*file) && !short.contains_key(*file)) {
        wrong.push(format!("{file} passes: take it off {KNOWN}"));
    }
    println!("\n{} files ran, {} fell short as listed or not", ran.len(), short.len());
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(rows: &[(&str, &str)]) -> BTreeMap<String, String> {
        rows.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
    }

    #[test]
    fn the_list_is_exact_for_what_ran() {
        let ran = BTreeSet::from(["a.t".to_owned(), "b.t".to_owned()]);
        let listed = map(&[("a.t", "needs proxying"), ("not-run.t", "needs TLS")]);
        assert_eq!(judge(&ran, &map(&[("a.t", "fail: 1")]), &listed), Ok(()));
        let both = judge(&ran, &map(&[("b.t", "fail: 1")]), &listed).unwrap_err();
        assert!(both.contains("b.t is not listed") && both.contains("a.t passes"), "{both}");
    }

    #[test]
    fn each_listed_file_has_one_line_and_a_reason() {
        assert_eq!(known("# why\n\na.t  needs TLS\n"), Ok(map(&[("a.t", "needs TLS")])));
        assert!(known("a.t\n").is_err());
        assert!(known("a.t  \n").is_err());
        assert!(known("a.t x\na.t y\n").is_err());
    }

    #[test]
    fn the_runner_s_lines_are_told_from_prove_s() {
        assert_eq!(shortfall("a.t     fail: 3 of 8"), Some(("a.t", "fail: 3 of 8")));
        assert_eq!(shortfall("a.t     skipped: no proxy"), Some(("a.t", "skipped: no proxy")));
        assert_eq!(shortfall("a.t .. ok"), None);
        assert_eq!(shortfall("core HTTP     3 / 4"), None);
    }

    #[test]
    fn a_selection_is_files_and_areas_and_nothing_is_all() {
        let of = |areas: &[&str], files: &[&str]| Selection {
            areas: areas.iter().map(|word| (*word).to_owned()).collect(),
            files: files.iter().map(|word| (*word).to_owned()).collect(),
        };
        assert!(of(&[], &[]).takes("a.t", "core HTTP"));
        assert!(of(&["core http"], &[]).takes("a.t", "core HTTP"));
        assert!(!of(&["proxy"], &["b.t"]).takes("a.t", "core HTTP"));
        assert!(of(&["proxy"], &["a.t"]).takes("a.t", "core HTTP"));
    }
}
