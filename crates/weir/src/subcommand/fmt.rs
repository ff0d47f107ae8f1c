//! `weir fmt`: formats configurations in place, or says which are not formatted.

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::path::Path;

use conf::{Diagnostic, Source, Sources};

use super::{complain, print, refuse};
use crate::Told;

pub(super) const HELP: &str = "Usage: weir fmt [--check] FILE...

Formats configurations in place. Comments, blank lines and quotes stay. The file
\"-\" is standard input, formatted to standard output.

  --check : change nothing; name the files that are not formatted and exit with 1
  --      : what follows is a file, whatever it begins with
  --help  : this help
";

/// Formats files in place, or with `--check` says which are not formatted.
pub(super) fn run(arguments: &[OsString]) -> Result<(), Told> {
    let (check, files) = read(arguments)?;
    match &files[..] {
        [] => Err(complain("fmt: no file is named (weir fmt --help)")),
        [only] if *only == "-" => {
            let mut text = Vec::new();
            std::io::stdin().read_to_end(&mut text).map_err(complain)?;
            print(formatted("standard input", &text)?)
        }
        files => {
            // Every file is looked at, whatever the others have.
            let results: Vec<_> = files.iter().map(|file| file_in_place(file, check)).collect();
            results.into_iter().collect()
        }
    }
}

/// Whether only to check, and the files.
fn read(arguments: &[OsString]) -> Result<(bool, Vec<&OsStr>), Told> {
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

fn file_in_place(path: &OsStr, check: bool) -> Result<(), Told> {
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

fn formatted(path: &str, text: &[u8]) -> Result<Vec<u8>, Told> {
    conf::fmt::format(text).map_err(|error| {
        let mut sources = Sources::default();
        sources.add(Source { path: Some(path.as_bytes().into()), text: text.into() });
        let diagnostic = Diagnostic { error: &error, sources: &sources };
        observe::tell(format_args!("{}", diagnostic.render("weir")));
        Told
    })
}
