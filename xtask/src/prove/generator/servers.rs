//! Servers that say how many requests they have answered.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::backends::program::{self, RunningBackend};
use crate::running::Running;
use crate::{packages, project};

/// How long a server may take to count what it has answered, or to end.
const PATIENCE: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(5);

/// Starts one; none where it is not installed.
type StartServer = fn(&Path) -> Result<Option<GeneratorServer>, String>;

pub(super) const SERVERS: &[(&str, StartServer)] =
    &[("weir", weir), ("nginx", nginx), ("haproxy", haproxy), ("go", go)];

/// A running one, which ends with the value.
pub(super) struct GeneratorServer {
    pub(super) address: SocketAddr,
    count: Box<dyn Fn() -> Result<u64, String>>,
}

impl GeneratorServer {
    /// How many requests it has answered.
    pub(super) fn count(&self) -> Result<u64, String> {
        (self.count)()
    }

    /// The same, once there are so many, or time is up: a log is written after the reply.
    pub(super) fn await_count(&self, expected: u64) -> Result<u64, String> {
        let end = Instant::now() + PATIENCE;
        loop {
            let count = self.count()?;
            if count >= expected || Instant::now() > end {
                return Ok(count);
            }
            std::thread::sleep(LOOK);
        }
    }
}

/// Where connections are closed after a thousand requests that is to be seen; but what stands in a
/// pipeline behind the last of them has no reply.
const SITE: &str = "
    log_format asked '$request \"$content_type\" $content_length \"$http_x_token\"';
    keepalive_requests 100000000;
    server {
        listen ADDRESS;
        access_log DIR/asked.log asked;
        location / { return 200 ok; }
        location /closing { keepalive_requests 1000; return 200 ok; }
        location = /authenticate { add_header X-Token secret; return 200 ok; }
    }";

/// A server with nginx's configuration that logs what it is asked for.
pub(super) fn logging(program: &Path) -> Result<Running, String> {
    Running::start(program, 2, SITE)
}

fn logged(program: &Path) -> Result<Option<GeneratorServer>, String> {
    let running = logging(program)?;
    let address = running.address;
    let count = move || Ok(running.read("asked.log").lines().count() as u64);
    Ok(Some(GeneratorServer { address, count: Box::new(count) }))
}

fn weir(weir: &Path) -> Result<Option<GeneratorServer>, String> {
    logged(weir)
}

fn nginx(_weir: &Path) -> Result<Option<GeneratorServer>, String> {
    packages::find("nginx").map_or(Ok(None), |nginx| logged(&nginx))
}

fn go(_weir: &Path) -> Result<Option<GeneratorServer>, String> {
    if packages::find("go").is_none() {
        return Ok(None);
    }
    let source = project::root().join("conformance/generator/go");
    let folder = program::prepare(&source, "counted", &["go build -o counted ."])?;
    let program = RunningBackend::start(&["./counted"], &folder)?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, program.port));
    let count = move || {
        let _runs_as_long_as_it_is_asked = &program;
        let reply = get(address, "/counted")?;
        let count = reply.trim().rsplit('\n').next().and_then(|line| line.parse().ok());
        count.ok_or_else(|| format!("it says not how many: {reply}"))
    };
    Ok(Some(GeneratorServer { address, count: Box::new(count) }))
}

/// Its sockets are 3 and 4: no port is guessed.
const HAPROXY: &str = "
defaults
    mode http
    option http-ignore-probes
    timeout client 60s
    timeout connect 5s
    timeout server 60s
frontend asked
    bind fd@3
    http-request return status 200 content-type text/plain string ok
frontend counts
    bind fd@4
    stats enable
    stats uri /
";

/// A process in a folder of its own.
struct Haproxy {
    child: Child,
    folder: PathBuf,
}

impl Drop for Haproxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn haproxy(_weir: &Path) -> Result<Option<GeneratorServer>, String> {
    let Some(program) = packages::find("haproxy") else { return Ok(None) };
    let fail = |err: std::io::Error| format!("haproxy: {err}");
    let bind = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(fail);
    let (asked, counts) = (bind()?, bind()?);
    let address = asked.local_addr().map_err(fail)?;
    let counted = counts.local_addr().map_err(fail)?;
    let folder = std::env::temp_dir().join(format!("weir-haproxy-{}", std::process::id()));
    fs::create_dir_all(&folder).map_err(fail)?;
    fs::write(folder.join("conf"), HAPROXY).map_err(fail)?;
    let child = Command::new("sh")
        .args(["-c", "exec 3<&0 4<&1 </dev/null >/dev/null; exec \"$0\" -db -f conf"])
        .arg(program)
        .current_dir(&folder)
        .stdin(Stdio::from(OwnedFd::from(asked)))
        .stdout(Stdio::from(OwnedFd::from(counts)))
        .spawn()
        .map_err(fail)?;
    let process = Haproxy { child, folder };
    let count = move || {
        let _runs_as_long_as_it_is_asked = &process;
        total(&get(counted, "/;csv")?)
    };
    Ok(Some(GeneratorServer { address, count: Box::new(count) }))
}

/// The column `req_tot` of the line of the frontend `asked`.
fn total(csv: &str) -> Result<u64, String> {
    let place = csv
        .lines()
        .find_map(|line| line.strip_prefix("# ")?.split(',').position(|name| name == "req_tot"));
    let row = csv.lines().find(|line| line.starts_with("asked,FRONTEND,"));
    let number = row.zip(place).and_then(|(row, place)| row.split(',').nth(place)?.parse().ok());
    number.ok_or_else(|| format!("haproxy says not how many: {csv}"))
}

/// All that a server replies.
fn get(address: SocketAddr, path: &str) -> Result<String, String> {
    let fail = |err: std::io::Error| format!("http://{address}{path}: {err}");
    let mut stream = TcpStream::connect(address).map_err(fail)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(fail)?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: a\r\n\r\n").map_err(fail)?;
    let mut reply = String::new();
    stream.read_to_string(&mut reply).map_err(fail)?;
    Ok(reply)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn haproxys_counts() {
        let csv = "HTTP/1.0 200 OK\n\n# pxname,svname,stot,req_tot,\n\
                   counts,FRONTEND,3,4,\nasked,FRONTEND,70,1000,\n";
        assert_eq!(total(csv), Ok(1000));
        assert!(total("# pxname,svname\nasked,FRONTEND,1\n").is_err());
    }
}
