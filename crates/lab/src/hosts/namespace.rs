//! A network namespace that lives as long as a process which does nothing else.

use std::fs;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long a namespace may take to be there.
const START_MAX: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(1);
const LINK_POLL: Duration = Duration::from_millis(50);

/// Dropping it, and any end of this process, ends the namespace with all its links.
pub(super) struct NetworkNamespace {
    keeper: Child,
}

impl NetworkNamespace {
    /// A namespace with nothing but its loopback address.
    pub(super) fn new() -> Result<Self, String> {
        let keeper = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "unshare", "--net", "sleep", "infinity"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("setpriv: {error}"))?;
        let mut namespace = Self { keeper };
        namespace.wait_for_it()?;
        namespace.ip("link set dev lo up\n")?;
        Ok(namespace)
    }

    /// unshare has made it when the keeper's is another than ours.
    fn wait_for_it(&mut self) -> Result<(), String> {
        let ours = fs::read_link("/proc/self/ns/net").map_err(|error| error.to_string())?;
        let begin = Instant::now();
        while begin.elapsed() < START_MAX {
            if let Ok(Some(_)) = self.keeper.try_wait() {
                let mut said = String::new();
                let stderr = self.keeper.stderr.take();
                let _ = stderr.map(|mut stderr| stderr.read_to_string(&mut said));
                return Err(said.trim_end().to_owned());
            }
            if fs::read_link(self.file()).is_ok_and(|theirs| theirs != ours) {
                return Ok(());
            }
            sleep(POLL);
        }
        Err("unshare made no network namespace".to_owned())
    }

    /// The process that keeps it; the kernel's tools name a namespace by it.
    pub(super) fn pid(&self) -> u32 {
        self.keeper.id()
    }

    fn file(&self) -> String {
        format!("/proc/{}/ns/net", self.pid())
    }

    /// The words before a program that run it inside.
    pub(super) fn enter(&self) -> Vec<String> {
        vec!["nsenter".to_owned(), format!("--net={}", self.file())]
    }

    /// Has ip(8) do what each line says, inside.
    pub(super) fn ip(&self, lines: &str) -> Result<(), String> {
        self.run(&["ip", "-batch", "-"], lines).map(drop)
    }

    /// Sets a setting of the kernel, which belongs to the namespace that it is written in.
    pub(super) fn set_kernel(&self, name: &str, value: &str) -> Result<(), String> {
        let file = format!("/proc/sys/{}", name.replace('.', "/"));
        self.run(&["sh", "-c", "cat >\"$0\"", &file], value).map(drop).map_err(|why| {
            format!("{name} = {value}: {why} (a host of its own does not have every setting)")
        })
    }

    /// Delays or loses what leaves by an interface.
    pub(super) fn netem(&self, interface: &str, words: &str) -> Result<(), String> {
        let mut command = vec!["tc", "qdisc", "add", "dev", interface, "root", "netem"];
        command.extend(words.split_whitespace());
        self.run(&command, "").map(drop).map_err(|why| format!("netem {words}: {why}"))
    }

    /// Waits until an interface passes packets: the kernel looks after new links once a second.
    pub(super) fn wait_for(&self, interface: &str) -> Result<(), String> {
        let begin = Instant::now();
        while begin.elapsed() < START_MAX {
            let told = self.run(&["ip", "-o", "link", "show", "dev", interface], "")?;
            if told.contains("state UP") {
                return Ok(());
            }
            sleep(LINK_POLL);
        }
        Err(format!("the link {interface} does not come up"))
    }

    /// What a program prints that runs inside.
    fn run(&self, words: &[&str], input: &str) -> Result<String, String> {
        let enter = self.enter();
        let failed = |error: std::io::Error| format!("{}: {error}", enter[0]);
        let mut child = Command::new(&enter[0])
            .args(&enter[1..])
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        if let Some(mut stdin) = child.stdin.take() {
            // Who does not read it says so itself.
            let _ = stdin.write_all(input.as_bytes());
        }
        let output = child.wait_with_output().map_err(failed)?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            false => Err(String::from_utf8_lossy(&output.stderr).trim_end().to_owned()),
        }
    }
}

impl Drop for NetworkNamespace {
    fn drop(&mut self) {
        let _ = self.keeper.kill();
        let _ = self.keeper.wait();
    }
}
