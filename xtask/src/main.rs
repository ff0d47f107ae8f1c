//! What a developer runs that is not cargo itself: `cargo xtask COMMAND`.
//!
//! A command is a file here and a line in [`COMMANDS`]. Only the standard library is used, so that
//! this builds in a moment on a fresh machine; what it needs of the outside (git, taskset, curl)
//! it calls as programs.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it talks to a developer")]

mod args;
mod attacks;
mod backends;
mod bench;
mod certbot;
mod chains;
mod check;
mod clients;
mod compare;
mod completions;
mod deny;
mod docs;
mod downgrades;
mod examples;
mod h2spec;
mod help_text;
mod licenses;
mod linked_crates;
mod man;
mod new_feature;
mod own_certificate;
mod package;
mod packages;
mod php_fpm;
mod project;
mod protocols;
mod prove;
mod release;
mod running;
mod sbom;
mod service;
mod several_machines;
mod stream_server;
mod suite;
mod takeover;
mod tidy;
mod units;
mod weir_backend;
mod wrk;

use std::process::ExitCode;

struct Command {
    name: &'static str,
    /// The first line stands in the list of commands, all of it answers `--help`.
    help: &'static str,
    run: fn(&[String]) -> Result<(), String>,
}

const COMMANDS: &[Command] = &[
    Command { name: "check", help: check::HELP, run: check::run },
    Command { name: "tidy", help: tidy::HELP, run: tidy::run },
    Command { name: "deny", help: deny::HELP, run: deny::run },
    Command { name: "docs", help: docs::HELP, run: docs::run },
    Command { name: "bench", help: bench::HELP, run: bench::run },
    Command { name: "release", help: release::HELP, run: release::run },
    Command { name: "package", help: package::HELP, run: package::run },
    Command { name: "prove", help: prove::HELP, run: prove::run },
    Command { name: "compare", help: compare::HELP, run: compare::run },
    Command { name: "backends", help: backends::HELP, run: backends::run },
    Command { name: "protocols", help: protocols::HELP, run: protocols::run },
    Command { name: "examples", help: examples::HELP, run: examples::run },
    Command { name: "takeover", help: takeover::HELP, run: takeover::run },
    Command { name: "clients", help: clients::HELP, run: clients::run },
    Command { name: "h2spec", help: h2spec::HELP, run: h2spec::run },
    Command { name: "downgrades", help: downgrades::HELP, run: downgrades::run },
    Command { name: "attacks", help: attacks::HELP, run: attacks::run },
    Command { name: "chains", help: chains::HELP, run: chains::run },
    Command { name: "certbot", help: certbot::HELP, run: certbot::run },
    Command { name: "suite", help: suite::HELP, run: suite::run },
    Command { name: "several-machines", help: several_machines::HELP, run: several_machines::run },
    Command { name: "service", help: service::HELP, run: service::run },
    Command { name: "man", help: man::HELP, run: man::run },
    Command { name: "completions", help: completions::HELP, run: completions::run },
    Command { name: "licenses", help: licenses::HELP, run: licenses::run },
    Command { name: "sbom", help: sbom::HELP, run: sbom::run },
    Command { name: "new-feature", help: new_feature::HELP, run: new_feature::run },
];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(words: &[String]) -> Result<(), String> {
    let Some((name, rest)) = words.split_first() else {
        print!("{}", overview());
        return Ok(());
    };
    if matches!(name.as_str(), "help" | "--help" | "-h") {
        print!("{}", overview());
        return Ok(());
    }
    let command = COMMANDS
        .iter()
        .find(|command| command.name == name)
        .ok_or_else(|| format!("unknown command \"{name}\"\n\n{}", overview()))?;
    if rest.iter().any(|word| word == "--help" || word == "-h") {
        println!("cargo xtask {}: {}", command.name, command.help.trim_end());
        return Ok(());
    }
    (command.run)(rest)
}

fn overview() -> String {
    let mut text = String::from("Usage: cargo xtask COMMAND [--help]\n\n");
    for command in COMMANDS {
        let summary = command.help.lines().next().unwrap_or_default();
        text += &format!("  {:12} {summary}\n", command.name);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_command_is_named_beside_the_known_ones() {
        let message = dispatch(&["chekc".into()]).unwrap_err();
        assert!(message.contains("\"chekc\"") && message.contains("  check "), "{message}");
    }

    #[test]
    fn help_is_not_run() {
        // Without the check for `--help` this would be refused as an unknown option.
        assert_eq!(dispatch(&["tidy".into(), "--help".into()]), Ok(()));
    }
}
