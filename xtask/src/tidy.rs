//! Reads every file git tracks and finds what the project's rules forbid.
//!
//! No formatter and no compiler: rustfmt and clippy have their say elsewhere. A rule is a function
//! from the project's files to problems, so that each can be shown a project of its own in tests.
//! It runs as an ordinary test too: `cargo test` is enough to learn of a problem.

mod code;
mod crates;
mod features;
mod imports;
mod layers;
mod manifest;
mod named_tests;
mod papers;
mod paths;
mod problem;
mod size;
mod source_file;
mod text;
pub(crate) mod translations;
mod type_names;

use std::path::Path;
use std::process::Command;

use crate::args::Args;
use crate::project;
pub(crate) use features::FEATURES;
pub(crate) use problem::Problem;
pub(crate) use source_file::SourceFile;

pub(crate) const HELP: &str = "read every file git tracks for what the project's rules forbid

Long lines, stray characters, leftovers, files and functions that have grown too long, modules
without a header, crates that depend on crates above them, modules that import from the
layers above them, cycles of imports, types with the name of another type, the system or
unsafe code outside `net`, features that are not listed, dependencies that
docs/dependencies.md does not explain, tests and files that the documentation names and that do
not exist, translations that are older than their page.
";

type Rule = fn(&[SourceFile]) -> Vec<Problem>;

const RULES: &[Rule] = &[
    text::check,
    size::check,
    crates::dependencies,
    crates::system,
    crates::unsafety,
    crates::no_std,
    features::check,
    layers::check,
    papers::check,
    paths::check,
    named_tests::check,
    type_names::check,
    translations::check,
];

pub(crate) fn run(words: &[String]) -> Result<(), String> {
    Args::new(words).end()?;
    let problems = problems(&sources(project::root())?);
    for problem in &problems {
        println!("{problem}");
    }
    match problems.len() {
        0 => Ok(()),
        count => Err(format!("tidy: {count} to mend")),
    }
}

fn problems(sources: &[SourceFile]) -> Vec<Problem> {
    RULES.iter().flat_map(|rule| rule(sources)).collect()
}

/// What git tracks and is still there.
fn sources(root: &Path) -> Result<Vec<SourceFile>, String> {
    // CI often reads a clone that another user made; git refuses those unless told otherwise.
    let mut git = Command::new("git");
    git.args(["-c", "safe.directory=*", "ls-files", "-z"]).current_dir(root);
    let listed = project::output(&mut git)?;
    let paths = String::from_utf8(listed).map_err(|err| format!("a file's name: {err}"))?;
    let mut sources = Vec::new();
    for path in paths.split_terminator('\0') {
        if let Ok(bytes) = std::fs::read(root.join(path)) {
            sources.push(SourceFile { path: path.to_owned(), bytes });
        }
    }
    Ok(sources)
}

/// A project of a test's own: path and text of each file.
#[cfg(test)]
fn project_of(files: &[(&str, &str)]) -> Vec<SourceFile> {
    let source = |(path, text): &(&str, &str)| SourceFile {
        path: (*path).to_owned(),
        bytes: text.as_bytes().to_vec(),
    };
    files.iter().map(source).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_project_is_tidy() {
        let sources = sources(project::root()).expect("git lists the project's files");
        assert!(sources.iter().any(|file| file.path == "Cargo.toml"), "git lists nothing");
        let problems: Vec<String> = problems(&sources).iter().map(Problem::to_string).collect();
        assert!(problems.is_empty(), "\n{}", problems.join("\n"));
    }
}
