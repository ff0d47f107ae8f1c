//! The program: command line, configuration, processes, signals.
//!
//! ```text
//! command line -> load -> start -> master -> worker process: control -> crew of workers
//!                              `-> single:                   control -> crew of workers
//! ```
//!
//! It joins the subsystems and knows the operating system's side of a server's life. Deliberately
//! absent: what HTTP is (crate `http`) and every system call (crate `net`).

#![allow(unreachable_pub)] // A program has no outside; the directive macros write `pub`.

mod arguments;
mod bundle;
mod check;
mod command_line;
mod control;
mod crew;
mod embedded;
mod event;
mod lenient;
mod load;
mod log;
mod master;
mod name;
mod parcel;
mod pid_file;
mod ready;
mod reception;
mod reference;
mod settings;
mod shared_limits;
mod single;
mod sockets;
mod start;
mod subcommand;
mod version;
mod worker_process;

use std::process::ExitCode;

use arguments::Arguments;
use command_line::CommandLine;
use load::Origin;
use shared_limits::SharedLimits;

/// It went wrong, and whoever has to know has been told.
#[derive(Debug)]
pub struct Told;

/// The variable that names the sockets to take over.
const INHERITED: &str = "NGINX";

fn main() -> ExitCode {
    let arguments = Arguments::take();
    net::title::reserve();
    let name = name::settle(arguments.called());
    if arguments.is_worker_process() {
        return worker_process::run();
    }
    if let Some(code) = check::run(arguments.rest()) {
        return code;
    }
    if let Some(result) = subcommand::run(arguments.called(), arguments.rest()) {
        return exit(result);
    }
    let command = match CommandLine::parse(arguments.rest()) {
        Ok(command) => command,
        Err(complaint) => {
            observe::tell(format_args!("{}: {complaint}\n", name.word));
            return ExitCode::FAILURE;
        }
    };
    if command.show_version {
        observe::tell(format_args!("{}", version::text(&command)));
        if !command.test {
            return ExitCode::SUCCESS;
        }
    }
    exit(run(&command, &arguments))
}

fn exit(result: Result<(), Told>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(Told) => ExitCode::FAILURE,
    }
}

fn run(command: &CommandLine, arguments: &Arguments) -> Result<(), Told> {
    let sockets = std::env::var(INHERITED).ok();
    let limits = SharedLimits::inherit(sockets.as_deref());
    let origin = Origin::of(command);
    start::set_first_log(&origin, command.test);
    let _home = origin.embedded.then(embedded::Home::make).transpose()?;
    if command.test {
        return start::test(command, &origin);
    }
    if let Some(request) = command.signal {
        return start::signal(request, &load::load(&origin, &mut *origin.files())?.settings);
    }
    start::run(origin, arguments, sockets, limits)
}
