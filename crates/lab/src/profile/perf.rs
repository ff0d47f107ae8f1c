//! perf(1) as a process that watches a server.

use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

use processes::procfs;

/// The program.
pub(crate) const PERF: &str = "perf";

/// The time for perf to begin; it does not report when it does.
const ATTACH: Duration = Duration::from_millis(300);

/// A perf that watches a process and its descendants. Dropping it ends perf, but not the process.
pub(crate) struct PerfProcess {
    /// `None` once it was stopped.
    child: Option<Child>,
    /// The signal that ends it. SIGINT would be ignored after nohup until perf has its handler.
    signal: &'static str,
}

impl PerfProcess {
    /// Starts `perf WORDS -p PIDS`.
    pub(crate) fn attach(pid: u32, words: &[&str]) -> Result<Self, String> {
        let pids = procfs::family(pid).iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        let mut command = Command::new(PERF);
        command.args(words).args(["-p", &pids]).stdin(Stdio::null()).stdout(Stdio::null());
        let child = command.stderr(Stdio::piped()).spawn();
        let child = child.map_err(|error| format!("{PERF}: {error}"))?;
        // At these, each writes what it has.
        let signal = if words.first() == Some(&"record") { "-TERM" } else { "-ALRM" };
        Ok(Self { child: Some(child), signal })
    }

    /// Waits until those that were attached have begun.
    pub(crate) fn wait_for_begin() {
        sleep(ATTACH);
    }

    /// Ends the watching; returns what perf printed, on its error output.
    pub(crate) fn stop(mut self) -> Result<Output, String> {
        let Some(child) = self.child.take() else { return Err("perf was stopped".to_owned()) };
        let end = [self.signal.to_owned(), child.id().to_string()];
        let _ = Command::new("kill").args(end).stderr(Stdio::null()).status();
        child.wait_with_output().map_err(|error| format!("{PERF}: {error}"))
    }
}

impl Drop for PerfProcess {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
