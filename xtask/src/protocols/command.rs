//! Commands of clients.

use std::process::{Command, Stdio};

use crate::project;

/// A command that is ended if it takes too long.
pub(super) fn bounded(program: &str) -> Command {
    let mut command = Command::new("timeout");
    command.args(["60", program]).stdin(Stdio::null());
    command
}

pub(super) fn printed(command: &mut Command) -> Result<String, String> {
    project::output(command).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}
