//! Reloads: what they must not leave behind, and what clients must not notice.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod server;

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;

use server::{Server, eventually};

/// How often a process has each file open, by the file's name; sockets are `socket:`.
fn descriptors(pid: i32) -> BTreeMap<String, usize> {
    let mut open = BTreeMap::new();
    for entry in std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten() {
        if let Ok(target) = std::fs::read_link(entry.path()) {
            let name = target.file_name().unwrap_or_default().to_string_lossy().into_owned();
            *open.entry(name.split('[').next().unwrap_or_default().to_owned()).or_default() += 1;
        }
    }
    open
}

/// A server with many ways to log: plain, buffered, compressed, named by a variable, and to syslog.
fn logging(syslog: &std::net::UdpSocket) -> String {
    let syslog = syslog.local_addr().unwrap();
    format!(
        "open_log_file_cache max=10;
         server {{
             listen ADDRESS; root DIR; error_log e.log; return 200 x;
             access_log a.log; access_log b.log combined buffer=32k;
             access_log c.log.gz combined gzip flush=1h; access_log d$arg_x.log;
             access_log syslog:server={syslog};
         }}"
    )
}

#[test]
fn a_reload_leaves_no_log_open() {
    const WORKERS: usize = 4;
    const RELOADS: usize = 24;
    let syslog = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let server = Server::start(&format!("worker_processes {WORKERS};"), &logging(&syslog));
    for number in 0..RELOADS {
        // Every third reload finds workers that have written nothing since the last.
        if !number.is_multiple_of(3) {
            be_busy(&server);
        }
        server.reload();
    }
    be_busy(&server);
    let worker = server.worker_process();
    eventually("the descriptors of one configuration", || {
        let open = descriptors(worker);
        let count = |name: &str| open.get(name).copied().unwrap_or_default();
        let logs = ["a.log", "b.log", "c.log.gz", "e.log"].map(count);
        // The listening socket, the master's, and one to syslog for each worker.
        let is_one = count("socket:") <= 2 + WORKERS && count("d.log") <= WORKERS;
        (logs == [1; 4] && is_one).then_some(())
    });
}

/// Asks on so many connections at once that every worker has some of them.
fn be_busy(server: &Server) {
    let mut streams: Vec<_> = (0..16).map(|_| server.connect()).collect();
    for stream in &mut streams {
        stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    }
    streams.iter_mut().for_each(|stream| assert_eq!(&status(stream), "200"));
}

fn status(stream: &mut TcpStream) -> String {
    let mut head = [0; 12];
    stream.read_exact(&mut head).unwrap();
    String::from_utf8_lossy(&head[9..]).into_owned()
}
