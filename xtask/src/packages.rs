//! Programs from outside the project: found on this machine, or installed by apt-get.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::project;

/// Where Debian keeps servers; an ordinary user's PATH lacks it.
const SYSTEM_FOLDER: &str = "/usr/sbin";

/// Debian's hook that says whether an installed service may start (invoke-rc.d(8)).
const POLICY: &str = "/usr/sbin/policy-rc.d";

/// A program of this name, wherever it is installed.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain([PathBuf::from(SYSTEM_FOLDER)])
        .map(|folder| folder.join(program))
        .find(|file| is_executable(file))
}

/// The latest of the programs that a package names with their version: `php-fpm8.2`.
pub(crate) fn find_versioned(name: &str) -> Option<PathBuf> {
    let version = |path: &PathBuf| {
        let (major, minor) = path.file_name()?.to_str()?.strip_prefix(name)?.split_once('.')?;
        Some((major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?))
    };
    let files = fs::read_dir(SYSTEM_FOLDER).ok()?.flatten().map(|entry| entry.path());
    files.filter(|file| version(file).is_some()).max_by_key(version)
}

fn is_executable(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// Installs what is missing of `(program, Debian package)`; no service is started by it.
pub(crate) fn need(programs: &[(&str, &str)]) -> Result<(), String> {
    let missing = missing(programs);
    if missing.is_empty() {
        return Ok(());
    }
    install(&missing)?;
    match self::missing(programs).as_slice() {
        [] => Ok(()),
        still => Err(format!("apt-get did not install {}", still.join(" "))),
    }
}

/// Installs what is missing of `(Perl module, Debian package)`.
pub(crate) fn need_perl(modules: &[(&str, &str)]) -> Result<(), String> {
    need_modules(modules, |module| {
        let mut perl = Command::new("perl");
        perl.arg(format!("-M{module}")).args(["-e", "1"]);
        perl
    })
}

/// Installs what is missing of `(Python module, Debian package)`.
pub(crate) fn need_python(modules: &[(&str, &str)]) -> Result<(), String> {
    need_modules(modules, |module| {
        let mut python = Command::new("/usr/bin/python3");
        python.args(["-c", &format!("import {module}")]);
        python
    })
}

/// `load` succeeds if a module is there.
fn need_modules(modules: &[(&str, &str)], load: impl Fn(&str) -> Command) -> Result<(), String> {
    let is_there = |module: &str| {
        let status = load(module).stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    };
    let missing = || -> Vec<&str> {
        let missing = modules.iter().filter(|(name, _)| !is_there(name));
        missing.map(|(_, package)| *package).collect()
    };
    let packages = missing();
    if packages.is_empty() {
        return Ok(());
    }
    install(&packages)?;
    match missing().as_slice() {
        [] => Ok(()),
        still => Err(format!("apt-get did not install {}", still.join(" "))),
    }
}

/// Installs these Debian packages, if that is allowed here.
pub(crate) fn install(packages: &[&str]) -> Result<(), String> {
    let install = format!("apt-get install {}", packages.join(" "));
    if !is_root() || find("apt-get").is_none() {
        return Err(format!("programs are missing; on Debian: {install}"));
    }
    eprintln!("{install}");
    install_quietly(packages)
}

fn missing<'a>(programs: &[(&str, &'a str)]) -> Vec<&'a str> {
    programs.iter().filter(|(name, _)| find(name).is_none()).map(|(_, package)| *package).collect()
}

pub(crate) fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|meta| meta.uid() == 0)
}

fn install_quietly(packages: &[&str]) -> Result<(), String> {
    let _no_services = NoServices::begin()?;
    project::succeed(Command::new("apt-get").args(["-qq", "update"]))?;
    let mut command = Command::new("apt-get");
    command.args(["-qq", "-y", "--no-install-recommends", "install"]).args(packages);
    project::succeed(command.env("DEBIAN_FRONTEND", "noninteractive"))
}

/// While this lives, packages do not start their services. A policy already there is respected.
struct NoServices(bool);

impl NoServices {
    fn begin() -> Result<Self, String> {
        if Path::new(POLICY).exists() {
            return Ok(Self(false));
        }
        let fail = |err| format!("{POLICY}: {err}");
        fs::write(POLICY, "#!/bin/sh\nexit 101\n").map_err(fail)?;
        let guard = Self(true);
        fs::set_permissions(POLICY, fs::Permissions::from_mode(0o755)).map_err(fail)?;
        Ok(guard)
    }
}

impl Drop for NoServices {
    fn drop(&mut self) {
        if self.0 {
            let _ = fs::remove_file(POLICY);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_and_an_absent_one_is_named_by_its_package() {
        assert!(find("sh").is_some());
        assert_eq!(missing(&[("sh", "dash"), ("no-such-program", "its-package")]), ["its-package"]);
    }
}
