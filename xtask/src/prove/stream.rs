//! Whether `stream {}` gives everything back: many connections through `proxy_pass` one after the
//! other, and many at once, with the descriptors and the memory of the server before and after.
//! Then [`idle`] sessions and the [`sessions`] whose ends misbehave.

mod holdings;
mod idle;
mod sessions;

use std::fs;
use std::io::Read;
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use processes::procfs;
use processes::server::{MeasuredServer, raise_descriptors};

use super::{ProofFolder, ProofVerdict, free_port};
use crate::args::Args;
use crate::packages;
use holdings::{Holdings, settled, settled_above};

/// What every connection is answered with: none of it waits, so it fits one packet.
const TEXT: &str = "hello 127.0.0.1";

/// Clients that connect one after the other.
const CLIENTS: usize = 2;

const SILENCE_MAX: Duration = Duration::from_secs(10);

/// By how much the memory may grow while connections come one after the other.
const MORE_BYTES_MAX: f64 = 4e6;

/// Connections at once need more pairs of ports than one address of the client's is sure to have.
const CONF: &str = "worker_processes 2; daemon off; pid {d}/pid; error_log {d}/error.log;
events { worker_connections 20000; }
stream {
    log_format line '$remote_addr $status $bytes_sent';
    access_log {d}/access.log line;
    server {
        listen 127.0.0.1:{port} backlog=4096;
        set $text 'hello $remote_addr';
        return $text;
    }
    server {
        listen 127.0.0.1:{proxied} backlog=4096;
        proxy_pass 127.0.0.1:{port};
    }
    server {
        listen 127.0.0.1:{held} proxy_protocol backlog=4096;
        proxy_protocol_timeout 60s;
        return held;
    }
}
";

pub(super) fn run(mut args: Args, program: &Path) -> Result<ProofVerdict, String> {
    let connections = args.parsed("--connections", 100_000)?;
    let at_once = args.parsed("--at-once", 4_000)?;
    let nginx = args.option("--nginx")?.map(PathBuf::from);
    args.end()?;
    raise_descriptors()?;
    let weir = Endurance::of(program, connections, at_once)?;
    println!("weir   {weir}");
    if let Some(nginx) = &nginx {
        println!("nginx  {}", Endurance::of(nginx, connections, at_once)?);
    }
    weir.verdict()?;
    println!("weir   {}", idle::measure(program, at_once)?);
    if let Some(nginx) = &nginx {
        println!("nginx  {}", idle::measure(nginx, at_once)?);
    }
    sessions::run(program, nginx.as_deref()).map(|()| ProofVerdict::Right)
}

/// What a server had before and after.
struct Endurance {
    /// When it had served a few connections.
    fresh: Holdings,
    /// While many were open for the first time.
    during: Holdings,
    /// When they were closed, and after all others and as many at once again.
    before: Holdings,
    after: Holdings,
    connections: usize,
    at_once: usize,
    seconds: f64,
    lines: usize,
    /// Sockets of the backend's port that neither listen nor wait for late segments.
    sockets: usize,
}

impl Endurance {
    fn of(program: &Path, connections: usize, at_once: usize) -> Result<Self, String> {
        let folder = ProofFolder::new("stream")?;
        let [port, proxied, held] = [free_port()?, free_port()?, free_port()?];
        let text = CONF.replace("{d}", &folder.0.to_string_lossy());
        let text = text.replace("{port}", &port.to_string()).replace("{held}", &held.to_string());
        let text = text.replace("{proxied}", &proxied.to_string());
        let text = if packages::is_root() { format!("user root;\n{text}") } else { text };
        let server = MeasuredServer::start(program, &folder.write("conf", &text)?, port)?;
        // Workers that have served once have what they keep for later.
        one_after_the_other(proxied, 1000)?;
        let fresh = Holdings::of(&server)?;
        let during = at_the_same_time(&server, held, at_once)?;
        let before = settled(&server, fresh.descriptors)?;
        let begun = Instant::now();
        one_after_the_other(proxied, connections)?;
        let seconds = begun.elapsed().as_secs_f64();
        // The second time many come at once, the allocator may need more than the first time.
        let Holdings { bytes, .. } = settled(&server, before.descriptors)?;
        at_the_same_time(&server, held, at_once)?;
        let Holdings { descriptors, .. } = settled(&server, before.descriptors)?;
        let sockets = procfs::sockets_in_use(port)?;
        let after = Holdings { descriptors, bytes };
        let log = fs::read_to_string(folder.join("access.log")).unwrap_or_default();
        let lines = log.lines().count();
        Ok(Self { fresh, during, before, after, connections, at_once, seconds, lines, sockets })
    }

