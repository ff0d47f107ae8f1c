//! `weir backend` as it gets slower the more it has to do at once, like a database or an
//! application server beyond its best. It costs no CPU worth the name: it sleeps.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A request that is alone takes 25 ms. With 150 in progress it takes twice as long: requests per
/// second are the most there, and half as many with nearly four times the requests.
const OPTIONS: [&str; 5] = ["backend", "--listen", "127.0.0.1:0", "--slow", "25ms,150"];

/// A running backend.
pub(super) struct Backend {
    child: Child,
    port: u16,
}

impl Backend {
    /// Starts one. The kernel stops it should we be killed ourselves.
    pub(super) fn start(weir: &Path) -> Result<Self, String> {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "TERM"]).arg(weir).args(OPTIONS);
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let child = command.spawn().map_err(|err| format!("setpriv: {err}"))?;
        let mut backend = Self { child, port: 0 };
        let mut line = String::new();
        let told = backend.child.stdout.take().map(|out| BufReader::new(out).read_line(&mut line));
        let port = line.rsplit(':').next().and_then(|port| port.trim().parse().ok());
        backend.port = port.ok_or_else(|| format!("weir backend: {told:?}, {line:?}"))?;
        Ok(backend)
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// The most requests that it has had at once.
    pub(super) fn highest(&self) -> Result<usize, String> {
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
}

impl Drop for Backend {
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
