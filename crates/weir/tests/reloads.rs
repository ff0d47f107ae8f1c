//! One reload after another while tunnels and connections are open: none is cut, no request fails,
//! and nothing of an old configuration stays.
//!
//! A large map makes each generation heavy, and it has several logs, to which every worker writes.
//! `WEIR_RELOADS=1000` in the environment makes it a long proof.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod server;

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Error, Read, Result, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use std::{array, fs, thread};

use server::backend::Backend;
use testing::{Server, connect, eventually};

const RELOADS: usize = 10;
const TUNNELS: usize = 20;
const CONNECTIONS: usize = 60;
const WORKERS: &str = "worker_processes 4;";
/// Between two messages of a client.
const PAUSE: Duration = Duration::from_millis(20);
const MAP_ENTRIES: usize = 5000;
/// What the allocator may keep on top, in KiB; a generation that stays takes more than a tenth.
const GROWTH_MAX_KB: usize = 8 * 1024;
/// Descriptors that the process may have more at the end: connections to the backend.
const DESCRIPTORS_GROWTH_MAX: usize = TUNNELS + CONNECTIONS;

fn site(backend: &str, number: usize) -> String {
    let mut map = String::new();
    for entry in 0..MAP_ENTRIES {
        writeln!(map, "entry-{entry}-of-{number} \"value {entry} of {number}\";").unwrap();
    }
    format!(
        "map_hash_max_size 65536;
         map $arg_x $mapped {{ {map} }}
         upstream u {{ server {backend}; keepalive 16; }}
         open_log_file_cache max=8;
         server {{
             listen ADDRESS;
             root DIR;
             access_log plain.log; access_log buffered.log combined buffer=32k flush=1s;
             access_log packed.log.gz combined gzip; access_log named$arg_x.log;
             keepalive_requests 1000000;
             location = /number {{ return 200 \"{number}$mapped\\n\"; }}
             location / {{
                 proxy_pass http://u;
                 proxy_set_header Upgrade $http_upgrade;
                 proxy_set_header Connection $http_connection;
             }}
         }}"
    )
}

/// What the clients do, as long as they are to.
#[derive(Default)]
struct Clients {
    over: AtomicBool,
    /// Messages that came back, by tunnel.
    echoes: [AtomicUsize; TUNNELS],
}

/// Ends the clients, also where a test panics.
struct End<'c>(&'c Clients);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.over.store(true, Ordering::SeqCst);
    }
}

impl Clients {
    fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }

    /// One tunnel, from the first reload until after the last.
    fn tunnel(&self, number: usize, address: SocketAddr) -> Result<()> {
        let mut stream = BufReader::new(connect(&address));
        let asked = "GET /chat HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: any\r\n\r\n";
        stream.get_mut().write_all(asked.as_bytes())?;
        let head = head(&mut stream)?;
        if !head.starts_with("HTTP/1.1 101 ") {
            return Err(Error::other(head));
        }
        while !self.is_over() {
            let count = self.echoes[number].load(Ordering::SeqCst);
            let line = format!("message {count} of tunnel {number}\n");
            stream.get_mut().write_all(line.as_bytes())?;
            let mut echo = String::new();
            stream.read_line(&mut echo)?;
            if echo != line {
                return Err(Error::other(format!("{line:?} came back as {echo:?}")));
            }
            self.echoes[number].fetch_add(1, Ordering::SeqCst);
            thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// Requests on a connection, which is opened again only where the server said that it closes.
    fn ask(&self, number: usize, address: SocketAddr) -> Result<()> {
        let target = if number.is_multiple_of(2) { "/number" } else { "/proxied" };
        let mut open = None;
        while !self.is_over() {
            let mut stream = open.take().unwrap_or_else(|| BufReader::new(connect(&address)));
            write!(stream.get_mut(), "GET {target} HTTP/1.1\r\nHost: h\r\n\r\n")?;
            let head = head(&mut stream)?;
            let length = head.split("Content-Length: ").nth(1).and_then(|rest| rest.lines().next());
            let Some(length) = length.filter(|_| head.starts_with("HTTP/1.1 200 ")) else {
                return Err(Error::other(head));
            };
            stream.read_exact(&mut vec![0; length.parse().unwrap()])?;
            open = Some(stream).filter(|_| !head.contains("Connection: close"));
            thread::sleep(PAUSE);
        }
        Ok(())
    }

    fn await_echoes(&self) {
        let now = || -> [usize; TUNNELS] {
            array::from_fn(|number| self.echoes[number].load(Ordering::SeqCst))
        };
        let before = now();
        eventually("an echo in every tunnel", || {
            now().iter().zip(before).all(|(now, before)| *now > before + 1).then_some(())
        });
    }
}

fn head(stream: &mut BufReader<TcpStream>) -> Result<String> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head)? == 0 {
            return Err(Error::other(format!("the connection ended after {head:?}")));
        }
    }
    Ok(head)
}

/// Memory in KiB and descriptors of the process that serves.
fn taken(server: &Server) -> [usize; 2] {
    let process = server.worker_process();
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let memory = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let descriptors = fs::read_dir(format!("/proc/{process}/fd")).unwrap().count();
    [memory.trim().trim_end_matches(" kB").parse().unwrap(), descriptors]
}

#[test]
fn reloads_cut_nothing_fail_nothing_and_leave_nothing() {
    let reloads = std::env::var("WEIR_RELOADS").map_or(RELOADS, |number| number.parse().unwrap());
    let backend = Backend::start("--listen 0 --upgrade");
    let server = Server::start(WORKERS, &site(backend.address(0), 0));
    let clients = Clients::default();
    thread::scope(|scope| {
        let end = End(&clients);
        let (clients, address) = (&clients, server.address);
        let tunnels =
            (0..TUNNELS).map(|number| scope.spawn(move || clients.tunnel(number, address)));
        let mut running: Vec<_> = tunnels.collect();
        running.extend((0..CONNECTIONS).map(|n| scope.spawn(move || clients.ask(n, address))));
        clients.await_echoes();
        let mut early = taken(&server);
        for number in 1..=reloads {
            server.configure(WORKERS, &site(backend.address(0), number));
            server.signal("HUP");
            eventually("the new configuration", || {
                (server.get("/number") == format!("{number}\n")).then_some(())
            });
            if number == reloads.div_ceil(5) {
                early = taken(&server);
            }
        }
        clients.await_echoes();
        // What began before goes once its last requests have ended.
        eventually("no more memory and descriptors than early on", || {
            let [memory, descriptors] = taken(&server);
            let is_small = memory <= early[0] + GROWTH_MAX_KB;
            (is_small && descriptors <= early[1] + DESCRIPTORS_GROWTH_MAX).then_some(())
        });
        drop(end);
        for client in running {
            client.join().unwrap().unwrap();
        }
    });
    let log = server.log();
    let is_grave =
        |line: &&str| ["[error]", "[crit]", "[alert]", "[emerg]"].iter().any(|l| line.contains(l));
    assert_eq!(log.lines().find(is_grave), None);
}