    fn verdict(&self) -> Result<(), String> {
        let (before, after) = (self.before, self.after);
        if after.descriptors > before.descriptors {
            return Err(format!(
                "{} descriptors are left over",
                after.descriptors - before.descriptors
            ));
        }
        let more = after.bytes - before.bytes;
        if more > MORE_BYTES_MAX {
            return Err(format!("it took {:.1} MB more than before", more / 1e6));
        }
        if self.sockets > 0 {
            return Err(format!("{} sockets to the backend are left over", self.sockets));
        }
        // Each connection is logged once by the proxying server and once by the other.
        let expected = 2 * self.connections + 2 * self.at_once;
        if self.lines < expected {
            return Err(format!("{} sessions are logged, of {expected}", self.lines));
        }
        Ok(())
    }
}

impl std::fmt::Display for Endurance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { fresh, during, before, after, connections, at_once, seconds, .. } = self;
        let each = (during.bytes - fresh.bytes) / *at_once as f64;
        write!(
            f,
            "{at_once} at once with {each:.0} B each, {connections} in {seconds:.1} s, {at_once} \
             at once; descriptors {} -> {} -> {}, memory {:.1} -> {:.1} -> {:.1} MB",
            fresh.descriptors,
            before.descriptors,
            after.descriptors,
            fresh.bytes / 1e6,
            before.bytes / 1e6,
            after.bytes / 1e6,
        )
    }
}

/// So many connections by a few clients, each answered in full.
fn one_after_the_other(port: u16, connections: usize) -> Result<(), String> {
    let client = move || -> Result<(), String> {
        let mut text = Vec::new();
        for number in 0..connections / CLIENTS {
            text.clear();
            let fail = |err: std::io::Error| format!("connection {number}: {err}");
            open(port)?.read_to_end(&mut text).map_err(fail)?;
            if text != TEXT.as_bytes() {
                return Err(format!("connection {number}: {}", String::from_utf8_lossy(&text)));
            }
        }
        Ok(())
    };
    let clients: Vec<_> = (0..CLIENTS).map(|_| thread::spawn(client)).collect();
    clients.into_iter().try_for_each(|client| client.join().map_err(|_| "a client panicked")?)
}

fn open(port: u16) -> Result<TcpStream, String> {
    let fail = |err: std::io::Error| format!("port {port}: {err}");
    let stream = TcpStream::connect(SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)).map_err(fail)?;
    stream.set_read_timeout(Some(SILENCE_MAX)).map_err(fail)?;
    Ok(stream)
}

/// Holds so many connections open. What the server has meanwhile.
fn at_the_same_time(
    server: &MeasuredServer,
    port: u16,
    connections: usize,
) -> Result<Holdings, String> {
    let before = Holdings::of(server)?;
    let clients = (0..connections).map(|_| open(port)).collect::<Result<Vec<_>, _>>()?;
    let during = settled_above(server, before.descriptors + connections)?;
    drop(clients);
    Ok(during)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endurance(after: Holdings, lines: usize) -> Endurance {
        let before = Holdings { descriptors: 20, bytes: 10e6 };
        let during = Holdings { descriptors: 520, bytes: 11e6 };
        Endurance {
            fresh: before,
            during,
            before,
            after,
            connections: 100,
            at_once: 500,
            seconds: 1.0,
            lines,
            sockets: 0,
        }
    }

    #[test]
    fn what_is_left_over_is_named() {
        let verdict =
            |descriptors, bytes, lines| endurance(Holdings { descriptors, bytes }, lines).verdict();
        assert_eq!(verdict(20, 12e6, 1200), Ok(()));
        assert_eq!(verdict(21, 12e6, 1200), Err("1 descriptors are left over".into()));
        assert_eq!(verdict(20, 15e6, 1200), Err("it took 5.0 MB more than before".into()));
        assert_eq!(verdict(20, 10e6, 1199), Err("1199 sessions are logged, of 1200".into()));
        let leaky =
            Endurance { sockets: 2, ..endurance(Holdings { descriptors: 20, bytes: 10e6 }, 1200) };
        assert_eq!(leaky.verdict(), Err("2 sockets to the backend are left over".into()));
        let text = endurance(Holdings { descriptors: 20, bytes: 10e6 }, 1100).to_string();
        assert!(
            text.contains("500 at once with 2000 B each") && text.contains("20 -> 20 -> 20"),
            "{text}"
        );
    }
}
