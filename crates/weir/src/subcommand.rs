//! What `weir` does besides serving: `backend`, `load`, `fmt` and `reference`. Called `nginx` it
//! has none of them; called `wrk` it is `weir load`.

use std::ffi::{OsStr, OsString};
use std::io::{Read, Write};
use std::path::Path;

use conf::{Diagnostic, Source, Sources};
use load::Called;

use crate::Told;
use crate::name::name;
use crate::reference;

/// How `fmt` is called.
const FMT_USAGE: &str =
    "usage: weir fmt [--check] FILE...   (-: standard input to standard output)";

/// Runs the subcommand that the arguments begin with, if they do.
pub fn run(called: Option<&OsStr>, arguments: &[OsString]) -> Option<Result<(), Told>> {
    if called.is_some_and(|called| Path::new(called).file_name() == Some(OsStr::new("wrk"))) {
        return Some(load(arguments, Called::Wrk));
    }
    let (first, rest) = arguments.split_first().filter(|_| name().word == "weir")?;
    match first.as_encoded_bytes() {
        b"backend" => {
            let ended = load::backend::run(rest);
            Some(ended.map_err(|why| complain(format_args!("backend: {why}"))))
        }
        b"load" => Some(load(rest, Called::Load)),
        b"fmt" => Some(fmt(rest)),
        b"reference" => Some(reference::run(rest)),
        _ => None,
    }
}

fn load(arguments: &[OsString], called: Called) -> Result<(), Told> {
    let name = if called == Called::Wrk { "wrk" } else { "weir load" };
    load::command(arguments, called).map_err(|failed| {
        observe::tell(format_args!("{name}: {failed}\n"));
        match failed.code() {
            1 => Told,
            code => std::process::exit(code.into()),
        }
    })
}

fn print(text: &[u8]) -> Result<(), Told> {
    std::io::stdout().write_all(text).map_err(|_| Told)
}

fn complain(text: impl std::fmt::Display) -> Told {
    observe::tell(format_args!("weir: {text}\n"));
    Told
}

/// Formats files in place, or with `--check` says which are not formatted.
fn fmt(arguments: &[OsString]) -> Result<(), Told> {
    let check = arguments.first().is_some_and(|first| first == "--check");
    let files = &arguments[usize::from(check)..];
    match files {
        [] => Err(complain(FMT_USAGE)),
        [only] if only == "-" => {
            let mut text = Vec::new();
            std::io::stdin().read_to_end(&mut text).map_err(complain)?;
            print(&formatted("standard input", &text)?)
        }
        files => {
            // Every file is looked at, whatever the others have.
            let results: Vec<_> =
                files.iter().map(|file| fmt_file(Path::new(file), check)).collect();
            results.into_iter().collect()
        }
    }
}

fn fmt_file(path: &Path, check: bool) -> Result<(), Told> {
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
