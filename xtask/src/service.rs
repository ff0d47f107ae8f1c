//! `xtask service`: the units of packaging/ in a systemd that runs.
//!
//! systemd is booted as the first process of namespaces of its own, in an overlay over the running
//! system (`boot.sh`), and runs `scenario.sh`, or `package.sh` for a package. Nothing of it is
//! left.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::args::Args;
use crate::{packages, project};

pub(crate) const HELP: &str = "start, reload, upgrade and stop the units in a systemd of their own

Usage: cargo xtask service [--weir PROGRAM | --package FILE]

  --package FILE   install, upgrade, remove and purge this package for Debian instead

As root, on a system with systemd installed; it need not run.
";

const BOOT: &str = include_str!("service/boot.sh");
const COMMON: &str = include_str!("service/common.sh");
const SCENARIO: &str = include_str!("service/scenario.sh");
const PACKAGE_SCENARIO: &str = include_str!("service/package.sh");
const SYSTEMD: &str = "/lib/systemd/systemd";
/// The exit code of the script where systemd cannot be booted.
const UNAVAILABLE: i32 = 75;
/// It takes half a minute.
const TIME_MAX_SECONDS: &str = "180";

pub(crate) fn run(words: &[String]) -> Result<(), String> {
    let mut args = Args::new(words);
    let package = args.option("--package")?;
    let weir = args.option("--weir")?;
    args.end()?;
    let skipped = match (package, weir) {
        (Some(package), _) => boot(Path::new(&package), "weir.deb", PACKAGE_SCENARIO)?,
        (None, Some(weir)) => check(Path::new(&weir))?,
        (None, None) => check(&project::release("weir")?)?,
    };
    match skipped {
        Some(skipped) => Err(skipped),
        None => Ok(()),
    }
}

/// `Some`: why it is not possible here.
pub(crate) fn check(weir: &Path) -> Result<Option<String>, String> {
    boot(weir, "weir", SCENARIO)
}

/// Runs `scenario` where `subject` is the file `name`.
fn boot(subject: &Path, name: &str, scenario: &str) -> Result<Option<String>, String> {
    if !packages::is_root() {
        return Ok(Some("a root of its own takes root".into()));
    }
    let programs = ["unshare", "timeout", "curl", "ip", "pgrep"];
    let missing = programs.into_iter().find(|program| packages::find(program).is_none());
    let missing = missing.or((!Path::new(SYSTEMD).exists()).then_some(SYSTEMD));
    if let Some(missing) = missing {
        return Ok(Some(format!("{missing} is not installed")));
    }
    let folder = BootFolder::make(subject, name, scenario)?;
    let mut boot = Command::new("timeout");
    boot.args(["--signal=KILL", TIME_MAX_SECONDS, "unshare", "--mount", "--pid", "--fork"]);
    boot.args(["--kill-child", "--uts", "--ipc", "--net", "--cgroup", "sh"]);
    boot.arg(folder.0.join("boot.sh")).args([folder.0.as_path(), project::root()]);
    let status = boot.stdin(Stdio::null()).stdout(Stdio::null()).status();
    let status = status.map_err(|error| format!("timeout: {error}"))?;
    if status.code() == Some(UNAVAILABLE) {
        return Ok(Some("systemd cannot be booted here (see above)".into()));
    }
    let log = fs::read_to_string(folder.0.join("log")).unwrap_or_default();
    print!("{log}");
    match log.lines().any(|line| line == "done") {
        true => Ok(None),
        false if log.is_empty() => Ok(Some(format!("systemd did not run: {status}"))),
        false => Err("a unit does not do what it should".into()),
    }
}

/// The folder with everything that the script needs.
struct BootFolder(PathBuf);

impl BootFolder {
    fn make(subject: &Path, name: &str, scenario: &str) -> Result<Self, String> {
        let path = std::env::temp_dir().join(format!("weir-boot-{}", std::process::id()));
        let fail = |error| format!("{}: {error}", path.display());
        fs::create_dir_all(&path).map_err(fail)?;
        let folder = Self(path.clone());
        fs::copy(subject, path.join(name)).map_err(fail)?;
        fs::write(path.join("boot.sh"), BOOT).map_err(fail)?;
        fs::write(path.join("common.sh"), COMMON).map_err(fail)?;
        fs::write(path.join("scenario.sh"), scenario).map_err(fail)?;
        Ok(folder)
    }
}

impl Drop for BootFolder {
    fn drop(&mut self) {
        // Its mounts were those of the namespace.
        let _ = fs::remove_dir_all(&self.0);
    }
}
