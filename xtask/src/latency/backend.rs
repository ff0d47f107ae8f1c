//! `weir backend` with the schedule, one for each run: time begins with its first request.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::log::Log;
use super::schedule;
use crate::project;

/// How long it may take to end.
const PATIENCE: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(5);

pub(super) struct Backend {
    child: Child,
    pub(super) url: String,
    log: PathBuf,
}

impl Backend {
    pub(super) fn start(weir: &Path, folder: &Path) -> Result<Self, String> {
        let log = folder.join("backend.log");
        let mut command = Command::new(weir);
        command.args(["backend", "--listen", "127.0.0.1:0"]).args(schedule::options());
        command.arg("--log").arg(&log).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().map_err(|err| format!("{}: {err}", weir.display()))?;
        let mut backend = Self { child, url: String::new(), log };
        let mut line = String::new();
        if let Some(out) = &mut backend.child.stdout {
            BufReader::new(out)
                .read_line(&mut line)
                .map_err(|err| format!("the backend: {err}"))?;
        }
        match line.trim().strip_prefix("listening on ") {
            Some(url) => backend.url = format!("{url}/"),
            None => return Err(format!("the backend did not start: {}", backend.complaint())),
        }
        Ok(backend)
    }

    /// Ends it; what it has logged.
    pub(super) fn end(mut self) -> Result<Log, String> {
        let pid = self.child.id().to_string();
        project::succeed(Command::new("kill").args(["-s", "TERM", &pid]))?;
        let end = Instant::now() + PATIENCE;
        let status = loop {
            match self.child.try_wait().map_err(|err| format!("the backend: {err}"))? {
                Some(status) => break status,
                None if Instant::now() > end => return Err("the backend does not end".into()),
                None => thread::sleep(LOOK),
            }
        };
        if !status.success() {
            return Err(format!("the backend: {status}: {}", self.complaint()));
        }
        let text = fs::read_to_string(&self.log);
        Log::parse(&text.map_err(|err| format!("{}: {err}", self.log.display()))?)
    }

    fn complaint(&mut self) -> String {
        let mut said = String::new();
        if let Some(err) = &mut self.child.stderr {
            // What cannot be read is not said.
            let _ = err.read_to_string(&mut said);
        }
        said.trim_end().to_owned()
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
