//! `xtask examples`: the examples whose backends are programs of Node, Python and PHP.
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
use crate::php_fpm::{self, PhpFpm};
use crate::project;
use crate::running::Running;

pub(crate) const HELP: &str = "run the examples with the real applications of Node, Python and PHP

Usage: cargo xtask examples [--weir PATH]

  --weir PATH   the program under test; built where none is named

An interpreter that is not installed is left out.
";

struct Example {
    name: &'static str,
    application: ApplicationKind,
    /// The backend's address in the configuration.
    backend: &'static str,
    ask: fn(SocketAddr) -> Result<()>,
}

enum ApplicationKind {
    /// A script that says where it listens.
    Script {
        interpreter: &'static str,
        file: &'static str,
    },
    Php,
}

const EXAMPLES: [Example; 4] = [
    Example {
        name: "node",
        application: ApplicationKind::Script { interpreter: "node", file: "server.js" },
        backend: "127.0.0.1:3000",
        ask: ask_node,
    },
    Example {
        name: "python",
        application: ApplicationKind::Script { interpreter: "python3", file: "app.py" },
        backend: "127.0.0.1:8000",
        ask: |address| expect(address, "/a", &["200 OK", "Python answers /a", "client: 127.0.0.1"]),
    },
    Example {
        name: "php",
        application: ApplicationKind::Php,
        backend: "127.0.0.1:9000",
        ask: ask_php,
    },
    Example {
        name: "websocket",
        application: ApplicationKind::Script { interpreter: "node", file: "server.js" },
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
        match example.application.lacks() {
            None => {
                example.run(&weir)?;
                println!("{}: answered", example.name);
            }
            Some(program) => println!("{}: left out, {program} is not installed", example.name),
        }
    }
    Ok(())
}

impl Example {
    fn run(&self, weir: &Path) -> std::result::Result<(), String> {
        let fail = |err: Error| format!("{}: {err}", self.name);
        let folder = project::root().join("examples").join(self.name);
        let (_application, address) = self.application.start(&folder)?;
        let text = fs::read_to_string(folder.join("nginx.conf")).map_err(fail)?;
        let (_, http) = text.split_once("http {").ok_or("no http block")?;
        let http = http.trim_end().trim_end_matches('}');
        let http = http.replace("127.0.0.1:8080", "ADDRESS").replace(self.backend, &address);
        let http = http.replace("access_log /dev/stdout;", "");
        let http = http.replace("root site", &format!("root {}/site", folder.display()));
        let http = http.replace("../../conf", &project::root().join("conf").to_string_lossy());
        let running = Running::start(weir, 1, &http)?;
        (self.ask)(running.address).map_err(|err| format!("{}\n{}", fail(err), running.log()))
    }
}

impl ApplicationKind {
    /// The program that it needs and that is not there.
    fn lacks(&self) -> Option<&'static str> {
        match self {
            Self::Script { interpreter, .. } => {
                let version = Command::new(interpreter).arg("--version").output();
                let is_there = version.is_ok_and(|output| output.status.success());
                (!is_there).then_some(*interpreter)
            }
            Self::Php => php_fpm::program().is_err().then_some("php-fpm"),
        }
    }

    /// Starts it, to end with the first value; the second is where it listens.
    fn start(&self, folder: &Path) -> std::result::Result<(RunningApplication, String), String> {
        match self {
            Self::Script { interpreter, file } => {
                let started = ExampleScript::start(interpreter, &folder.join(file));
                let (script, address) = started.map_err(|err| format!("{file}: {err}"))?;
                Ok((RunningApplication::Script(script), address))
            }
            Self::Php => {
                let php = PhpFpm::start(&php_fpm::program()?)?;
                let address = php.address();
                Ok((RunningApplication::Php(php), address))
            }
        }
    }
}

/// Only kept, to end with this.
enum RunningApplication {
    Script(#[allow(dead_code, reason = "it is dropped")] ExampleScript),
    Php(#[allow(dead_code, reason = "it is dropped")] PhpFpm),
}

/// A program that listens on a port of its choice, and ends with this.
struct ExampleScript(Child);

impl ExampleScript {
    fn start(interpreter: &str, program: &Path) -> Result<(Self, String)> {
        let mut command = Command::new(interpreter);
        command.arg(program).env("PORT", "0").stdin(Stdio::null());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let stdout = child.stdout.take();
        let script = Self(child);
        let mut line = String::new();
        BufReader::new(stdout.ok_or_else(|| Error::other("no output"))?).read_line(&mut line)?;
        match line.trim().strip_prefix("listening on ") {
            Some(address) => Ok((script, address.to_owned())),
            None => Err(Error::other(format!("it says {line:?}"))),
        }
    }
}

impl Drop for ExampleScript {
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

fn ask_php(address: SocketAddr) -> Result<()> {
    expect(address, "/a?b", &["200 OK", "PHP answers /a?b", "host: example", "client: 127.0.0.1"])?;
    expect(address, "/index.php/a/b", &["200 OK", "path info: /a/b"])?;
    expect(address, "/missing.php", &["404 Not Found"])?;
    expect(address, "/style.css", &["200 OK", "text/css", "font-family"])?;
    let mut stream = open(address)?;
    write!(
        stream,
        "POST / HTTP/1.1\r\nHost: example\r\nConnection: close\r\nContent-Length: 8\r\n\
         Content-Type: application/x-www-form-urlencoded\r\n\r\nname=Ann"
    )?;
    let mut reply = String::new();
    stream.read_to_string(&mut reply)?;
    if reply.contains("name: Ann\n") { Ok(()) } else { Err(Error::other(reply)) }
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
