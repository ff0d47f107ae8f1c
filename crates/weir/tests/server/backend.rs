//! `weir backend` as a program that a test runs.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::{Command, ExitStatus, Output, Stdio};

use testing::{Running, body, connect, eventually, in_time, kill, output};

/// A running backend, which ends with the test.
pub struct Backend {
    running: Running,
    /// Where it says that it listens.
    pub names: Vec<String>,
}

impl Backend {
    pub fn start(options: &str) -> Self {
        let mut command = command(options);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut running = Running(child);
        let count = options.matches("--listen").count() + options.matches("p-echo ").count();
        let lines = BufReader::new(running.0.stdout.take().unwrap()).lines().take(count);
        let names = lines.map(|line| line.unwrap().replace("listening on ", ""));
        let names = in_time("line that says where it listens", || names.collect());
        Self { running, names }
    }

    pub fn address(&self, index: usize) -> &str {
        self.names[index].split("://").last().unwrap()
    }

    pub fn connect(&self) -> TcpStream {
        self.connect_to(0)
    }

    pub fn connect_to(&self, index: usize) -> TcpStream {
        connect(&self.address(index).parse().unwrap())
    }

    /// All that comes until the connection ends, whichever way.
    pub fn ask(&self, request: &str) -> String {
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).unwrap();
        everything(stream)
    }

    pub fn get(&self) -> String {
        self.ask("GET / HTTP/1.0\r\n\r\n")
    }

    pub fn stats(&self) -> String {
        body(&self.ask("GET /_stats HTTP/1.0\r\n\r\n")).to_owned()
    }

    /// A number out of the totals.
    pub fn stat(&self, name: &str) -> u64 {
        number(&self.stats(), name)
    }

    /// Ends it; what it says then.
    pub fn stop(mut self) -> String {
        assert!(self.end().success());
        let mut said = String::new();
        self.running.0.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        said
    }

    fn end(&mut self) -> ExitStatus {
        let Running(child) = &mut self.running;
        kill(child.id() as i32, "TERM");
        eventually("end of the backend", || child.try_wait().unwrap())
    }
}

/// Whether a backend ends as it should though nobody can read what it says.
pub fn ends_unheard(options: &str) -> bool {
    let mut backend = Backend::start(options);
    drop(backend.running.0.stderr.take());
    backend.end().success()
}

fn command(options: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.arg("backend").args(options.split_whitespace());
    command
}

pub fn run(options: &str) -> Output {
    output(command(options))
}

/// All that comes until the connection ends or breaks.
pub fn everything(mut stream: impl Read) -> String {
    let mut all = Vec::new();
    let end = stream.read_to_end(&mut all).map_err(|error| error.kind());
    assert!(!matches!(end, Err(ErrorKind::WouldBlock)), "still no end");
    String::from_utf8(all).unwrap()
}

/// The first number of that name.
pub fn number(json: &str, name: &str) -> u64 {
    let (_, rest) = json.split_once(&format!("\"{name}\":")).unwrap_or_default();
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().unwrap_or_default()
}
