//! Where the project is, and how its programs are built and run.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder that holds the workspace's Cargo.toml.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is a folder of the project")
}

/// cargo itself, at the root of the project.
pub(crate) fn cargo(args: &[&str]) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.args(args).current_dir(root());
    command
}

/// Runs a command to its end; anything but success is an error that names it.
pub(crate) fn succeed(command: &mut Command) -> Result<(), String> {
    let status = command.status().map_err(|err| format!("{}: {err}", line(command)))?;
    if status.success() { Ok(()) } else { Err(format!("{}: {status}", line(command))) }
}

/// What a command wrote to its standard output; anything but success is an error that names it.
pub(crate) fn output(command: &mut Command) -> Result<Vec<u8>, String> {
    let output = command.output().map_err(|err| format!("{}: {err}", line(command)))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{}: {}\n{}", line(command), output.status, said.trim_end()))
}

/// Builds a program of the workspace with all optimisation and says where it is.
pub(crate) fn release(package: &str) -> Result<PathBuf, String> {
    build(package, &["--release"], "release")
}

/// Builds a program of the workspace as `cargo build` does and says where it is.
pub(crate) fn debug(package: &str) -> Result<PathBuf, String> {
    build(package, &[], "debug")
}

fn build(package: &str, options: &[&str], folder: &str) -> Result<PathBuf, String> {
    succeed(cargo(&["build", "--package", package]).args(options))?;
    Ok(target(folder).join(package))
}

/// Where `cargo build` puts what it has built.
pub(crate) fn debug_folder() -> PathBuf {
    target("debug")
}

fn target(folder: &str) -> PathBuf {
    target_folder().join(folder)
}

/// Where cargo puts everything.
pub(crate) fn target_folder() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or("target".into(), PathBuf::from);
    root().join(target)
}

/// The command as a person would type it.
fn line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// In seconds since 1970: when the commit was made, or SOURCE_DATE_EPOCH. A release says that it
/// was built then.
pub(crate) fn build_time() -> Result<u64, String> {
    let text = match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(text) => text,
        Err(_) => {
            let mut git = Command::new("git");
            git.current_dir(root()).args(["log", "-1", "--format=%ct"]);
            String::from_utf8_lossy(&output(&mut git)?).into_owned()
        }
    };
    text.trim().parse().map_err(|err| format!("the time \"{}\": {err}", text.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_command_is_named_with_what_it_said() {
        let message = output(Command::new("sh").args(["-c", "echo why >&2; exit 3"])).unwrap_err();
        assert!(message.contains("sh -c") && message.contains("why"), "{message}");
    }
}
