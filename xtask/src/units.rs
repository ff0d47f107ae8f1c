//! The files of packaging/ that systemd reads, held to systemd's own opinion of them.
//!
//! `systemd-analyze` needs no running systemd. Its exposure level goes from 0 (safe) to 10.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::man::complaints;
use crate::{packages, project};

/// A unit and the exposure level, in tenths, that it may have at most.
const UNITS: [(&str, u32); 2] = [("weir.service", 34), ("weir-unprivileged.service", 19)];
/// The program's path in the units; what is checked is a copy that names a program that exists.
const PROGRAM: &str = "/usr/bin/weir";

/// What was not checked, and why.
pub(crate) fn check(program: &Path) -> Result<Option<String>, String> {
    let Some(analyze) = packages::find("systemd-analyze") else {
        return Ok(Some("systemd-analyze is not installed (Debian's package systemd)".into()));
    };
    let folder = project::root().join("target/units");
    let copies: Vec<PathBuf> =
        UNITS.iter().map(|(unit, _)| copy(&folder, unit, program)).collect::<Result<_, _>>()?;
    complaints(Command::new(&analyze).args(["verify", "--man=no"]).args(&copies))?;
    for ((unit, exposure_max), copy) in UNITS.iter().zip(&copies) {
        let threshold = format!("--threshold={exposure_max}");
        let mut security = Command::new(&analyze);
        security.args(["security", "--offline=true", "--no-pager", &threshold]).arg(copy);
        let report = project::output(&mut security).map_err(|why| format!("{unit}: {why}"))?;
        let report = String::from_utf8_lossy(&report);
        println!("{}", report.lines().last().unwrap_or_default());
    }
    if !packages::is_root() {
        return Ok(Some("users and folders are made by root only".into()));
    }
    make_users_and_folders(&project::root().join("target/units-root")).map(|()| None)
}

fn copy(folder: &Path, unit: &str, program: &Path) -> Result<PathBuf, String> {
    let source = packaging(&format!("systemd/{unit}"));
    let fail = |path: &Path, error| format!("{}: {error}", path.display());
    let text = fs::read_to_string(&source).map_err(|error| fail(&source, error))?;
    let text = text.replace(PROGRAM, &program.display().to_string());
    let to = folder.join(unit);
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(&to, text))
        .map_err(|error| fail(&to, error))?;
    Ok(to)
}

/// Makes the user and the folders below an empty root.
fn make_users_and_folders(root: &Path) -> Result<(), String> {
    let group = root.join("etc/group");
    let _ = fs::remove_dir_all(root);
    fs::create_dir_all(root.join("etc"))
        .and_then(|()| fs::write(&group, "root:x:0:\nadm:x:4:\n"))
        .map_err(|error| format!("{}: {error}", group.display()))?;
    let root_option = format!("--root={}", root.display());
    let run = |program: &str, options: &[&str], file: &str| {
        let mut command = Command::new(program);
        command.arg(&root_option).args(options).arg(packaging(file));
        project::output(&mut command).map(drop)
    };
    run("systemd-sysusers", &[], "sysusers.conf")?;
    run("systemd-tmpfiles", &["--create"], "tmpfiles.conf")?;
    let users = fs::read_to_string(root.join("etc/passwd")).unwrap_or_default();
    let are_there = users.contains("\nweir:") || users.starts_with("weir:");
    match are_there && root.join("var/log/weir").is_dir() && root.join("var/lib/weir").is_dir() {
        true => Ok(()),
        false => Err(format!("{}: the user or a folder is missing", root.display())),
    }
}

fn packaging(file: &str) -> PathBuf {
    project::root().join("packaging").join(file)
}
