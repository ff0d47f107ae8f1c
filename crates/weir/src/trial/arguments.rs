//! The arguments of `weir trial`.

use std::ffi::{OsStr, OsString};

use crate::command_line::CommandLine;
use crate::config_origin::ConfigOrigin;
use crate::messages::{Reported, advise, complain, refuse};
use crate::name::NGINX;

/// What is added to each port.
const OFFSET: u16 = 8000;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct TrialArguments {
    pub(super) conf: OsString,
    pub(super) prefix: Option<OsString>,
    pub(super) offset: u16,
    /// Whether the folder of the copy stays.
    pub(super) keep: bool,
    pub(super) lenient: bool,
}

/// The options, for suggestions.
const OPTIONS: [&str; 4] = ["--offset", "--keep", "--lenient", "--help"];

impl TrialArguments {
    pub(super) fn parse(words: &[OsString]) -> Result<Self, Reported> {
        let mut arguments = Self {
            conf: NGINX.conf.into(),
            prefix: None,
            offset: OFFSET,
            keep: false,
            lenient: false,
        };
        let mut rest = words.iter();
        while let Some(word) = rest.next() {
            let mut value = |joined: &[u8], what: &str| match joined {
                [] => rest.next().cloned().ok_or_else(|| {
                    let option = word.to_string_lossy();
                    complain(format_args!("trial: option \"{option}\" requires {what}"))
                }),
                joined => Ok(conf::bytes_path(joined).as_os_str().to_owned()),
            };
            match word.as_encoded_bytes() {
                b"--keep" => arguments.keep = true,
                b"--lenient" => arguments.lenient = true,
                b"--offset" => arguments.offset = offset(&value(b"", "a number")?)?,
                [b'-', b'c', joined @ ..] => arguments.conf = value(joined, "a file name")?,
                [b'-', b'p', joined @ ..] => {
                    arguments.prefix = Some(value(joined, "a directory name")?);
                }
                long => match long.strip_prefix(b"--offset=") {
                    Some(number) => arguments.offset = offset(&value(number, "a number")?)?,
                    None if !long.starts_with(b"-") => return Err(refuse_file(word)),
                    None => return Err(refuse("trial", word, &OPTIONS)),
                },
            }
        }
        Ok(arguments)
    }

    /// The configuration that is meant, as `weir -c` means it.
    pub(super) fn origin(&self) -> ConfigOrigin {
        ConfigOrigin::of(&CommandLine {
            conf: Some(self.conf.clone()),
            prefix: self.prefix.clone(),
            lenient: self.lenient,
            ..CommandLine::default()
        })
    }
}

/// Rejects a word without an option, which is most likely the configuration.
fn refuse_file(word: &OsStr) -> Reported {
    let word = word.to_string_lossy();
    let told = complain(format_args!("trial: unexpected argument \"{word}\""));
    advise(Some(format!("did you mean \"-c {word}\"?")), "weir trial --help");
    told
}

fn offset(word: &OsStr) -> Result<u16, Reported> {
    let number = word.to_str().and_then(|text| text.parse().ok()).filter(|offset| *offset > 0);
    number.ok_or_else(|| {
        let word = word.to_string_lossy();
        complain(format_args!("trial: --offset must be a number from 1 to 65535, not \"{word}\""))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &str) -> Result<TrialArguments, Reported> {
        TrialArguments::parse(&words.split_whitespace().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn values_are_joined_or_apart() {
        let plain = parse("").unwrap();
        assert_eq!((plain.offset, plain.keep, plain.lenient), (8000, false, false));
        assert_eq!(plain.conf, "/etc/nginx/nginx.conf");
        for words in ["-c a.conf -p b --offset 10 --keep", "-ca.conf -pb --offset=10 --keep"] {
            let arguments = parse(words).unwrap();
            assert_eq!((&*arguments.conf, arguments.offset), (OsStr::new("a.conf"), 10));
            assert_eq!((arguments.prefix, arguments.keep), (Some("b".into()), true));
        }
    }

    #[test]
    fn what_is_wrong_is_refused() {
        for words in ["a.conf", "-c", "-p", "--offset", "--offset 0", "--offset=65536", "--kep"] {
            assert!(parse(words).is_err(), "{words}");
        }
    }
}
