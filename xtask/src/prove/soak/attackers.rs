//! The attackers: what one does in a round, again and again.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::attacks::frames::{GET, HEADERS, PREFACE, SETTINGS, frame};

/// The server under attack.
pub(super) struct SoakTarget {
    pub(super) address: SocketAddr,
    wrong: Mutex<Vec<String>>,
}

impl SoakTarget {
    pub(super) fn new(port: u16) -> Self {
        Self { address: (Ipv4Addr::LOCALHOST, port).into(), wrong: Mutex::default() }
    }

    /// What attackers saw that must not be.
    pub(super) fn wrong(self) -> Vec<String> {
        self.wrong.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn connect(&self) -> io::Result<TcpStream> {
        let client = TcpStream::connect(self.address)?;
        client.set_read_timeout(Some(END_MAX))?;
        Ok(client)
    }
}

pub(super) struct SoakAttacker {
    name: &'static str,
    /// One round, which may fail as an attack may; `Some` is what must not be.
    round: fn(&SoakTarget) -> io::Result<Option<String>>,
}

pub(super) const ATTACKERS: &[SoakAttacker] = &[
    SoakAttacker { name: "unfinished headers", round: unfinished_headers },
    SoakAttacker { name: "a reply in tiny pieces", round: tiny_pieces },
    SoakAttacker { name: "errors without end", round: endless_errors },
];

/// A server has this long to end a connection that it has no use for.
const END_MAX: Duration = Duration::from_secs(30);
/// How long a round reads a reply without end.
const READ: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(10);

impl SoakAttacker {
    pub(super) fn repeat(&self, target: &SoakTarget, stop: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) {
            if let Ok(Some(wrong)) = (self.round)(target) {
                let mut all = target.wrong.lock().unwrap_or_else(PoisonError::into_inner);
                all.push(format!("{}: {wrong}", self.name));
            }
            thread::sleep(PAUSE);
        }
    }
}

/// Connections of HTTP/2 that send part of a header block and then nothing.
fn unfinished_headers(target: &SoakTarget) -> io::Result<Option<String>> {
    const CONNECTIONS: usize = 50;
    let begin = [PREFACE, &frame(SETTINGS, 0, 0, &[]), &frame(HEADERS, 0, 1, GET)].concat();
    let mut clients = Vec::new();
    for number in 0..CONNECTIONS {
        let mut client = target.connect()?;
        // Half of them stop within the frame.
        client.write_all(&begin[..begin.len() - number % 2])?;
        clients.push(client);
    }
    let (end, mut open) = (Instant::now() + END_MAX, 0);
    for mut client in clients {
        let left = end.saturating_duration_since(Instant::now());
        client.set_read_timeout(Some(left.max(PAUSE)))?;
        open += usize::from(is_time_out(client.read_to_end(&mut Vec::new())));
    }
    Ok((open > 0).then(|| format!("{open} connections were still open after {END_MAX:?}")))
}

fn is_time_out(end: io::Result<usize>) -> bool {
    end.is_err_and(|err| matches!(err.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut))
}

/// Reads as fast as it can a reply that comes in chunks of one byte.
fn tiny_pieces(target: &SoakTarget) -> io::Result<Option<String>> {
    let mut client = target.connect()?;
    client.write_all(b"GET /pieces HTTP/1.1\r\nHost: one\r\n\r\n")?;
    let (begin, mut buffer) = (Instant::now(), vec![0; 65_536]);
    while begin.elapsed() < READ {
        if client.read(&mut buffer)? == 0 {
            return Ok(Some("the reply ended".into()));
        }
    }
    Ok(None)
}

/// Asks for what a FastCGI application answers with standard error only.
fn endless_errors(target: &SoakTarget) -> io::Result<Option<String>> {
    let mut client = target.connect()?;
    client.write_all(b"GET /errors HTTP/1.0\r\nHost: one\r\n\r\n")?;
    let mut reply = Vec::new();
    if is_time_out(client.read_to_end(&mut reply)) {
        return Ok(Some(format!("no reply within {END_MAX:?}")));
    }
    Ok(None)
}
