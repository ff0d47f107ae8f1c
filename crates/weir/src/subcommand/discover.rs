//! `weir discover` is another program, `weir-discover`, so that nothing of it is in this one.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

use crate::messages::complain;

/// The name of its program, which is beside this one.
const PROGRAM: &str = "weir-discover";

pub(super) const HELP: &str = include_str!("../../../discover/src/help.txt");

/// Becomes that program.
pub(super) fn start(arguments: &[OsString]) -> ExitCode {
    let own = std::env::current_exe();
    let program = own.as_deref().ok().and_then(Path::parent).map(|folder| folder.join(PROGRAM));
    let program = program.unwrap_or_else(|| PROGRAM.into());
    let error = Command::new(&program).args(arguments).exec();
    complain(format_args!("discover: {} cannot be executed: {error}", program.display()));
    if error.kind() == std::io::ErrorKind::NotFound {
        observe::tell(format_args!("      build it with \"cargo build --release -p discover\"\n"));
    }
    ExitCode::FAILURE
}
