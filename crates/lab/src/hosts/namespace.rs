//! A network namespace that lives as long as a process that only sleeps.

use std::fs;
use std::io::{Read, Write};
use std::net::Ipv4Addr;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The longest time for a namespace or a link to become ready.
const START_MAX: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(1);
const LINK_POLL: Duration = Duration::from_millis(50);

/// A namespace. It ends with all its links when it is dropped, and when this process ends in any
/// way.
pub(super) struct NetworkNamespace {
    keeper: Child,
}

impl NetworkNamespace {
    /// A namespace with only its loopback address.
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

    /// The namespace exists once the keeper's namespace differs from ours.
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

    /// The process that keeps the namespace, by which the kernel's tools name it.
    pub(super) fn pid(&self) -> u32 {
        self.keeper.id()
    }

    fn file(&self) -> String {
        format!("/proc/{}/ns/net", self.pid())
    }

    /// The words before a command that run it inside the namespace.
    pub(super) fn enter(&self) -> Vec<String> {
        vec!["nsenter".to_owned(), format!("--net={}", self.file())]
    }

    /// Runs a batch of ip(8) commands inside the namespace.
    pub(super) fn ip(&self, lines: &str) -> Result<(), String> {
        self.run(&["ip", "-batch", "-"], lines).map(drop)
    }

    /// Sets a kernel setting, which belongs to the namespace of the process that writes it.
    pub(super) fn set_kernel(&self, name: &str, value: &str) -> Result<(), String> {
        let file = format!("/proc/sys/{}", name.replace('.', "/"));
        self.run(&["sh", "-c", "cat >\"$0\"", &file], value).map(drop).map_err(|why| {
            format!("{name} = {value}: {why} (a host of its own does not have every setting)")
        })
    }

    /// Delays or loses the packets that leave by an interface.
    pub(super) fn netem(&self, interface: &str, words: &str) -> Result<(), String> {
        let mut command = vec!["tc", "qdisc", "add", "dev", interface, "root", "netem"];
        command.extend(words.split_whitespace());
        self.run(&command, "").map(drop).map_err(|why| format!("netem {words}: {why}"))
    }

    /// Sets options of the route to the other end of a link, such as `quickack 1`.
    pub(super) fn route(
        &self,
        interface: &str,
        own: Ipv4Addr,
        options: &str,
    ) -> Result<(), String> {
        if options.is_empty() {
            return Ok(());
        }
        let [a, b, c, _] = own.octets();
        let route = format!("{a}.{b}.{c}.0/24 dev {interface} proto kernel scope link src {own}");
        self.ip(&format!("route replace {route} {options}\n"))
            .map_err(|why| format!("route {options}: {why}"))
    }

    /// Waits until an interface passes packets: the kernel examines new links once a second.
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

    /// Runs a program inside the namespace and returns its output.
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
            // A program that does not read its input reports its own error.
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
