//! `xtask downgrades`: requests of HTTP/2 that a backend of HTTP/1 could misread, beside nginx.
//!
//! Whatever nginx does, no line of a backend's head may be one that a field has smuggled in: all of
//! those begin with [`SMUGGLED`].

mod client;
mod requests;

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::args::Args;
use crate::project;
use crate::running::Running;
use requests::{ALL, Downgrade};

pub(crate) const HELP: &str = "requests of HTTP/2 to a backend of HTTP/1, beside nginx

Usage: cargo xtask downgrades [--weir PATH] [--nginx PATH]

  --weir PATH   the program under test; built where none is named
  --nginx PATH  the reference, /usr/sbin/nginx unless given

Each request has something that HTTP/1 has no place for, or reads otherwise. Fails where the bytes
that the backend gets, or the status then, differ from nginx's and conformance/downgrades.txt does
not say why, and where a field becomes a line of its own. How a request is refused is not compared.
";

/// Lines of `NAME -- REASON`; `#` starts a comment.
const KNOWN: &str = "conformance/downgrades.txt";
const NGINX: &str = "/usr/sbin/nginx";

/// What every field begins with that must not become a line.
const SMUGGLED: &str = "\nevil";

/// A backend answers once nothing more has come for so long.
const QUIET: Duration = Duration::from_millis(50);
/// What a refused request might still make a server send has come by then.
const AFTERWARDS: Duration = Duration::from_millis(20);

pub(crate) fn run(words: &[String]) -> Result<(), String> {
    let mut args = Args::new(words);
    let weir = args.option("--weir")?.map(PathBuf::from);
    let nginx = args.option("--nginx")?.map_or(NGINX.into(), PathBuf::from);
    args.end()?;
    let weir = weir.map_or_else(|| project::release("weir"), Ok)?;
    compare(&weir, &nginx)
}

#[derive(Debug)]
struct DowngradeOutcome {
    status: Option<u16>,
    /// What the backend got.
    passed_on: String,
}

impl DowngradeOutcome {
    /// Whether the backend got the same, and the client its answer.
    fn is_as(&self, other: &Self) -> bool {
        let is_refused = self.passed_on.is_empty() && self.status != Some(200);
        self.passed_on == other.passed_on && (is_refused || self.status == other.status)
    }
}

fn compare(weir: &Path, nginx: &Path) -> Result<(), String> {
    let list = fs::read_to_string(project::root().join(KNOWN)).unwrap_or_default();
    let known = known(&list)?;
    let [ours, theirs] = [outcomes(weir)?, outcomes(nginx)?];
    let (mut wrong, mut listed) = (Vec::new(), 0);
    for ((request, our), their) in ALL.iter().zip(&ours).zip(&theirs) {
        match (our.is_as(their), known.contains_key(request.name)) {
            (true, _) => {}
            (false, true) => listed += 1,
            (false, false) => {
                wrong.push(format!("{}\n  Weir  {our:?}\n  nginx {their:?}", request.name));
            }
        }
        let (head, _) = our.passed_on.split_once("\r\n\r\n").unwrap_or_default();
        let is_framed = request.body.is_none() || head.contains("\r\nContent-Length: ");
        if head.contains(SMUGGLED) || !our.passed_on.is_empty() && !is_framed {
            wrong.push(format!("{}: smuggled: {our:?}", request.name));
        }
    }
    println!("{} requests, {listed} of {} listed differences", ALL.len(), known.len());
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

fn known(text: &str) -> Result<BTreeMap<&str, &str>, String> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let entry = |line: &'_ str| -> Option<usize> { line.find(" -- ") };
    let entries = lines.map(|line| match entry(line) {
        Some(at) => Ok((&line[..at], &line[at + 4..])),
        None => Err(format!("{KNOWN}: {line}: a request and the reason are needed")),
    });
    let entries = entries.collect::<Result<BTreeMap<_, _>, _>>()?;
    match entries.keys().find(|name| !ALL.iter().any(|request| request.name == **name)) {
        Some(name) => Err(format!("{KNOWN}: there is no request {name}")),
        None => Ok(entries),
    }
}

fn outcomes(program: &Path) -> Result<Vec<DowngradeOutcome>, String> {
    let backend = RecordingBackend::start().map_err(|err| err.to_string())?;
    let server = Running::start(
        program,
        1,
        &format!(
            "client_header_timeout 1s; client_body_timeout 1s; lingering_timeout 1s;
             server {{ listen ADDRESS http2; location / {{
                 proxy_pass http://{}; proxy_http_version 1.1;
                 proxy_set_header Connection \"\"; proxy_set_header Host $http_host; }} }}",
            backend.address
        ),
    )?;
    ALL.iter().map(|request| outcome(&server, &backend, request)).collect()
}

fn outcome(
    server: &Running,
    backend: &RecordingBackend,
    request: &Downgrade,
) -> Result<DowngradeOutcome, String> {
    let status = client::ask(server.address, request);
    let status = status.map_err(|err| format!("{}: {err}", request.name))?;
    thread::sleep(AFTERWARDS);
    Ok(DowngradeOutcome { status, passed_on: shown(&backend.take()) })
}

fn shown(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

/// A backend that notes what it gets.
struct RecordingBackend {
    address: SocketAddr,
    received: Arc<Mutex<Vec<u8>>>,
}

impl RecordingBackend {
    fn start() -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let backend = Self { address: listener.local_addr()?, received: Arc::default() };
        let received = backend.received.clone();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let received = received.clone();
                thread::spawn(move || record(client, &received));
            }
        });
        Ok(backend)
    }

    fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.received.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn record(mut client: TcpStream, received: &Mutex<Vec<u8>>) -> std::io::Result<()> {
    let mut buffer = [0; 4096];
    let first = client.read(&mut buffer)?;
    let mut request = buffer[..first].to_vec();
    client.set_read_timeout(Some(QUIET))?;
    while let Ok(count @ 1..) = client.read(&mut buffer) {
        request.extend_from_slice(&buffer[..count]);
    }
    received.lock().unwrap_or_else(PoisonError::into_inner).extend(request);
    client.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
}
