//! What the program prints on the terminal besides the log: output, errors and advice.

use std::ffi::OsStr;
use std::io::Write;
use std::process::ExitCode;

use crate::name::name;

/// An error that has already been reported.
#[derive(Debug)]
pub struct Reported;

/// The exit code of most commands.
pub fn code(result: Result<(), Reported>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(Reported) => ExitCode::FAILURE,
    }
}

/// Prints to standard output.
pub fn print(text: impl AsRef<[u8]>) -> Result<(), Reported> {
    std::io::stdout().write_all(text.as_ref()).map_err(|_| Reported)
}

/// Prints an error.
pub fn complain(text: impl std::fmt::Display) -> Reported {
    observe::tell(format_args!("weir: {text}\n"));
    Reported
}

/// Rejects an argument of `weir NAME`, and suggests what may have been meant.
pub fn refuse(name: &str, argument: &OsStr, options: &[&'static str]) -> Reported {
    let word = argument.to_string_lossy();
    let told = match word.starts_with('-') {
        true => complain(format_args!("{name}: invalid option: \"{word}\"")),
        false => complain(format_args!("{name}: unexpected argument \"{word}\"")),
    };
    let nearest = conf::suggest::nearest(word.as_bytes(), options.iter().copied());
    advise(nearest.map(conf::suggest::did_you_mean), &format!("weir {name} --help"));
    told
}

/// Points to the help below an error message. nginx does not do that.
pub fn advise(guess: Option<String>, help: &str) {
    if !name().is_nginx() {
        guess.iter().for_each(|guess| observe::tell(format_args!("      {guess}\n")));
        observe::tell(format_args!("      run \"{help}\" for help\n"));
    }
}

/// Refuses the words of a program that takes a command first: one of `commands`.
pub fn refuse_command(program: &str, words: &[&str], commands: &[&'static str]) -> Reported {
    let (what, nearest) = match words {
        [] => ("a command is required".to_owned(), None),
        [word, ..] if commands.contains(word) => (format!("wrong arguments of \"{word}\""), None),
        [word, ..] => {
            let nearest = conf::suggest::nearest(word.as_bytes(), commands.iter().copied());
            (format!("unknown command \"{word}\""), nearest)
        }
    };
    let told = complain(format_args!("{program}: {what}"));
    advise(nearest.map(conf::suggest::did_you_mean), &format!("weir {program} --help"));
    told
}
