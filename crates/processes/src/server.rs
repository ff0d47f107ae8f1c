//! A server as a process: pinned to a core, observed until it accepts connections, always stopped
//! at the end.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::procfs;

/// Maximum times until a server accepts connections, and until it has stopped.
const START_MAX: Duration = Duration::from_secs(60);
const STOP_MAX: Duration = Duration::from_secs(10);

const POLL: Duration = Duration::from_millis(20);

/// The cores for the server, and for the load and the backend.
pub struct Cores {
    /// The server's core.
    pub server: usize,
    /// The core of the load and the backend.
    pub load: usize,
}

impl Cores {
    /// The first two cores that this process may use.
    pub fn of_this_machine() -> Result<Self, String> {
        match allowed_cores()?.as_slice() {
            [server, load, ..] => Ok(Self { server: *server, load: *load }),
            _ => Err("two cores are needed: one for the server, one for the load".into()),
        }
    }
}

/// The cores that this process may use.
pub fn allowed_cores() -> Result<Vec<usize>, String> {
    let status = fs::read_to_string("/proc/self/status").map_err(|err| err.to_string())?;
    Ok(cores_in(&status))
}

/// The cores that a process may use.
pub fn allowed_cores_of(pid: u32) -> Vec<usize> {
    cores_in(&fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default())
}

fn cores_in(status: &str) -> Vec<usize> {
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    cores(list.unwrap_or_default())
}

/// The numbers in a list such as `0-1,4`.
pub(crate) fn cores(list: &str) -> Vec<usize> {
    let mut cores = Vec::new();
    for range in list.trim().split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        if let (Ok(first), Ok(last)) = (first.parse::<usize>(), last.parse::<usize>()) {
            cores.extend(first..=last);
        }
    }
    cores
}

/// The system's limit of open files of a process.
pub fn descriptors_max() -> Result<u64, String> {
    let limits = fs::read_to_string("/proc/self/limits").map_err(|err| err.to_string())?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
    let hard = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
    hard.ok_or_else(|| "/proc/self/limits has no \"Max open files\"".to_owned())
}

/// Raises the limit of open files of this process and the servers that it starts to the system's
/// limit.
pub fn raise_descriptors() -> Result<(), String> {
    let hard = descriptors_max()?;
    let mut prlimit = Command::new("prlimit");
    prlimit.arg(format!("--pid={}", std::process::id())).arg(format!("--nofile={hard}:{hard}"));
    match prlimit.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("prlimit ended with {status}")),
        Err(error) => Err(format!("prlimit: {error}")),
    }
}

/// The command that restricts the program after it to some cores.
pub fn pinned_to(cores: &[usize]) -> Vec<String> {
    let cores: Vec<String> = cores.iter().map(usize::to_string).collect();
    ["taskset", "-c", &cores.join(",")].map(str::to_owned).to_vec()
}

/// A running server; dropping it stops it and all its processes.
pub struct MeasuredServer {
    child: Child,
}

impl MeasuredServer {
    /// Starts a server and waits until it accepts connections.
    pub fn start(binary: &Path, conf: &Path, port: u16) -> Result<Self, String> {
        Self::run(&[], Command::new(binary).arg("-c").arg(conf), conf, port)
    }

    /// Like [`start`](Self::start), on one core.
    pub fn pinned(binary: &Path, core: usize, conf: &Path, port: u16) -> Result<Self, String> {
        Self::run(&pinned_to(&[core]), Command::new(binary).arg("-c").arg(conf), conf, port)
    }

    /// Like [`start`](Self::start), with preceding commands that execute the rest of their
    /// arguments (taskset, nsenter), and with the folder of the configuration for relative paths.
    pub fn behind(words: &[String], binary: &Path, conf: &Path, port: u16) -> Result<Self, String> {
        let mut server = Command::new(binary);
        server.arg("-c").arg(conf);
        if let Some(folder) = conf.parent() {
            server.arg("-p").arg(folder);
        }
        Self::run(words, &server, conf, port)
    }

    /// Starts a complete command; `conf` only determines the file for its standard error.
    ///
    /// The child is the server itself. setpriv, which also executes the rest of its arguments,
    /// makes the kernel stop it if this process is killed.
    pub fn run(words: &[String], server: &Command, conf: &Path, port: u16) -> Result<Self, String> {
        let words = words.iter().map(String::as_str);
        let mut words = words.chain(["setpriv", "--pdeathsig", "TERM"]);
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words).arg(server.get_program()).args(server.get_args());
        let stderr = conf.with_extension("stderr");
        let log = File::create(&stderr).map_err(|err| format!("{}: {err}", stderr.display()))?;
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .map_err(|err| format!("{}: {err}", command.get_program().to_string_lossy()))?;
        let mut running = Self { child };
        running.accepts(port).map_err(|why| said(server.get_program(), &why, &stderr))?;
        Ok(running)
    }

    /// The id of the started process, which may have children.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    fn accepts(&mut self, port: u16) -> Result<(), String> {
        let begin = Instant::now();
        while begin.elapsed() < START_MAX {
            // From the kernel's list: the server may be in a network namespace of its own.
            let listens = procfs::listens(self.pid(), port);
            // If it has ended, another process listens.
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(format!("ended with {status}"));
            }
            if listens {
                return Ok(());
            }
            sleep(POLL);
        }
        Err(format!("did not accept connections within {} s", START_MAX.as_secs()))
    }

    fn ended(&mut self) -> bool {
        let begin = Instant::now();
        while begin.elapsed() < STOP_MAX {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return true;
            }
            sleep(POLL);
        }
        false
    }
}

/// The failure with the server's standard error.
fn said(program: &OsStr, why: &str, stderr: &Path) -> String {
    let words = fs::read_to_string(stderr).unwrap_or_default();
    format!("{} {why}\n{}", program.to_string_lossy(), words.trim_end()).trim_end().to_owned()
}

impl Drop for MeasuredServer {
    fn drop(&mut self) {
        let family = procfs::family(self.pid());
        signal("-TERM", &[self.pid()]);
        if !self.ended() {
            signal("-KILL", &family);
            let _ = self.child.wait();
        }
    }
}

/// std can only kill; kill(1) sends any signal.
fn signal(name: &str, pids: &[u32]) {
    let pids = pids.iter().map(u32::to_string);
    let _ = Command::new("kill").arg(name).args(pids).stderr(Stdio::null()).status();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_cores_is_read() {
        assert_eq!(cores("\t0-1\n"), [0, 1]);
        assert_eq!(cores("3,5-6"), [3, 5, 6]);
        assert_eq!(cores(""), [0; 0]);
    }

    #[test]
    fn a_server_that_does_not_start_is_reported_with_its_stderr() {
        let conf =
            std::env::temp_dir().join(format!("weir-bench-words-{}.conf", std::process::id()));
        // `ls -c CONF` ends at once and reports the missing file.
        let refused =
            MeasuredServer::pinned(Path::new("ls"), 0, &conf, 1).err().unwrap_or_default();
        let _ = fs::remove_file(conf.with_extension("stderr"));
        assert!(refused.starts_with("ls ended with") && refused.contains(".conf"), "{refused}");
    }
}
