//! `weir lab`: what in a machine and a configuration costs how much.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::Ordering;

use lab::agent::{self, AgentArguments};
use lab::doctor::{self, DoctorArguments};
use lab::gate::GateVerdict;
use lab::run::{self, RunArguments};
use lab::tune::{self, TuneArguments};
use net::signals::{SIGINT, note_once};

use crate::config_origin::ConfigOrigin;
use crate::messages::{code, complain, print, refuse};

const USAGE: &str = "Usage: weir lab COMMAND [OPTIONS]

Commands:
  run     measure what the rows of a study gain, with confidence intervals
  list    list the built-in studies
  agent   be one of several machines of a study
  tune    find settings that make a configuration faster
  doctor  list likely problems of this machine and a configuration under load

weir lab COMMAND --help explains a command.
";

pub const LAB_COMMANDS: [&str; 5] = ["run", "list", "agent", "tune", "doctor"];

/// The exit codes of a study with limits (`--fail-if`).
const BEYOND_LIMIT: u8 = 3;
const INCONCLUSIVE: u8 = 4;
/// The exit code of a study after Ctrl-C; that of shells for a process that SIGINT ended.
const INTERRUPTED: u8 = 128 + 2;
/// The exit code of a doctor who cannot say anything.
const UNREADABLE: u8 = 2;

/// Runs `weir lab` with these arguments.
pub(super) fn start(arguments: &[OsString]) -> ExitCode {
    let Some((command, rest)) = arguments.split_first() else {
        return code(Err(complain(format_args!("lab: a command is required\n{USAGE}"))));
    };
    match command.as_encoded_bytes() {
        b"run" => measure(rest),
        b"list" => code(print(lab::run::list())),
        b"agent" => attend(rest),
        b"tune" => search(rest),
        b"doctor" => diagnose(rest),
        b"--help" | b"-h" => code(print(USAGE)),
        _ => code(Err(refuse("lab", command, &LAB_COMMANDS))),
    }
}

fn measure(words: &[OsString]) -> ExitCode {
    let arguments = match RunArguments::parse(words) {
        Ok(arguments) if arguments.help => return code(print(run::USAGE)),
        Ok(arguments) => arguments,
        Err(why) => return told("run", Err(format!("{why}\n{}", run::USAGE))),
    };
    let interrupted = match note_once(SIGINT) {
        Ok(interrupted) => interrupted,
        Err(error) => return told("run", Err(error.to_string())),
    };
    match this_program().and_then(|weir| run::run(&arguments, &weir, words, interrupted)) {
        Ok(report) if print(&report.text).is_ok() => match report.verdict {
            Some(GateVerdict::Passes) => ExitCode::SUCCESS,
            Some(GateVerdict::Fails) => BEYOND_LIMIT.into(),
            Some(GateVerdict::Inconclusive) => INCONCLUSIVE.into(),
            None => INTERRUPTED.into(),
        },
        Ok(_) => ExitCode::FAILURE,
        Err(why) => {
            let is_interrupted = interrupted.load(Ordering::Relaxed);
            let failed = told("run", Err(why));
            if is_interrupted { INTERRUPTED.into() } else { failed }
        }
    }
}

fn search(words: &[OsString]) -> ExitCode {
    let patch = TuneArguments::parse(words).map_err(|why| format!("{why}\n{}", tune::USAGE));
    let patch = patch.and_then(|arguments| match arguments.help {
        true => Ok(tune::USAGE.to_owned()),
        false => tune::run(&arguments, &this_program()?),
    });
    told("tune", patch)
}

fn attend(words: &[OsString]) -> ExitCode {
    let arguments = AgentArguments::parse(words).map_err(|why| format!("{why}\n{}", agent::USAGE));
    let ended = arguments.and_then(|arguments| match arguments.help {
        true => Ok(agent::USAGE.to_owned()),
        false => agent::run(&arguments, &this_program()?).map(|()| String::new()),
    });
    told("agent", ended)
}

fn this_program() -> Result<PathBuf, String> {
    std::env::current_exe().map_err(|error| error.to_string())
}

fn told(command: &str, report: Result<String, String>) -> ExitCode {
    match report {
        Ok(text) => code(print(text)),
        Err(why) => code(Err(complain(format_args!("lab {command}: {why}")))),
    }
}

fn diagnose(words: &[OsString]) -> ExitCode {
    let arguments = match DoctorArguments::parse(words) {
        Ok(arguments) if arguments.help => return code(print(doctor::USAGE)),
        Ok(arguments) => arguments,
        Err(why) => {
            complain(format_args!("lab doctor: {why}\n{}", doctor::USAGE));
            return UNREADABLE.into();
        }
    };
    let origin = ConfigOrigin::examined(arguments.file.as_deref(), arguments.root.as_deref());
    let examined = origin.map_err(|error| error.to_string()).and_then(|(origin, mut files)| {
        doctor::examine(conf::bytes_path(&origin.conf), &mut *files, arguments.json)
    });
    match examined {
        Ok(diagnosis) if print(&diagnosis.text).is_ok() && diagnosis.is_healthy => {
            ExitCode::SUCCESS
        }
        Ok(_) => ExitCode::FAILURE,
        Err(why) => {
            complain(format_args!("lab doctor: {why}"));
            UNREADABLE.into()
        }
    }
}
