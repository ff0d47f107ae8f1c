//! Clients that ask without a pause, on connections that they keep or on new ones.
//!
//! A server that ends closes idle connections, and a request may be on its way just then. Every
//! client repeats such a request, and so do these: on a kept connection that ends before the first
//! byte of a reply. It is counted. Everything else that goes wrong is a failure.

use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Longer than anything should take, on a busy machine, too.
const SILENCE_MAX: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(2);
/// The number of failures to print.
const WRONG_MAX: usize = 10;

#[derive(Default)]
pub(super) struct ClientTotals {
    ended: AtomicBool,
    requests: AtomicUsize,
    repeated: AtomicUsize,
    failed: AtomicUsize,
    wrong: Mutex<Vec<String>>,
}

impl ClientTotals {
    pub(super) fn end(&self) {
        self.ended.store(true, Ordering::SeqCst);
    }

    /// Waits until so many more requests have been answered.
    pub(super) fn await_requests(&self, count: usize) -> std::result::Result<(), String> {
        let goal = self.requests.load(Ordering::SeqCst) + count;
        let end = Instant::now() + SILENCE_MAX;
        while self.requests.load(Ordering::SeqCst) < goal {
            if Instant::now() > end {
                return Err(format!("requests are not answered any more: {:?}", self.wrong));
            }
            thread::sleep(PAUSE);
        }
        Ok(())
    }

    pub(super) fn report(&self, times: usize, log: &str) -> std::result::Result<(), String> {
        let count = |number: &AtomicUsize| number.load(Ordering::SeqCst);
        println!(
            "{times} times there and back: {} requests answered, {} failed; {} repeated because \
             their idle connection was closed",
            count(&self.requests),
            count(&self.failed),
            count(&self.repeated),
        );
        let mut wrong = self.wrong.lock().expect("no thread panics with it").clone();
        let grave = |line: &&str| ["[alert]", "[emerg]"].iter().any(|level| line.contains(level));
        wrong.extend(log.lines().filter(grave).take(WRONG_MAX).map(str::to_owned));
        if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
    }

    fn complain(&self, what: String) {
        self.failed.fetch_add(1, Ordering::SeqCst);
        let mut wrong = self.wrong.lock().expect("no thread panics with it");
        if wrong.len() < WRONG_MAX {
            wrong.push(what);
        }
    }
}

/// Asks until the tally has ended.
pub(super) fn ask_on(address: SocketAddr, tally: &ClientTotals, keep: bool) {
    let mut kept: Option<TcpStream> = None;
    for path in ["/", "/text"].iter().cycle() {
        if tally.ended.load(Ordering::SeqCst) {
            return;
        }
        match ask(&mut kept, address, path, keep, tally) {
            Ok(()) => {
                tally.requests.fetch_add(1, Ordering::SeqCst);
            }
            Err(error) => tally.complain(format!("{path}, kept {keep}: {error}")),
        }
        thread::sleep(PAUSE);
    }
}

fn ask(
    kept: &mut Option<TcpStream>,
    address: SocketAddr,
    path: &str,
    keep: bool,
    tally: &ClientTotals,
) -> Result<()> {
    let connection = if keep { "keep-alive" } else { "close" };
    let request = format!("GET {path} HTTP/1.1\r\nHost: h\r\nConnection: {connection}\r\n\r\n");
    let expected = if path == "/" { "a page\n" } else { "a text\n" };
    if let Some(mut stream) = kept.take() {
        match exchange(&mut stream, &request, expected) {
            Ok(stays) => {
                *kept = Some(stream).filter(|_| stays);
                return Ok(());
            }
            Err(FailedRequest { began: false, .. }) => {
                tally.repeated.fetch_add(1, Ordering::SeqCst);
            }
            Err(FailedRequest { error, .. }) => return Err(error),
        }
    }
    let mut stream = open(address)?;
    let stays = exchange(&mut stream, &request, expected).map_err(|failed| failed.error)?;
    *kept = Some(stream).filter(|_| stays && keep);
    Ok(())
}

/// A request without a whole reply.
struct FailedRequest {
    /// Whether a part of the reply came.
    began: bool,
    error: Error,
}

/// Whether the connection stays.
fn exchange(
    stream: &mut TcpStream,
    request: &str,
    expected: &str,
) -> std::result::Result<bool, FailedRequest> {
    stream.write_all(request.as_bytes()).map_err(|error| FailedRequest { began: false, error })?;
    let (mut reply, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let text = String::from_utf8_lossy(&reply);
        if let Some((head, body)) = text.split_once("\r\n\r\n")
            && body == expected
        {
            return Ok(head.starts_with("HTTP/1.1 200 ") && !head.contains("Connection: close"));
        }
        let failed = |error| FailedRequest { began: !reply.is_empty(), error };
        match stream.read(&mut buffer) {
            Ok(0) => return Err(failed(ErrorKind::UnexpectedEof.into())),
            Ok(length) => reply.extend_from_slice(&buffer[..length]),
            Err(error) => return Err(failed(error)),
        }
    }
}

fn open(address: SocketAddr) -> Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, SILENCE_MAX)?;
    stream.set_read_timeout(Some(SILENCE_MAX))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// All of a reply whose end is the connection's.
fn whole(address: SocketAddr, path: &str) -> Result<Vec<u8>> {
    let mut stream = open(address)?;
    write!(stream, "GET {path} HTTP/1.0\r\n\r\n")?;
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply)?;
    Ok(reply)
}

/// What the program that answers calls itself.
pub(super) fn server(address: SocketAddr) -> Option<String> {
    let reply = String::from_utf8(whole(address, "/text").ok()?).ok()?;
    reply.lines().find_map(|line| line.strip_prefix("Server: ")).map(str::to_owned)
}

/// A download that takes seconds, in a thread of its own.
pub(super) fn download(address: SocketAddr, bytes: usize) -> JoinHandle<Result<()>> {
    thread::spawn(move || {
        let reply = whole(address, "/large.bin")?;
        let head = reply.windows(4).position(|window| window == b"\r\n\r\n");
        match head.map(|at| reply.len() - at - 4) {
            Some(length) if length == bytes => Ok(()),
            length => Err(Error::other(format!("{length:?} of {bytes} bytes were downloaded"))),
        }
    })
}
