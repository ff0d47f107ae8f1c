//! Command lines as getopt reads them: `-t50`, `-t 50`, `--threads=50`, `--threads 50`.
//!
//! A table lists the options; the text of `--help` is generated from it. Values are not interpreted
//! here.

use std::ffi::OsString;
use std::fmt::{self, Write};

use conf::suggest;

pub struct OptionRow {
    /// Its letter; NUL for none.
    pub short: char,
    /// Its name, without dashes.
    pub long: &'static str,
    /// The name of its value in the help; empty if it takes none.
    pub value: &'static str,
    /// Its description. Further lines are indented below the first.
    pub help: &'static str,
}

/// A part of a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OptionPart {
    /// An option, by its long name, with its value.
    Option(&'static str, String),
    /// A word of its own.
    Word(String),
    /// A word after `--`.
    Rest(String),
}

/// Why a command line is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OptionError {
    /// An unknown option, and the one that was probably meant.
    Unknown(String, Option<&'static str>),
    /// The option needs a value.
    NoValue(&'static str),
    /// The option takes no value.
    Value(&'static str),
    NotText,
}

impl fmt::Display for OptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(name, None) => write!(f, "unknown option {name}"),
            Self::Unknown(name, Some(meant)) => {
                let guess = suggest::did_you_mean(&format!("--{meant}"));
                write!(f, "unknown option {name}\n      {guess}")
            }
            Self::NoValue(name) => write!(f, "--{name} requires a value"),
            Self::Value(name) => write!(f, "--{name} takes no value"),
            Self::NotText => f.write_str("an argument is not UTF-8"),
        }
    }
}

/// Parses a command line.
pub fn read(
    table: &'static [OptionRow],
    words: &[OsString],
) -> Result<Vec<OptionPart>, OptionError> {
    let mut said = Vec::new();
    let mut words = words.iter().map(|word| word.to_str().ok_or(OptionError::NotText));
    while let Some(word) = words.next().transpose()? {
        if word == "--" {
            for rest in words {
                said.push(OptionPart::Rest(rest?.to_owned()));
            }
            break;
        }
        let mut next = || words.next().transpose();
        if let Some(long) = word.strip_prefix("--") {
            said.push(read_long(table, long, &mut next)?);
        } else if let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) {
            read_letters(table, letters, &mut next, &mut said)?;
        } else {
            said.push(OptionPart::Word(word.to_owned()));
        }
    }
    Ok(said)
}

type Next<'n, 'w> = &'n mut dyn FnMut() -> Result<Option<&'w str>, OptionError>;

fn read_long(
    table: &'static [OptionRow],
    word: &str,
    next: Next<'_, '_>,
) -> Result<OptionPart, OptionError> {
    let (name, joined) = match word.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (word, None),
    };
    let choice = table.iter().find(|choice| choice.long == name);
    let choice = choice.ok_or_else(|| {
        let meant = suggest::nearest(name.as_bytes(), table.iter().map(|choice| choice.long));
        OptionError::Unknown(format!("--{name}"), meant)
    })?;
    let value = match (choice.value.is_empty(), joined) {
        (true, None) => "",
        (true, Some(_)) => return Err(OptionError::Value(choice.long)),
        (false, Some(value)) => value,
        (false, None) => next()?.ok_or(OptionError::NoValue(choice.long))?,
    };
    Ok(OptionPart::Option(choice.long, value.to_owned()))
}

fn read_letters(
    table: &'static [OptionRow],
    letters: &str,
    next: Next<'_, '_>,
    said: &mut Vec<OptionPart>,
) -> Result<(), OptionError> {
    let mut rest = letters.chars();
    while let Some(letter) = rest.next() {
        let choice = table.iter().find(|choice| choice.short == letter && letter != '\0');
        let choice = choice.ok_or_else(|| OptionError::Unknown(format!("-{letter}"), None))?;
        if choice.value.is_empty() {
            said.push(OptionPart::Option(choice.long, String::new()));
            continue;
        }
        let value = match rest.as_str() {
            "" => next()?.ok_or(OptionError::NoValue(choice.long))?,
            joined => joined,
        };
        said.push(OptionPart::Option(choice.long, value.to_owned()));
        break;
    }
    Ok(())
}

/// The columns before the text of an option.
const INDENT: usize = 26;

/// The table as text, a line for each option.
pub fn help(table: &[OptionRow]) -> String {
    let mut text = String::new();
    for choice in table {
        let short = match choice.short {
            '\0' => "   ".to_owned(),
            letter => format!("-{letter},"),
        };
        let name = format!("  {short} --{} {}", choice.long, choice.value);
        for (line, index) in choice.help.lines().zip(0..) {
            let left = if index == 0 { name.as_str() } else { "" };
            // A name that is too long for its column has a line of its own.
            if left.len() >= INDENT {
                let _ = writeln!(text, "{left}\n{:INDENT$}{line}", "");
            } else {
                let _ = writeln!(text, "{left:INDENT$}{line}");
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[OptionRow] = &[
        OptionRow { short: 't', long: "threads", value: "N", help: "How many" },
        OptionRow { short: '\0', long: "latency", value: "", help: "One line\nand another" },
        OptionRow { short: 'v', long: "version", value: "", help: "Version" },
    ];

    fn said(line: &str) -> Result<Vec<OptionPart>, OptionError> {
        let words: Vec<OsString> = line.split_whitespace().map(Into::into).collect();
        read(TABLE, &words)
    }

    fn option(name: &'static str, value: &str) -> OptionPart {
        OptionPart::Option(name, value.into())
    }

    #[test]
    fn options_may_be_written_in_every_way() {
        for line in ["-t50", "-t 50", "--threads=50", "--threads 50"] {
            assert_eq!(said(line), Ok(vec![option("threads", "50")]), "{line}");
        }
        assert_eq!(said("-vt5"), Ok(vec![option("version", ""), option("threads", "5")]));
    }

    #[test]
    fn words_may_be_anywhere() {
        let expected = vec![
            OptionPart::Word("http://h/".into()),
            option("latency", ""),
            OptionPart::Rest("-v".into()),
            OptionPart::Rest("x".into()),
        ];
        assert_eq!(said("http://h/ --latency -- -v x"), Ok(expected));
        assert_eq!(said("-"), Ok(vec![OptionPart::Word("-".into())]));
    }

    #[test]
    fn invalid_options_are_refused() {
        assert_eq!(said("-x"), Err(OptionError::Unknown("-x".into(), None)));
        let misspelled = OptionError::Unknown("--thread".into(), Some("threads"));
        assert_eq!(
            misspelled.to_string(),
            "unknown option --thread\n      did you mean \"--threads\"?"
        );
        assert_eq!(said("--thread 1"), Err(misspelled));
        assert_eq!(said("-t"), Err(OptionError::NoValue("threads")));
        assert_eq!(said("--threads"), Err(OptionError::NoValue("threads")));
        assert_eq!(said("--latency=1"), Err(OptionError::Value("latency")));
    }

    #[test]
    fn the_help_lists_the_table() {
        let text = help(TABLE);
        let expected = "  -t, --threads N         How many\n";
        assert!(text.starts_with(expected), "{text}");
        assert!(text.contains(&format!("\n{:26}and another\n", "")), "{text}");
    }
}
