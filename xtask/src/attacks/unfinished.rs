//! Connections of HTTP/2 whose client stops in the middle and stays: each must end.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use processes::procfs;

use super::frames::{
    CONTINUATION, DATA, END_STREAM, GET, HEADERS, PING, PREFACE, SETTINGS, frame, get, post,
    setting,
};
use crate::running::Running;

/// Connections that stop in the same way.
const CONNECTIONS: usize = 50;
/// With timeouts of a second, all of them are closed by then.
const END_MAX: Duration = Duration::from_secs(8);
const LOOK: Duration = Duration::from_millis(20);

/// The point at which a client stops sending.
struct Unfinished {
    name: &'static str,
    /// What it has sent by then.
    sent: fn() -> Vec<u8>,
}

const fn stops(name: &'static str, sent: fn() -> Vec<u8>) -> Unfinished {
    Unfinished { name, sent }
}

const ALL: &[Unfinished] = &[
    stops("half a frame's head", || begun(&frame(PING, 0, 0, &[0; 8])[..5])),
    stops("half a SETTINGS frame", || begun(&setting(4, 0)[..12])),
    stops("half a HEADERS frame", || begun(&get(0)[..12])),
    stops("HEADERS without an end", || begun(&frame(HEADERS, 0, 1, GET))),
    stops("half a CONTINUATION frame", || {
        let continuation = frame(CONTINUATION, 0, 1, &[0; 8]);
        begun(&[&frame(HEADERS, 0, 1, GET), &continuation[..12]].concat())
    }),
    stops("half a DATA frame", || {
        begun(&[&post(0), &frame(DATA, END_STREAM, 1, &[0; 8])[..12]].concat())
    }),
    stops("half of the trailers", || {
        begun(&[post(0), frame(HEADERS, END_STREAM, 1, &[0x8f])].concat())
    }),
    stops("half a preface", || PREFACE[..10].to_vec()),
];

/// A connection that has begun as it should.
fn begun(rest: &[u8]) -> Vec<u8> {
    [PREFACE, &frame(SETTINGS, 0, 0, &[]), rest].concat()
}

/// Runs those whose name contains `only`; `complain` is told of those that did not end.
pub(super) fn run(
    program: &Path,
    only: &str,
    mut complain: impl FnMut(String),
) -> Result<(), String> {
    println!("unfinished                 closed, the last after");
    let server = Running::start(
        program,
        1,
        "client_header_timeout 1s; client_body_timeout 1s; keepalive_timeout 1s;
         lingering_timeout 1s; lingering_time 1s; error_log DIR/error.log error;
         server { listen ADDRESS; http2 on; location / { return 200 hello; } }",
    )?;
    // What a worker opens once is open before descriptors are counted.
    let mut first = TcpStream::connect(server.address).map_err(|err| err.to_string())?;
    let _ = first.write_all(PREFACE).and_then(|()| first.read_to_end(&mut Vec::new()));
    for unfinished in ALL.iter().filter(|unfinished| unfinished.name.contains(only)) {
        if let Err(why) = unfinished.run(&server) {
            complain(why);
        }
    }
    Ok(())
}

impl Unfinished {
    fn run(&self, server: &Running) -> Result<(), String> {
        let fail = |err: io::Error| format!("{}: {err}", self.name);
        let descriptors = descriptors(server);
        let begin = Instant::now();
        let clients = (0..CONNECTIONS).map(|_| self.stop_at(server.address));
        let clients = clients.collect::<io::Result<Vec<_>>>().map_err(fail)?;
        let end = begin + END_MAX;
        let closed = clients.iter().filter(|client| is_closed_by(client, end)).count();
        println!(
            "{:26} {closed:3} of {CONNECTIONS} {:6.1} s",
            self.name,
            begin.elapsed().as_secs_f64()
        );
        if closed < CONNECTIONS {
            return Err(format!("{}: {} stayed open", self.name, CONNECTIONS - closed));
        }
        drop(clients);
        while self::descriptors(server) > descriptors {
            if Instant::now() > end {
                return Err(format!("{}: descriptors stayed open", self.name));
            }
            thread::sleep(LOOK);
        }
        Ok(())
    }

    fn stop_at(&self, address: SocketAddr) -> io::Result<TcpStream> {
        let mut client = TcpStream::connect(address)?;
        client.write_all(&(self.sent)())?;
        Ok(client)
    }
}

/// A connection that was reset is closed as well.
fn is_closed_by(mut client: &TcpStream, end: Instant) -> bool {
    let mut buffer = [0; 4096];
    loop {
        let left = end.saturating_duration_since(Instant::now()).max(LOOK);
        if client.set_read_timeout(Some(left)).is_err() {
            return false;
        }
        match client.read(&mut buffer) {
            Ok(1..) => {}
            Ok(0) => return true,
            Err(err) => return err.kind() == io::ErrorKind::ConnectionReset,
        }
    }
}

/// The open descriptors of all its processes.
fn descriptors(server: &Running) -> usize {
    procfs::family(server.pid()).into_iter().map(procfs::descriptors).sum()
}
