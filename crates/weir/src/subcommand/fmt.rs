//! `weir fmt`: formats configurations in place, or shows what would change.

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::path::Path;

use conf::{Diagnostic, SourceText, Sources};

use crate::messages::{Reported, complain, print, refuse};

pub(super) const HELP: &str = "Usage: weir fmt [OPTIONS] FILE...

Formats configurations in place and keeps comments, blank lines and quotes. The
file \"-\" is standard input, which is formatted to standard output.

Options:
  --check     change nothing; print the files that are not formatted
  --diff      change nothing; print what would change, as a unified diff
  --          treat all further arguments as files
  -h, --help  print this help

Exit code: 0 if all files are formatted; 1 on errors, and with --check or --diff
if a file is not formatted.
";

/// The action for a file that is not formatted.
#[derive(Clone, Copy)]
enum FormatMode {
    Write,
    Check,
    Diff,
}

/// Formats files, or reports those that are not formatted.
pub(super) fn run(arguments: &[OsString]) -> Result<(), Reported> {
    let (mode, files) = read(arguments)?;
    match &files[..] {
        [] => Err(complain("fmt: a file is required (see weir fmt --help)")),
        [only] if *only == "-" => {
            let mut text = Vec::new();
            std::io::stdin().read_to_end(&mut text).map_err(complain)?;
            let formatted = formatted("standard input", &text)?;
            match mode {
                FormatMode::Write => print(formatted),
                _ if formatted == text => Ok(()),
                mode => mode.show("standard input", &text, &formatted),
            }
        }
        files => {
            // An error in one file does not stop the others.
            let results: Vec<_> = files.iter().map(|file| format_file(file, mode)).collect();
            results.into_iter().collect()
        }
    }
}

/// The mode and the files.
fn read(arguments: &[OsString]) -> Result<(FormatMode, Vec<&OsStr>), Reported> {
    let (mut mode, mut files) = (FormatMode::Write, Vec::new());
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_encoded_bytes() {
            b"--" => {
                files.extend(rest.map(OsString::as_os_str));
                break;
            }
            b"--check" => mode = FormatMode::Check,
            b"--diff" => mode = FormatMode::Diff,
            [b'-', _, ..] => {
                return Err(refuse("fmt", argument, &["--check", "--diff", "--help"]));
            }
            _ => files.push(argument.as_os_str()),
        }
    }
    Ok((mode, files))
}

fn format_file(path: &OsStr, mode: FormatMode) -> Result<(), Reported> {
    let path = Path::new(path);
    let failed = |error| complain(format_args!("{}: {error}", path.display()));
    let text = std::fs::read(path).map_err(failed)?;
    let formatted = formatted(&path.to_string_lossy(), &text)?;
    match mode {
        _ if formatted == text => Ok(()),
        FormatMode::Write => std::fs::write(path, formatted).map_err(failed),
        mode => mode.show(&path.to_string_lossy(), &text, &formatted),
    }
}

impl FormatMode {
    /// Says that a file is not formatted.
    fn show(self, path: &str, text: &[u8], formatted: &[u8]) -> Result<(), Reported> {
        match self {
            Self::Diff => {
                let names = [path, &format!("{path} (formatted)")];
                print(conf::unified_diff(names, text, formatted)).and(Err(Reported))
            }
            _ => Err(complain(format_args!("{path}: not formatted"))),
        }
    }
}

fn formatted(path: &str, text: &[u8]) -> Result<Vec<u8>, Reported> {
    conf::fmt::format(text).map_err(|error| {
        let mut sources = Sources::default();
        sources.add(SourceText { path: Some(path.as_bytes().into()), text: text.into() });
        let diagnostic = Diagnostic { error: &error, sources: &sources };
        observe::tell(format_args!("{}", diagnostic.render("weir")));
        Reported
    })
}
