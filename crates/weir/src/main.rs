//! The program: command line, configuration, processes, signals.
//!
//! It joins the subsystems and knows the operating system's side of a server's life. Deliberately
//! absent: what HTTP is (crate `http`) and every system call (crate `net`).

mod command_line;
mod daemon;
mod load;
mod log;
mod name;
mod pid_file;
mod settings;
mod single;
mod version;

use std::process::ExitCode;

use command_line::CommandLine;
use log::Log;

fn main() -> ExitCode {
    let name = name::settle(std::env::args_os().next().as_deref());
    let arguments = std::env::args_os().skip(1).collect();
    let command = match CommandLine::parse(arguments) {
        Ok(command) => command,
        Err(complaint) => {
            eprintln!("{}: {complaint}", name.word);
            return ExitCode::FAILURE;
        }
    };
    if command.show_version {
        eprint!("{}", version::text(&command));
        if !command.test {
            return ExitCode::SUCCESS;
        }
    }
    match run(&command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Told) => ExitCode::FAILURE,
    }
}

/// It went wrong, and the user has been told.
pub struct Told;

fn run(command: &CommandLine) -> Result<(), Told> {
    let mut log = Log::first(command);
    let loaded = load::load(command, &mut log);
    if command.test {
        return load::test(command, loaded.and_then(|loaded| load::try_out(loaded, &mut log)));
    }
    let loaded = loaded?;
    match &command.signal {
        Some(signal) => daemon::signal(*signal, &loaded.settings, &mut log),
        None => daemon::start(command, loaded, log),
    }
}
