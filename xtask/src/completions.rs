//! `xtask completions`: what bash, zsh and fish complete after `weir`, from the program's help.

mod bash;
mod command;
mod fish;
mod zsh;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::args::Args;
use crate::help_text::HelpText;
use crate::man::complaints;
use crate::{man, packages, project};
use command::CompletedCommand;

pub(crate) const HELP: &str = "write the completions of bash, zsh and fish into a folder

Usage: cargo xtask completions FOLDER [--program WEIR]

  --program WEIR  ask this weir for its help (default: the one that cargo build makes)

The files are weir.bash, _weir and weir.fish.
";

/// The commands of `weir lab` have options of their own.
const NESTED: [&str; 4] = ["run", "agent", "tune", "doctor"];

type Write = fn(&[CompletedCommand]) -> String;

/// The shells, each with the name of its file.
const SHELLS: [(&str, &str, Write); 3] = [
    ("bash", "weir.bash", bash::write),
    ("zsh", "_weir", zsh::write),
    ("fish", "weir.fish", fish::write),
];

pub(crate) fn run(words: &[String]) -> Result<(), String> {
    let mut args = Args::new(words);
    let program = man::program(&mut args)?;
    let words = args.words()?;
    let [folder] = &words[..] else { return Err("a folder is required".into()) };
    write(Path::new(folder), &commands(&program)?)
}

fn write(folder: &Path, commands: &[CompletedCommand]) -> Result<(), String> {
    let fail = |error| format!("{}: {error}", folder.display());
    fs::create_dir_all(folder).map_err(fail)?;
    let write = |(_, file, text): (_, &str, Write)| fs::write(folder.join(file), text(commands));
    SHELLS.into_iter().try_for_each(write).map_err(fail)
}

fn commands(program: &Path) -> Result<Vec<CompletedCommand>, String> {
    let command = |path: &str| {
        let help = HelpText::of(program, path)?;
        let path = path.to_owned();
        Ok(CompletedCommand { path, options: help.options(), commands: help.commands() })
    };
    let top = command("")?;
    let names: Vec<String> = top.commands.iter().map(|(name, _)| name.clone()).collect();
    let nested = NESTED.map(|name| format!("lab {name}"));
    let others = names.iter().chain(&nested).map(|path| command(path));
    std::iter::once(Ok(top)).chain(others).collect::<Result<_, String>>()
}

/// Has the shells read their files, and complete something. The names of those not installed.
pub(crate) fn check(program: &Path) -> Result<Vec<&'static str>, String> {
    let folder = project::root().join("target/completions");
    write(&folder, &commands(program)?)?;
    let mut missing = Vec::new();
    for (shell, file, _) in SHELLS {
        let Some(path) = packages::find(shell) else {
            missing.push(shell);
            continue;
        };
        complaints(Command::new(&path).arg("-n").arg(folder.join(file)))?;
        for (typed, expected) in TYPED {
            completes(shell, &path, &folder.join(file), typed, expected)?;
        }
    }
    Ok(missing)
}

/// Words that are typed, the last of them in part, and a completion of it.
const TYPED: [(&str, &str); 5] = [
    ("weir lo", "load"),
    ("weir -s rel", "reload"),
    ("weir ctl rel", "reload"),
    ("weir lab ru", "run"),
    ("weir lab run --fail", "--fail-if"),
];

/// zsh completes only at a terminal, so it only reads its file.
fn completes(
    shell: &str,
    path: &PathBuf,
    file: &Path,
    typed: &str,
    expected: &str,
) -> Result<(), String> {
    let script = match shell {
        "bash" => format!(
            "source {}; COMP_WORDS=({typed}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _weir 2>&1; \
             printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            file.display()
        ),
        "fish" => format!("source {}; complete -C '{typed}'", file.display()),
        _ => return Ok(()),
    };
    let printed = project::output(Command::new(path).arg("-c").arg(script))?;
    let printed = String::from_utf8_lossy(&printed);
    let is_there = printed.lines().any(|line| line.split_whitespace().next() == Some(expected));
    if is_there { Ok(()) } else { Err(format!("{shell} does not complete \"{typed}\": {printed}")) }
}
