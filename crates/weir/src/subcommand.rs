//! The commands of `weir` besides serving: one table for the program and its help. Called `nginx`,
//! the program has no commands; called `wrk`, it is `weir load`.

mod beside;
mod fmt;
mod lab;

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;

pub use lab::LAB_COMMANDS;
use load::CalledAs;

use crate::messages::{Reported, advise, code, complain, print};
use crate::name::name;
use crate::{certificates, check, ctl, help, reference, top, trial};

/// `cargo xtask licenses` writes it.
const LICENSES: &str = include_str!("../licenses.txt");

pub struct Subcommand {
    pub name: &'static str,
    /// One line for the list of commands.
    pub summary: &'static str,
    /// Runs it with the arguments after its name.
    run: fn(&[OsString]) -> ExitCode,
    /// The text of `--help`; `None` if `run` handles `--help` itself.
    help: Option<&'static str>,
}

/// All commands, in the order of the help.
static SUBCOMMANDS: &[Subcommand] = &[
    Subcommand {
        name: "load",
        summary: "measure a server, with wrk's options and more",
        run: |rest| code(load(rest, CalledAs::Load)),
        help: None,
    },
    Subcommand {
        name: "backend",
        summary: "run a test backend, alone or behind a proxy",
        run: |rest| code(backend(rest)),
        help: None,
    },
    Subcommand {
        name: "lab",
        summary: "find what slows a configuration down on this machine",
        run: lab::start,
        help: None,
    },
    Subcommand {
        name: "trial",
        summary: "run a copy of a configuration beside the running server, to compare",
        run: |rest| code(trial::run(rest)),
        help: Some(trial::HELP),
    },
    Subcommand {
        name: "ctl",
        summary: "look at a running server and change it: drain servers, reload",
        run: |rest| code(ctl::run(rest)),
        help: Some(ctl::HELP),
    },
    Subcommand {
        name: "discover",
        summary: "find the servers of groups elsewhere and give them to a running server",
        run: |rest| beside::start("discover", rest),
        help: Some(beside::DISCOVER_HELP),
    },
    Subcommand {
        name: "ingress",
        summary: "make a running server the gateway of a Kubernetes cluster",
        run: |rest| beside::start("ingress", rest),
        help: Some(beside::INGRESS_HELP),
    },
    Subcommand {
        name: "acme",
        summary: "show, renew and forget the certificates that the server obtains by itself",
        run: |rest| code(certificates::run(rest)),
        help: Some(certificates::HELP),
    },
    Subcommand {
        name: "top",
        summary: "show what a running server does, once a second",
        run: top::run,
        help: Some(top::HELP),
    },
    Subcommand {
        name: "check",
        summary: "list what this version does not support in a configuration",
        run: check::run,
        help: None,
    },
    Subcommand {
        name: "fmt",
        summary: "format configurations",
        run: |rest| code(fmt::run(rest)),
        help: Some(fmt::HELP),
    },
    Subcommand {
        name: "reference",
        summary: "explain a directive, or list all directives",
        run: |rest| code(reference::run(rest)),
        help: None,
    },
    Subcommand {
        name: "licenses",
        summary: "print the licences of all that is in the program",
        run: |_| code(print(LICENSES)),
        help: Some("Usage: weir licenses\n\nPrints the licences of all that is in the program.\n"),
    },
    Subcommand {
        name: "help",
        summary: "print this help, or the help of a command",
        run: print_help,
        help: Some("Usage: weir help [COMMAND]\n\nPrints the help of weir or of a command.\n"),
    },
];

pub fn names() -> impl Iterator<Item = &'static str> {
    SUBCOMMANDS.iter().map(|subcommand| subcommand.name)
}

/// Their names, each with its line in the list of commands.
pub fn summaries() -> impl Iterator<Item = (&'static str, &'static str)> {
    SUBCOMMANDS.iter().map(|subcommand| (subcommand.name, subcommand.summary))
}

/// Runs the command that the arguments begin with, if any.
pub fn run(called: Option<&OsStr>, arguments: &[OsString]) -> Option<ExitCode> {
    if called.is_some_and(|called| Path::new(called).file_name() == Some(OsStr::new("wrk"))) {
        return Some(code(load(arguments, CalledAs::Wrk)));
    }
    let (first, rest) = arguments.split_first().filter(|_| !name().is_nginx())?;
    Some(find(first)?.start(rest))
}

fn find(name: &OsStr) -> Option<&'static Subcommand> {
    SUBCOMMANDS.iter().find(|subcommand| name == subcommand.name)
}

impl Subcommand {
    fn start(&self, arguments: &[OsString]) -> ExitCode {
        let mut options = arguments.iter().take_while(|argument| *argument != "--");
        match self.help {
            Some(help) if options.any(|option| option == "--help" || option == "-h") => {
                code(print(help))
            }
            _ => (self.run)(arguments),
        }
    }
}

fn load(arguments: &[OsString], called: CalledAs) -> Result<(), Reported> {
    let name = if called == CalledAs::Wrk { "wrk" } else { "weir load" };
    load::command(arguments, called).map_err(|failed| {
        observe::tell(format_args!("{name}: {failed}\n"));
        match failed.code() {
            1 => Reported,
            code => std::process::exit(code.into()),
        }
    })
}

fn backend(arguments: &[OsString]) -> Result<(), Reported> {
    load::backend::run(arguments).map_err(|why| complain(format_args!("backend: {why}")))
}

fn print_help(arguments: &[OsString]) -> ExitCode {
    let Some(named) = arguments.first() else { return code(print(help::text(summaries()))) };
    match find(named) {
        Some(subcommand) => subcommand.start(&["--help".into()]),
        None => {
            let word = named.to_string_lossy();
            complain(format_args!("unknown command \"{word}\""));
            let nearest = conf::suggest::nearest(word.as_bytes(), names());
            advise(nearest.map(conf::suggest::did_you_mean), "weir --help");
            ExitCode::FAILURE
        }
    }
}
