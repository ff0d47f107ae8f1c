//! A server in another language: prepared in a copy of its folder, started, and told where it
//! listens.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::project;

/// How long a library may take to come, in seconds.
const INSTALL_MAX_S: &str = "240";

/// How long a client may take, in seconds.
const CLIENT_MAX_S: &str = "60";

/// After this it has had its time to end.
const STOP_MAX: Duration = Duration::from_secs(5);

/// Copies `source` to a folder called `name` and installs there what it needs, once.
pub(crate) fn prepare(source: &Path, name: &str, install: &[&str]) -> Result<PathBuf, String> {
    let folder = project::root().join("target/backends").join(name);
    let fail = |err: std::io::Error| format!("{}: {err}", folder.display());
    fs::create_dir_all(&folder).map_err(fail)?;
    let done = folder.join("installed");
    let mut changed = !done.exists();
    for entry in fs::read_dir(source).map_err(fail)?.flatten() {
        let to = folder.join(entry.file_name());
        let text = fs::read(entry.path()).map_err(fail)?;
        if fs::read(&to).ok().as_ref() != Some(&text) {
            fs::write(&to, text).map_err(fail)?;
            changed = true;
        }
    }
    if changed {
        for line in install {
            let mut command = Command::new("timeout");
            command.args([INSTALL_MAX_S, "sh", "-c", line]).current_dir(&folder);
            project::output(command.stdin(Stdio::null()))?;
        }
        fs::write(done, "").map_err(fail)?;
    }
    Ok(folder)
}

/// Runs a client to its end.
pub(crate) fn finish(command: &[&str], argument: &str, folder: &Path) -> Result<(), String> {
    let mut client = Command::new("timeout");
    client.arg(CLIENT_MAX_S).args(command).arg(argument);
    project::output(client.current_dir(folder).env("PYTHONPATH", "lib")).map(|_| ())
}

/// A server that runs until it is dropped.
pub(crate) struct RunningBackend {
    child: Child,
    pub(crate) port: u16,
}

impl RunningBackend {
    /// Starts it and reads the line `PORT n`.
    pub(crate) fn start(command: &[&str], folder: &Path) -> Result<RunningBackend, String> {
        let [program, arguments @ ..] = command else { return Err("no command".into()) };
        let fail = |err: std::io::Error| format!("{program}: {err}");
        let mut child = Command::new(program)
            .args(arguments)
            .current_dir(folder)
            .env("PYTHONPATH", "lib")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(fail)?;
        let output = child.stdout.take().expect("it is piped");
        let mut program = RunningBackend { child, port: 0 };
        // It prints nothing else, and ends where it cannot listen.
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if let Some(port) = line.strip_prefix("PORT ").and_then(|port| port.parse().ok()) {
                program.port = port;
                return Ok(program);
            }
        }
        Err(format!("{} does not start", command.join(" ")))
    }
}

impl Drop for RunningBackend {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(self.child.id().to_string()).status();
        let end = Instant::now() + STOP_MAX;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
