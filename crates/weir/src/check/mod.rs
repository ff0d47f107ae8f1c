//! `weir check`: lists everything in a configuration that this version does not support.
//!
//! The configuration is read in lenient mode, and to its end in spite of errors. Only its own files
//! are opened, and no files are created.

mod json;
mod report;

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;

use crate::config_origin::ConfigOrigin;
use crate::load;
use report::UnsupportedItem;

const USAGE: &str = "Usage: weir check [OPTIONS] [FILE]

Lists everything in the configuration FILE (default: the one that weir would serve) that this
version does not support, and what weir does instead with --lenient.

Options:
  --root DIR  the files are those of a container or another machine, whose root is DIR here; FILE is
              a name there
  --json      print JSON (docs/check.md explains the fields)
  -h, --help  print this help

Exit code: 0 if everything is supported; 1 if the configuration is invalid or cannot be read; 2 if
something unsupported concerns security or content; 3 if only behavior or performance.
";

#[derive(Debug, Default, PartialEq, Eq)]
struct CheckArguments {
    help: bool,
    json: bool,
    file: Option<OsString>,
    root: Option<OsString>,
}

impl CheckArguments {
    fn parse(words: &[OsString]) -> Result<Self, String> {
        let mut arguments = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match word.as_bytes() {
                b"--root" => {
                    arguments.root = Some(words.next().ok_or("--root requires a DIR")?.clone());
                }
                b"--json" => arguments.json = true,
                b"--help" | b"-h" => arguments.help = true,
                [b'-', ..] => {
                    return Err(format!("unknown option {}", word.to_string_lossy()));
                }
                _ if arguments.file.is_some() => {
                    return Err("only one FILE can be checked at a time".to_owned());
                }
                _ => arguments.file = Some(word.clone()),
            }
        }
        if arguments.root.is_some() && arguments.file.is_none() && !arguments.help {
            return Err("--root requires a FILE".to_owned());
        }
        Ok(arguments)
    }
}

/// Runs `weir check` with these arguments.
pub fn run(words: &[OsString]) -> ExitCode {
    let arguments = match CheckArguments::parse(words) {
        Ok(arguments) => arguments,
        Err(why) => {
            observe::tell(format_args!("weir check: {why}\n{USAGE}"));
            return ExitCode::FAILURE;
        }
    };
    if arguments.help {
        print(USAGE);
        return ExitCode::SUCCESS;
    }
    let [file, root] =
        [&arguments.file, &arguments.root].map(|name| name.as_deref().map(Path::new));
    let (origin, mut files) = match ConfigOrigin::examined(file, root) {
        Ok(examined) => examined,
        Err(error) => {
            observe::tell(format_args!("weir check: {error}\n"));
            return ExitCode::FAILURE;
        }
    };
    let examined = load::examine(&origin, &mut *files);
    let report = UnsupportedItem::new(&origin.conf, &examined);
    print(&if arguments.json { json::text(&report) } else { report.text() });
    ExitCode::from(report.exit_code())
}

fn print(text: &str) {
    // A closed pipe is not an error.
    let _ = std::io::stdout().write_all(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &str) -> Result<CheckArguments, String> {
        CheckArguments::parse(&words.split_whitespace().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn arguments_are_a_file_and_switches() {
        let file = |name: &str| Some(OsString::from(name));
        assert_eq!(parse(""), Ok(CheckArguments::default()));
        let expected = CheckArguments { json: true, file: file("a"), ..CheckArguments::default() };
        assert_eq!(parse("a --json"), Ok(expected));
        assert!(parse("-h").is_ok_and(|arguments| arguments.help));
        assert_eq!(parse("--root d a").unwrap().root, file("d"));
        for words in ["--root", "--root d"] {
            assert!(parse(words).is_err_and(|why| why.contains("--root requires a ")), "{words}");
        }
        assert_eq!(parse("--yaml"), Err("unknown option --yaml".to_owned()));
        assert!(parse("a b").is_err());
    }

    #[test]
    fn a_relative_file_is_in_the_current_directory() {
        let here = std::env::current_dir().unwrap();
        let (origin, _) = ConfigOrigin::examined(Some(Path::new("some/a.conf")), None).unwrap();
        assert_eq!(&*origin.conf, here.join("some/a.conf").as_os_str().as_bytes());
        assert_eq!(&*origin.conf_prefix, [here.join("some").as_os_str().as_bytes(), b"/"].concat());
    }

    #[test]
    fn every_directive_that_is_not_supported_has_a_class() {
        let tables = http::TABLES.iter().chain(crate::settings::TABLES);
        let rows = tables.flat_map(|(_, prefix, rows)| {
            rows.iter().map(move |row| format!("{prefix}{}", row.name))
        });
        let blocks = http::BLOCKS.iter().chain(crate::settings::BLOCKS);
        let mut supported: Vec<_> = rows.chain(blocks.map(|block| block.name.to_owned())).collect();
        supported.push("include".to_owned());
        let of_stream = stream::directives().map(|(prefix, row)| format!("{prefix}{}", row.name));
        let blocks = stream::BLOCKS.iter().map(|block| block.name.to_owned());
        let of_stream: Vec<_> = of_stream.chain(blocks).chain(["stream".to_owned()]).collect();
        let mut count = 0;
        for known in conf::known::all() {
            let obsolete = matches!(known.standing, conf::known::DirectiveSupport::Obsolete { .. });
            let is_here = match known.module.split('_').nth(1) {
                Some("stream") => of_stream.iter().any(|name| name == known.name),
                Some("mail") => false,
                _ => supported.iter().any(|name| name == known.name),
            };
            if obsolete || is_here {
                continue;
            }
            assert!(conf::lacking::of(known).is_some(), "{known:?}");
            count += 1;
        }
        assert!(count > 100, "{count}");
    }
}
