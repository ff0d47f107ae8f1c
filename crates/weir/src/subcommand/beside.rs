//! Commands that are programs of their own beside this one, so that nothing of them is in it:
//! `weir discover` is `weir-discover`, `weir ingress` is `weir-ingress`.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

use crate::messages::complain;

pub(super) const DISCOVER_HELP: &str = include_str!("../../../discover/src/help.txt");
pub(super) const INGRESS_HELP: &str = include_str!("../../../ingress/src/help.txt");

/// Becomes the program of a command.
pub(super) fn start(command: &str, arguments: &[OsString]) -> ExitCode {
    let name = format!("weir-{command}");
    let own = std::env::current_exe();
    let program = own.as_deref().ok().and_then(Path::parent).map(|folder| folder.join(&name));
    let program = program.unwrap_or_else(|| name.into());
    let error = Command::new(&program).args(arguments).exec();
    complain(format_args!("{command}: {} cannot be executed: {error}", program.display()));
    if error.kind() == std::io::ErrorKind::NotFound {
        observe::tell(format_args!("      build it with \"cargo build --release -p {command}\"\n"));
    }
    ExitCode::FAILURE
}
