//! `weir lab agent`: a machine that does its part of a study for `weir lab run` on another one.
//!
//! Both ends speak lines of JSON, a request and its reply, over ssh or over TCP, where both prove
//! that they know a token. An agent can do what `AgentRequest` lists and nothing else; docs/lab.md
//! says what that means for its machine. Deliberately absent: encryption, which is ssh's.

mod arguments;
mod clock;
mod configuration;
mod connection;
mod handshake;
mod line;
mod listener;
mod machine;
mod protocol;
mod rights;
mod service;
mod token;

use std::path::Path;

pub use arguments::{AgentArguments, USAGE};
pub(crate) use machine::{AgentMachine, AgentPlace};
pub(crate) use token::AgentToken;

/// Runs an agent; `weir` is this program. With `--stdio` it returns when its controller leaves.
pub fn run(arguments: &AgentArguments, weir: &Path) -> Result<(), String> {
    // Servers inherit the limit.
    processes::server::raise_descriptors()?;
    let rights = rights::AgentRights::new(weir, &arguments.programs);
    match (&arguments.listen, &arguments.token_file) {
        (Some(address), Some(file)) => listener::listen(*address, AgentToken::read(file)?, &rights),
        _ => listener::stdio(&rights),
    }
}

/// Whether an agent would carry out a line; for the fuzz target, which may not start anything.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn accepts(line: &str) -> Option<String> {
    let rights = rights::AgentRights::new(Path::new("/usr/bin/weir"), &[]);
    let request = protocol::read(line).ok()?;
    rights.check(&request).ok()?;
    serde_json::to_string(&request).ok()
}

#[cfg(test)]
mod tests;
