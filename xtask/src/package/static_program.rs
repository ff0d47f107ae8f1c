//! The program for packages: statically linked with musl, so that one file runs on every Linux, and
//! the same in every folder that it is built in.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{packages, project};

/// What rustc calls the machine and C library.
pub(crate) fn target() -> String {
    format!("{}-unknown-linux-musl", std::env::consts::ARCH)
}

/// Builds the program, optimised with the counts of `profile`.
pub(super) fn build(profile: Option<&Path>) -> Result<PathBuf, String> {
    need_compilers()?;
    let target = target();
    let args = ["build", "--release", "--locked", "--target", &target];
    let mut command = project::cargo(&args);
    command.args(["--package", "weir", "--package", "discover", "--package", "ingress"]);
    let mut flags = Vec::new();
    if let Some(profile) = profile {
        let path = profile.canonicalize().map_err(|err| format!("{}: {err}", profile.display()))?;
        flags.push(format!("-Cprofile-use={}", path.display()));
    }
    set_up(&mut command, flags)?;
    project::succeed(&mut command)?;
    Ok(project::target_folder().join(target).join("release/weir"))
}

/// Has what a build needs installed, where it is missing.
pub(crate) fn need_compilers() -> Result<(), String> {
    packages::need(&[("musl-gcc", "musl-tools"), ("cmake", "cmake"), ("make", "make")])?;
    let mut rustc = Command::new("rustc");
    rustc.current_dir(project::root()).args(["--print", "target-libdir", "--target", &target()]);
    let folder = project::output(&mut rustc)?;
    if Path::new(String::from_utf8_lossy(&folder).trim()).exists() {
        return Ok(());
    }
    let mut rustup = Command::new("rustup");
    rustup.current_dir(project::root()).args(["target", "add", &target()]);
    project::succeed(&mut rustup)
}

/// Sets the flags of both compilers: those of every static program, and `flags` for rustc.
pub(crate) fn set_up(command: &mut Command, mut flags: Vec<String>) -> Result<(), String> {
    let renames = renames()?;
    flags.extend(renames.iter().map(|(from, to)| format!("--remap-path-prefix={from}={to}")));
    flags.push("-Clink-arg=-Wl,--build-id=sha1".to_owned());
    let for_c: Vec<String> =
        renames.iter().map(|(from, to)| format!("-ffile-prefix-map={from}={to}")).collect();
    let variable = |name: &str| format!("{name}_{}", target().replace('-', "_"));
    command
        .env(variable("CC"), "musl-gcc")
        .env(variable("CFLAGS"), for_c.join(" "))
        // LuaJIT's makefile links a program that nobody runs, with an unwinder made for glibc.
        .env("TARGET_LDFLAGS", "-Wl,--defsym=_dl_find_object=0")
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"))
        .env("SOURCE_DATE_EPOCH", project::build_time()?.to_string())
        .env("CARGO_INCREMENTAL", "0");
    Ok(())
}

/// Folders whose names would be in the program, and what is there instead.
fn renames() -> Result<[(String, &'static str); 3], String> {
    let home = std::env::var("CARGO_HOME")
        .or_else(|_| std::env::var("HOME").map(|home| format!("{home}/.cargo")))
        .map_err(|_| "neither CARGO_HOME nor HOME is set")?;
    let text = |path: &Path| path.display().to_string();
    Ok([
        (text(project::root()), "/weir"),
        (home, "/cargo"),
        (text(&project::target_folder()), "/target"),
    ])
}
