//! The program: command line, configuration, processes, signals.
//!
//! ```text
//! command line -> load -> start -> master -> worker process: control -> workers
//!                              `-> single:                   control -> workers
//! ```
//!
//! It connects the subsystems and manages processes, files and sockets. Deliberately absent: HTTP
//! (crate `http`) and system calls (crate `net`).

#![allow(unreachable_pub)] // A program has no outside; the directive macros write `pub`.

mod acceptor;
mod advice;
mod arguments;
mod certificates;
mod check;
mod command_line;
mod config_origin;
mod config_snapshot;
mod control;
mod control_socket;
mod ctl;
mod defaults;
mod embedded;
mod event;
mod help;
mod hints;
mod ipc;
mod lenient;
mod load;
mod log;
mod master;
mod messages;
mod name;
mod parent;
mod pid_file;
mod places;
mod readiness;
mod ready;
mod reference;
mod service_manager;
mod settings;
mod shared_limits;
mod single;
mod sockets;
mod start;
mod steering;
mod subcommand;
mod subsystems;
mod top;
mod trial;
mod version;
mod worker_process;
mod workers;

use std::path::PathBuf;
use std::process::ExitCode;

use arguments::Arguments;
use command_line::CommandLine;
use config_origin::ConfigOrigin;
use messages::{Reported, advise, code, print};
use shared_limits::SharedLimits;
use sockets::INHERITED;
use start::ServerStart;

#[global_allocator]
static ALLOCATOR: net::memory::Allocator = net::memory::Allocator;

fn main() -> ExitCode {
    let arguments = Arguments::take();
    net::title::reserve();
    let name = name::settle(arguments.called());
    if arguments.is_worker_process() {
        return worker_process::run();
    }
    if let Some(code) = subcommand::run(arguments.called(), arguments.rest()) {
        return code;
    }
    let command = match CommandLine::parse(arguments.rest()) {
        Ok(command) => command,
        Err(wrong) => {
            let complaint = wrong.complaint(name.is_nginx());
            observe::tell(format_args!("{}: {complaint}\n", name.word));
            advise(advice::on(&wrong), "weir --help");
            return ExitCode::FAILURE;
        }
    };
    if command.show_version {
        show(&command);
        if !command.test || command.show_help && !name.is_nginx() {
            return ExitCode::SUCCESS;
        }
    }
    code(run(&command, &arguments))
}

/// Requested output goes to standard output; nginx writes it to standard error.
fn show(command: &CommandLine) {
    let text = if command.show_help {
        help::text(subcommand::summaries())
    } else {
        version::text(command)
    };
    match name::name().is_nginx() {
        true => observe::tell(format_args!("{text}")),
        // The reader may have closed the pipe.
        false => drop(print(text)),
    }
}

fn run(command: &CommandLine, arguments: &Arguments) -> Result<(), Reported> {
    let sockets = std::env::var(INHERITED).ok();
    let limits = SharedLimits::inherit(sockets.as_deref());
    let origin = ConfigOrigin::of(command);
    start::set_first_log(&origin, command.test);
    if command.test {
        return start::test(command, &origin);
    }
    let _home = origin.port.map(|_| embedded::Home::make()).transpose()?;
    if let Some(request) = command.signal {
        return start::signal(request, &origin);
    }
    let greeting = origin.port.map(|port| {
        let program = arguments.called().map_or("weir".into(), |called| called.to_string_lossy());
        embedded::next_steps(port, &program)
    });
    let inherited = sockets;
    let control_socket = command.control_socket.as_ref().map(PathBuf::from);
    let start =
        ServerStart { origin, arguments, inherited, limits, greeting, control_socket, warn: true };
    start::run(start)
}
