//! `weir fmt`: formats configurations in place, or lists those that are not formatted.

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::path::Path;

use conf::{Diagnostic, SourceText, Sources};

use super::{complain, print, refuse};
use crate::Reported;

pub(super) const HELP: &str = "Usage: weir fmt [OPTIONS] FILE...

Formats configurations in place and keeps comments, blank lines and quotes. The
file \"-\" is standard input, which is formatted to standard output.

Options:
  --check     change nothing; print the files that are not formatted
  --          treat all further arguments as files
  -h, --help  print this help

Exit code: 0 if all files are formatted; 1 on errors, and with --check if a file
is not formatted.
";

/// Formats files in place, or with `--check` lists those that are not formatted.
pub(super) fn run(arguments: &[OsString]) -> Result<(), Reported> {
    let (check, files) = read(arguments)?;
    match &files[..] {
        [] => Err(complain("fmt: a file is required (see weir fmt --help)")),
        [only] if *only == "-" => {
            let mut text = Vec::new();
            std::io::stdin().read_to_end(&mut text).map_err(complain)?;
            print(formatted("standard input", &text)?)
        }
        files => {
            // An error in one file does not stop the others.
            let results: Vec<_> = files.iter().map(|file| file_in_place(file, check)).collect();
            results.into_iter().collect()
        }
    }
}

/// Whether only to check, and the files.
fn read(arguments: &[OsString]) -> Result<(bool, Vec<&OsStr>), Reported> {
    let (mut check, mut files) = (false, Vec::new());
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_encoded_bytes() {
            b"--" => {
                files.extend(rest.map(OsString::as_os_str));
                break;
            }
            b"--check" => check = true,
            [b'-', _, ..] => return Err(refuse("fmt", argument, &["--check", "--help"])),
            _ => files.push(argument.as_os_str()),
        }
    }
    Ok((check, files))
}

fn file_in_place(path: &OsStr, check: bool) -> Result<(), Reported> {
    let path = Path::new(path);
    let failed = |error| complain(format_args!("{}: {error}", path.display()));
    let text = std::fs::read(path).map_err(failed)?;
    let formatted = formatted(&path.to_string_lossy(), &text)?;
    match (formatted == text, check) {
        (true, _) => Ok(()),
        (false, true) => Err(complain(format_args!("{}: not formatted", path.display()))),
        (false, false) => std::fs::write(path, formatted).map_err(failed),
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
