//! `xtask h2spec`: the conformance cases of h2spec, over TLS and without, held to a list.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::args::Args;
use crate::own_certificate::OwnCertificate;
use crate::running::Running;
use crate::{packages, project};

pub(crate) const HELP: &str = "h2spec's cases of HTTP/2 in strict mode, plain and over TLS

Usage: cargo xtask h2spec [--weir PATH] [--h2spec PATH]

  --weir PATH    the program under test; built where none is named
  --h2spec PATH  h2spec, where it is neither in PATH nor in ~/go/bin

Fails on a case that fails and is not in conformance/h2spec.txt, and on a listed one that passes.
To install h2spec: go install github.com/summerwind/h2spec/cmd/h2spec@latest
";

/// Lines of `TRANSPORT SECTION CASE -- REASON`; `#` starts a comment.
const KNOWN: &str = "conformance/h2spec.txt";

/// What a case may wait for an answer, in seconds.
const PATIENCE_S: &str = "3";

/// How long all cases over one transport may take, in seconds.
const RUN_MAX_S: &str = "120";

/// The cases of the version that the list was made with; a run with fewer was cut short.
const CASES_MIN: usize = 146;

pub(crate) fn run(words: &[String]) -> Result<(), String> {
    let mut args = Args::new(words);
    let weir = args.option("--weir")?.map(PathBuf::from);
    let h2spec = args.option("--h2spec")?.map(PathBuf::from);
    args.end()?;
    let h2spec = h2spec.or_else(find).ok_or("h2spec is not installed")?;
    let weir = weir.map_or_else(|| project::debug("weir"), Ok)?;
    compare_with_list(&weir, &h2spec)
}

/// The program, if it is installed.
pub(crate) fn find() -> Option<PathBuf> {
    packages::find("h2spec").or_else(|| {
        let own = PathBuf::from(std::env::var_os("HOME")?).join("go/bin/h2spec");
        own.exists().then_some(own)
    })
}

/// Runs all cases over both transports.
pub(crate) fn compare_with_list(weir: &Path, h2spec: &Path) -> Result<(), String> {
    let text = fs::read_to_string(project::root().join(KNOWN)).unwrap_or_default();
    let known = known(&text)?;
    let keys = OwnCertificate::new()?;
    let mut failed = BTreeSet::new();
    for (transport, directives) in [("plain", String::new()), ("tls", keys.directives())] {
        let parameter = if transport == "tls" { " ssl" } else { "" };
        let server = Running::start(
            weir,
            1,
            &format!(
                "server {{ listen ADDRESS{parameter}; http2 on; {directives}
                     location / {{ default_type text/plain; return 200 hello\n; }} }}"
            ),
        )?;
        let cases = run_cases(h2spec, &server, transport == "tls")?;
        println!("{transport:5} {} cases, {} failed", cases.total, cases.failed.len());
        failed.extend(cases.failed.into_iter().map(|case| format!("{transport} {case}")));
    }
    judge(&failed, &known)
}

/// What a run of h2spec reports.
#[derive(Debug, Default, PartialEq, Eq)]
struct SpecCases {
    total: usize,
    /// Section and name.
    failed: Vec<String>,
}

fn run_cases(h2spec: &Path, server: &Running, tls: bool) -> Result<SpecCases, String> {
    let report = server.file("h2spec.xml");
    let mut command = Command::new("timeout");
    command.arg(RUN_MAX_S).arg(h2spec).args(["--strict", "-h", "127.0.0.1", "-o", PATIENCE_S]);
    command.args(["-p", &server.address.port().to_string()]).args(tls.then_some("-t"));
    command.args(tls.then_some("-k")).arg("-j").arg(&report).stdout(Stdio::null());
    // Its exit code says whether cases failed, which the list judges.
    command.status().map_err(|err| format!("{}: {err}", h2spec.display()))?;
    let text = fs::read_to_string(&report).map_err(|err| format!("{}: {err}", report.display()))?;
    let cases = read_report(&text);
    match cases.total {
        CASES_MIN.. => Ok(cases),
        few => Err(format!("h2spec has run {few} cases only\n{}", server.log())),
    }
}

/// Reads the report: a `testcase` on each line, with an `error` on the next if it failed.
fn read_report(text: &str) -> SpecCases {
    let mut cases = SpecCases::default();
    let mut last = String::new();
    for line in text.lines() {
        if let (Some(section), Some(name)) =
            (attribute(line, "<testcase package=\""), attribute(line, "classname=\""))
        {
            last = format!("{section} {name}");
            cases.total += 1;
        }
        if line.trim_start().starts_with("<error") || line.trim_start().starts_with("<failure") {
            cases.failed.push(last.clone());
        }
    }
    cases
}

fn attribute<'t>(line: &'t str, begin: &str) -> Option<&'t str> {
    line.split_once(begin)?.1.split_once('"').map(|(value, _)| value)
}

fn known(text: &str) -> Result<BTreeMap<String, String>, String> {
    let lines = text.lines().zip(1..).filter(|(line, _)| {
        let line = line.trim();
        !line.is_empty() && !line.starts_with('#')
    });
    let entries = lines.map(|(line, number)| match line.split_once(" -- ") {
        Some((case, reason)) if !reason.trim().is_empty() => {
            Ok((case.trim().to_owned(), reason.trim().to_owned()))
        }
        _ => Err(format!("{KNOWN}:{number}: a case and the reason are needed")),
    });
    entries.collect()
}

fn judge(failed: &BTreeSet<String>, known: &BTreeMap<String, String>) -> Result<(), String> {
    let mut wrong: Vec<String> = failed
        .iter()
        .filter(|case| !known.contains_key(*case))
        .map(|case| format!("fails: {case}"))
        .collect();
    let passing = known.keys().filter(|case| !failed.contains(*case));
    wrong.extend(passing.map(|case| format!("passes: take it off {KNOWN}: {case}")));
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_cases_are_read_from_the_report() {
        let report = "<testsuite name=\"a\" package=\"http2/4.2\">\n\
             <testcase package=\"http2/4.2\" classname=\"good\" time=\"0.1\"></testcase>\n\
             <testcase package=\"http2/4.2\" classname=\"bad\" time=\"2\">\n\
               <error>GOAWAY\nTimeout</error>\n</testcase>\n</testsuite>";
        let cases = SpecCases { total: 2, failed: vec!["http2/4.2 bad".into()] };
        assert_eq!(read_report(report), cases);
    }

    #[test]
    fn the_list_is_exact() {
        let listed = known("# why\n\nplain a/1 Sends b -- for a reason\n").expect("a list");
        let failed = BTreeSet::from(["plain a/1 Sends b".to_owned()]);
        assert_eq!(judge(&failed, &listed), Ok(()));
        assert!(judge(&failed, &BTreeMap::new()).is_err_and(|why| why.starts_with("fails")));
        let passing = judge(&BTreeSet::new(), &listed);
        assert!(passing.is_err_and(|why| why.starts_with("passes")));
        assert!(known("plain a/1 Sends b\n").is_err());
    }
}
