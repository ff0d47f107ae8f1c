//! `xtask examples`: the examples whose backends are programs of Node and Python, as they stand.
//!
//! `cargo test` starts every example with a backend of our own; here the applications run. Ports
//! are free ones: an application is told 0, and says which it got.

use std::fs;
use std::io::{BufRead, BufReader, Error, Read, Result, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::args::Args;
use crate::project;
use crate::running::Running;

pub(crate) const HELP: &str = "run the examples with the real applications of Node and Python

Usage: cargo xtask examples [--weir PATH]

  --weir PATH   the program under test; built where none is named

An interpreter that is not installed is left out.
";

struct Example {
    name: &'static str,
    interpreter: &'static str,
    program: &'static str,
    /// The backend's address in the configuration.
    backend: &'static str,
    ask: fn(SocketAddr) -> Result<()>,
}

const EXAMPLES: [Example; 3] = [
    Example {
        name: "node",
        interpreter: "node",
        program: "server.js",
        backend: "127.0.0.1:3000",
        ask: ask_node,
    },
    Example {
        name: "python",
        interpreter: "python3",
        program: "app.py",
        backend: "127.0.0.1:8000",
        ask: |address| expect(address, "/a", &["200 OK", "Python answers /a", "client: 127.0.0.1"]),
    },
    Example {
        name: "websocket",
        interpreter: "node",
        program: "server.js",
        backend: "127.0.0.1:3000",
        ask: ask_websocket,
    },
];

const SILENCE_MAX: Duration = Duration::from_secs(20);

/// Runs them; an error says which answered wrongly.
pub(crate) fn run(words: &[String]) -> std::result::Result<(), String> {
    let mut args = Args::new(words);
    let weir = args.option("--weir")?.map(PathBuf::from);
    args.end()?;
    let weir = weir.map_or_else(|| project::debug("weir"), Ok)?;
    for example in &EXAMPLES {
        let version = Command::new(example.interpreter).arg("--version").output();
        if version.is_ok_and(|output| output.status.success()) {
            example.run(&weir)?;
            println!("{}: answered", example.name);
        } else {
            println!("{}: left out, {} is not installed", example.name, example.interpreter);
        }
    }
    Ok(())
}

impl Example {
    fn run(&self, weir: &Path) -> std::result::Result<(), String> {
        let fail = |err: Error| format!("{}: {err}", self.name);
        let folder = project::root().join("examples").join(self.name);
        let (_application, address) =
            Application::start(self.interpreter, &folder.join(self.program)).map_err(fail)?;
        let text = fs::read_to_string(folder.join("nginx.conf")).map_err(fail)?;
        let (_, http) = text.split_once("http {").ok_or("no http block")?;
        let http = http.trim_end().trim_end_matches('}');
        let http = http.replace("127.0.0.1:8080", "ADDRESS").replace(self.backend, &address);
        let http = http.replace("access_log /dev/stdout;", "");
        let running = Running::start(weir, 1, &http)?;
        (self.ask)(running.address).map_err(|err| format!("{}\n{}", fail(err), running.log()))
    }
}

/// A program that listens on a port of its choice, and ends with this.
struct Application(Child);

impl Application {
    fn start(interpreter: &str, program: &Path) -> Result<(Self, String)> {
        let mut command = Command::new(interpreter);
        command.arg(program).env("PORT", "0").stdin(Stdio::null());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let stdout = child.stdout.take();
        let application = Self(child);
        let mut line = String::new();
        BufReader::new(stdout.ok_or_else(|| Error::other("no output"))?).read_line(&mut line)?;
        match line.trim().strip_prefix("listening on ") {
            Some(address) => Ok((application, address.to_owned())),
            None => Err(Error::other(format!("it says {line:?}"))),
        }
    }
}

impl Drop for Application {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn open(address: SocketAddr) -> Result<TcpStream> {
    let stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(SILENCE_MAX))?;
    Ok(stream)
}

/// Asks for a path, and looks for these parts in the reply.
fn expect(address: SocketAddr, path: &str, parts: &[&str]) -> Result<()> {
    let mut stream = open(address)?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: example\r\nConnection: close\r\n\r\n")?;
    let mut reply = String::new();
    stream.read_to_string(&mut reply)?;
    match parts.iter().find(|part| !reply.contains(**part)) {
        Some(part) => Err(Error::other(format!("no {part:?} in {reply}"))),
        None => Ok(()),
    }
}

fn ask_node(address: SocketAddr) -> Result<()> {
    expect(address, "/a", &["200 OK", "Node answers /a", "host: example", "client: 127.0.0.1"])?;
    expect(address, "/events", &["text/event-stream", "data: event 1\n", "data: event 3\n"])
}

/// A frame with the text "hello", as RFC 6455, section 5.7, has it: masked, and as it comes back.
const ASKED: [u8; 11] = [0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58];
const ANSWERED: &[u8] = b"\x81\x05Hello";

fn ask_websocket(address: SocketAddr) -> Result<()> {
    expect(address, "/", &["200 OK", "new WebSocket("])?;
    let mut stream = open(address)?;
    write!(
        stream,
        "GET /chat HTTP/1.1\r\nHost: example\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )?;
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    if !head.starts_with("HTTP/1.1 101 ") || !head.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=") {
        return Err(Error::other(head));
    }
    for _ in 0..3 {
        stream.write_all(&ASKED)?;
        let mut echo = [0; ANSWERED.len()];
        stream.read_exact(&mut echo)?;
        if echo != *ANSWERED {
            return Err(Error::other(format!("another frame came back: {echo:?}")));
        }
    }
    Ok(())
}
