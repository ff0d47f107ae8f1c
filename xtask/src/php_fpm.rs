//! php-fpm as `examples/php` configures it, on a socket of its own.

use std::fs;
use std::io::Error;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::{packages, project};

/// How long starting and stopping may take.
const PATIENCE: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(10);

/// What the example's configuration says, and what is not the same here.
const LISTEN: &str = "listen = 127.0.0.1:9000";
const USER: &str = "user = www-data";

/// A php-fpm that runs until it is dropped.
pub(crate) struct PhpFpm {
    child: Child,
    folder: PathBuf,
}

/// The program, installed if it is missing.
pub(crate) fn program() -> Result<PathBuf, String> {
    let find = || packages::find_versioned("php-fpm");
    if let Some(program) = find() {
        return Ok(program);
    }
    packages::install(&["php-fpm"])?;
    find().ok_or_else(|| "apt-get did not install php-fpm".into())
}

impl PhpFpm {
    /// Starts it; whoever starts it is the user of the scripts.
    pub(crate) fn start(program: &Path) -> Result<Self, String> {
        let folder = std::env::temp_dir().join(format!("weir-php-{}", std::process::id()));
        let fail = |err: Error| format!("{}: {err}", folder.display());
        fs::create_dir_all(&folder).map_err(fail)?;
        let example = project::root().join("examples/php/php-fpm.conf");
        let text = fs::read_to_string(&example).map_err(|err| format!("php-fpm.conf: {err}"))?;
        let user = project::output(Command::new("id").arg("-un"))?;
        let user = format!("user = {}", String::from_utf8_lossy(&user).trim());
        let listen = format!("listen = {}", folder.join("php.sock").display());
        let text = text.replace(LISTEN, &listen).replace(USER, &user);
        fs::write(folder.join("php-fpm.conf"), text).map_err(fail)?;
        let log = fs::File::create(folder.join("php-fpm.log")).map_err(fail)?;
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "TERM"]).arg(program).args(["-R", "-F", "-O", "-y"]);
        command.arg(folder.join("php-fpm.conf")).stdin(Stdio::null());
        let child = command.stdout(Stdio::null()).stderr(log).spawn().map_err(fail)?;
        let mut php = Self { child, folder };
        php.await_socket()?;
        Ok(php)
    }

    /// Where it listens, as a configuration says it.
    pub(crate) fn address(&self) -> String {
        format!("unix:{}", self.socket().display())
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.join("php.sock")
    }

    fn await_socket(&mut self) -> Result<(), String> {
        let end = Instant::now() + PATIENCE;
        while !self.socket().exists() {
            if Instant::now() > end || !matches!(self.child.try_wait(), Ok(None)) {
                let log = fs::read_to_string(self.folder.join("php-fpm.log")).unwrap_or_default();
                return Err(format!("php-fpm does not start:\n{log}"));
            }
            thread::sleep(LOOK);
        }
        Ok(())
    }
}

impl Drop for PhpFpm {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(self.child.id().to_string()).status();
        let end = Instant::now() + PATIENCE;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < end {
            thread::sleep(LOOK);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}
