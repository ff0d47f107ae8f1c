//! A Debian root of its own, in which the page's commands are run as they stand.
//!
//! It is an overlay over the running system in namespaces of its own (`root.sh`): packages are
//! installed into it, ports and processes are those of nobody else, and nothing of it is left.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{packages, project};

const SCRIPT: &str = include_str!("root.sh");
/// The exit code of the script where there is no such root to be had.
const UNAVAILABLE: i32 = 75;
/// Where the tools are in the root.
pub(super) const TOOLS: &str = "/opt/weir-tools";

/// Runs this program in a root with `weir`; `Some`: why that is not possible here.
pub(super) fn run(weir: &Path) -> Result<Option<String>, String> {
    if let Some(why) = impossible() {
        return Ok(Some(why));
    }
    let folder = RootFolder::make(weir)?;
    let mut unshare = Command::new("unshare");
    unshare.args(["--mount", "--pid", "--fork", "--kill-child", "sh"]);
    unshare.arg(folder.0.join("root.sh")).arg(&folder.0).stdin(Stdio::null());
    let status = unshare.status().map_err(|error| format!("unshare: {error}"))?;
    match status.code() {
        Some(0) => Ok(None),
        Some(UNAVAILABLE) => Ok(Some("there is no root to be had (see above)".to_owned())),
        _ => Err(format!("the page's commands failed: {status}")),
    }
}

fn impossible() -> Option<String> {
    if !packages::is_root() {
        return Some("a root of its own takes root".to_owned());
    }
    if packages::find("apt-get").is_none() || packages::find("unshare").is_none() {
        return Some("apt-get and unshare are needed".to_owned());
    }
    let mut trial = Command::new("unshare");
    trial.args(["--mount", "--pid", "--net", "--fork", "true"]).stderr(Stdio::null());
    let works = trial.status().is_ok_and(|status| status.success());
    (!works).then(|| "namespaces cannot be made here".to_owned())
}

/// The folder with everything that the script needs.
struct RootFolder(PathBuf);

impl RootFolder {
    fn make(weir: &Path) -> Result<Self, String> {
        let path = std::env::temp_dir().join(format!("weir-root-{}", std::process::id()));
        let tools = path.join("tools");
        fs::create_dir_all(&tools).map_err(|error| format!("{}: {error}", tools.display()))?;
        let folder = Self(path);
        let own = std::env::current_exe().map_err(|error| error.to_string())?;
        let docs = project::root().join("docs");
        for (from, name) in [
            (weir.to_owned(), "weir"),
            (own, "xtask"),
            (docs.join("moving-from-nginx.md"), "moving-from-nginx.md"),
            (docs.join("fastcgi.md"), "fastcgi.md"),
            (project::root().join("conf/fastcgi.conf"), "fastcgi.conf"),
        ] {
            let copied = fs::copy(&from, tools.join(name));
            copied.map_err(|error| format!("{}: {error}", from.display()))?;
        }
        fs::write(folder.0.join("root.sh"), SCRIPT).map_err(|error| format!("root.sh: {error}"))?;
        Ok(folder)
    }
}

impl Drop for RootFolder {
    fn drop(&mut self) {
        // Its mounts were those of the namespace.
        let _ = fs::remove_dir_all(&self.0);
    }
}
