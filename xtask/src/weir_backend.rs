//! `weir backend` as a process, which ends with the value.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::project;

/// How long it may take to end.
const END_MAX: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(5);

pub(crate) struct WeirBackend {
    child: Child,
    /// Stays open: it may print more than the line that is read.
    _output: Option<BufReader<ChildStdout>>,
    pub(crate) port: u16,
}

impl WeirBackend {
    /// Starts one at a port, 0 being any. The kernel stops it should we be killed ourselves.
    pub(crate) fn start(weir: &Path, port: u16, options: &[&str]) -> Result<Self, String> {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "TERM"]).arg(weir).args(["backend", "--listen"]);
        command.arg(format!("127.0.0.1:{port}")).args(options).stdout(Stdio::piped());
        let child = command.spawn().map_err(|err| format!("setpriv: {err}"))?;
        let mut backend = Self { child, _output: None, port };
        let mut line = String::new();
        let mut output = backend.child.stdout.take().map(BufReader::new);
        let read = output.as_mut().map(|output| output.read_line(&mut line));
        backend._output = output;
        let port = line.rsplit(':').next().and_then(|port| port.trim().parse().ok());
        backend.port = port.ok_or_else(|| format!("weir backend: {read:?}, {line:?}"))?;
        Ok(backend)
    }

    /// The most requests that it has had at once.
    pub(crate) fn highest(&self) -> Result<usize, String> {
        let stats = self.stats().map_err(|err| format!("weir backend: {err}"))?;
        number(&stats, "highest").ok_or_else(|| format!("weir backend: its counts: {stats}"))
    }

    fn stats(&self) -> std::io::Result<String> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port))?;
        stream.write_all(b"GET /_stats HTTP/1.0\r\n\r\n")?;
        let mut stats = String::new();
        stream.read_to_string(&mut stats)?;
        Ok(stats)
    }

    /// Ends it and waits until it has written its log.
    pub(crate) fn end(mut self) -> Result<(), String> {
        let pid = self.child.id().to_string();
        project::succeed(Command::new("kill").args(["-s", "TERM", &pid]))?;
        let end = Instant::now() + END_MAX;
        loop {
            match self.child.try_wait().map_err(|err| format!("weir backend: {err}"))? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => return Err(format!("weir backend: {status}")),
                None if Instant::now() > end => return Err("weir backend does not end".into()),
                None => thread::sleep(LOOK),
            }
        }
    }
}

impl Drop for WeirBackend {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The first number of that name, which is that of all addresses together.
fn number(json: &str, name: &str) -> Option<usize> {
    let (_, rest) = json.split_once(&format!("\"{name}\":"))?;
    rest.split([',', '}']).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_comes_first() {
        let json = "{\"open\":1,\"highest\":27,\"ports\":{\"a\":{\"highest\":3}}}";
        assert_eq!(number(json, "highest"), Some(27));
        assert_eq!(number(json, "lowest"), None);
    }
}
