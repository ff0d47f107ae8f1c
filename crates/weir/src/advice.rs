//! Suggests what was probably meant by an invalid command line.

use std::path::Path;

use conf::suggest;

use crate::command_line::{SignalRequest, UsageError};
use crate::subcommand::{self, LAB_COMMANDS};

/// Options with two dashes.
const LONG: [&str; 5] = ["--help", "--version", "--lenient", "--port", "--strict"];
/// Long options of other programs that are single letters here.
const ELSEWHERE: [(&str, &str); 10] = [
    ("--conf", "-c FILE"),
    ("--config", "-c FILE"),
    ("--prefix", "-p DIRECTORY"),
    ("--error-log", "-e FILE"),
    ("--test", "-t"),
    ("--check", "-t"),
    ("--signal", "-s SIGNAL"),
    ("--reload", "-s reload"),
    ("--stop", "-s stop"),
    ("--quiet", "-q"),
];
/// Words that start the server in other programs.
const SERVE: [&str; 2] = ["start", "serve"];

/// The line to show below the complaint, if there is a guess.
pub fn on(wrong: &UsageError) -> Option<String> {
    let meant = match wrong {
        UsageError::Word { word, first } => command(word, *first)?,
        UsageError::Option(word) => option(word)?,
        UsageError::Signal(word) => {
            let known = SignalRequest::WORDS.iter().map(|(known, _)| *known);
            match suggest::nearest(word.as_bytes(), known) {
                Some(nearest) => format!("-s {nearest}"),
                None => return Some("-s takes stop, quit, reopen or reload".into()),
            }
        }
        UsageError::Missing { .. }
        | UsageError::Port(_)
        | UsageError::Listen(_)
        | UsageError::Untested => return None,
    };
    Some(suggest::did_you_mean(&meant))
}

fn command(word: &str, first: bool) -> Option<String> {
    let is = |known: &str| known == word;
    if SignalRequest::WORDS.iter().any(|(known, _)| is(known)) {
        return Some(format!("weir -s {word}"));
    }
    if Path::new(word).is_file() {
        return Some(format!("-c {word}"));
    }
    match word {
        "version" => return Some("weir --version".into()),
        "test" | "configtest" => return Some("weir -t -c FILE".into()),
        _ if SERVE.contains(&word) => return Some("weir -c FILE".into()),
        _ => {}
    }
    let commands = subcommand::names().map(|name| (name, format!("weir {name}")));
    let of_lab = LAB_COMMANDS.into_iter().map(|name| (name, format!("weir lab {name}")));
    let commands = commands.chain(of_lab).filter(|_| first);
    let signals = SignalRequest::WORDS.iter().map(|(name, _)| (*name, format!("weir -s {name}")));
    let meant: Vec<_> = commands.chain(signals).collect();
    let nearest = suggest::nearest(word.as_bytes(), meant.iter().map(|(name, _)| *name))?;
    meant.into_iter().find(|(name, _)| *name == nearest).map(|(_, meant)| meant)
}

fn option(word: &str) -> Option<String> {
    let name = word.split('=').next().unwrap_or_default();
    if let Some((_, here)) = ELSEWHERE.iter().find(|(elsewhere, _)| *elsewhere == name) {
        return Some((*here).into());
    }
    suggest::nearest(name.as_bytes(), LONG).map(Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typo_finds_the_intended_option() {
        let word = |word: &str| on(&UsageError::Word { word: word.into(), first: true });
        let option = |word: &str| on(&UsageError::Option(word.into()));
        let mean = |text: &str| Some(format!("did you mean \"{text}\"?"));
        assert_eq!(word("loda"), mean("weir load"));
        assert_eq!(word("bakcend"), mean("weir backend"));
        assert_eq!(word("reload"), mean("weir -s reload"));
        assert_eq!(word("relaod"), mean("weir -s reload"));
        assert_eq!(word("start"), mean("weir -c FILE"));
        assert_eq!(word("Cargo.toml"), mean("-c Cargo.toml"), "a file that is there");
        assert_eq!(word("doctor"), mean("weir lab doctor"));
        assert_eq!(word("doctr"), mean("weir lab doctor"));
        assert_eq!(word("tune"), mean("weir lab tune"));
        assert_eq!(word("run"), mean("weir lab run"));
        assert_eq!(on(&UsageError::Word { word: "run".into(), first: false }), None);
        assert_eq!(word("frobnicate"), None);
        assert_eq!(option("--hlep"), mean("--help"));
        assert_eq!(option("--stirct"), mean("--strict"));
        assert_eq!(option("--config=x"), mean("-c FILE"));
        assert_eq!(option("z"), None);
        assert_eq!(on(&UsageError::Signal("relaod".into())), mean("-s reload"));
    }
}
