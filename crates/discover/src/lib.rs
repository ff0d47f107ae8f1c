//! `weir discover`: finds the servers of upstream groups elsewhere and gives them to a running
//! server, one list per group, through its API.
//!
//! ```text
//! sources (a thread for each part) --lists--> core (pure) --one PUT per changed group--> server
//! ```
//!
//! A program of its own: credentials of sources, and sockets such as that of Docker, stay out of
//! the process that faces the network. Everything blocks, with deadlines; there is no runtime.
//!
//! `weir ingress` is another program, which plans its lists itself and uses the rest.

mod arguments;
mod backoff;
mod core;
mod drive;
mod grpc;
mod http;
mod json_lines;
mod kubernetes;
mod metrics_page;
mod secret;
mod server_entry;
mod sources;
mod wanted;
mod weir_api;

use std::io::Write;
use std::process::ExitCode;

use arguments::{DiscoverArguments, HELP};
pub use arguments::{SERVER, time};
pub use backoff::{Backoff, seed};
pub use drive::Drive;
use drive::tell;
pub use http::{HttpClient, HttpPlace, HttpRequest};
pub use kubernetes::{
    ApiReply, ApiServer, ApiServerOptions, ApiServerPlace, Collection, CollectionChange, WatchEnd,
    namespace_of_pod,
};
pub use metrics_page::MetricsPage;
pub use server_entry::{ServerEntry, ServerList};
pub use sources::{Report, Source};
pub use wanted::{GroupKey, GroupedServers, WantedGroups};
pub use weir_api::WeirApi;

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
