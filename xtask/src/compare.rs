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
mod comparison;
mod curl;
mod diff;
mod gzip;
mod known;
mod options;
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

use case::Case;
use comparison::{ProgramComparison, REFERENCE_VERSION};
use known::KnownDifferences;
use options::Options;
use report::DIFFERENCE_LINES_MAX;
use server::ComparedProgram;

pub(crate) const HELP: &str = "\
run the side-by-side corpus against an installed nginx

See conformance/README.md; without options it says which there are.";

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

#[cfg(test)]
mod tests;
