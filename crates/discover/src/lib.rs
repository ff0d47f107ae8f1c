//! `weir discover`: finds the servers of upstream groups elsewhere and gives them to a running
//! server, one list per group, through its API.
//!
//! ```text
//! sources (a thread for each part) --lists--> core (pure) --one PUT per changed group--> server
//! ```
//!
//! A program of its own: credentials of sources, and sockets such as that of Docker, stay out of
//! the process that faces the network. Everything blocks, with deadlines; there is no runtime.

mod arguments;
mod backoff;
mod core;
mod drive;
mod grpc;
mod http;
mod json_lines;
mod metrics_page;
mod server_entry;
mod sources;
mod wanted;
mod weir_api;

use std::io::Write;
use std::process::ExitCode;

use arguments::{DiscoverArguments, HELP};
use drive::tell;

/// Runs the program with the arguments after its name.
pub fn run(arguments: &[String]) -> ExitCode {
    if arguments.iter().any(|word| word == "--help" || word == "-h") {
        let written = std::io::stdout().write_all(HELP.as_bytes());
        return if written.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let run = DiscoverArguments::parse(arguments)
        .and_then(DiscoverArguments::prepare)
        .and_then(|(drive, sources)| drive.run(sources));
    match run {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            tell(&why);
            ExitCode::FAILURE
        }
    }
}
