//! `weir backend` as a program that a test runs.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Output, Stdio};

use super::{PATIENCE, body, kill};

/// A running backend, which ends with the test.
pub struct Backend {
    child: Child,
    /// Where it says that it listens.
    pub names: Vec<String>,
}

impl Backend {
    pub fn start(options: &str) -> Self {
        let mut command = command(options);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let count = options.matches("--listen").count() + options.matches("p-echo ").count();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().take(count);
        let names = lines.map(|line| line.unwrap().replace("listening on ", "")).collect();
        Self { child, names }
    }

    pub fn address(&self, index: usize) -> &str {
        self.names[index].split("://").last().unwrap()
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address(0)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
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
        kill(self.child.id() as i32, "TERM");
        assert!(self.child.wait().unwrap().success());
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        said
    }
}

/// Whether a backend ends as it should though nobody can read what it says.
pub fn ends_unheard(options: &str) -> bool {
    let mut backend = Backend::start(options);
    drop(backend.child.stderr.take());
    kill(backend.child.id() as i32, "TERM");
    backend.child.wait().unwrap().success()
}

impl Drop for Backend {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn command(options: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.arg("backend").args(options.split_whitespace());
    command
}

pub fn run(options: &str) -> Output {
    command(options).output().unwrap()
}

pub fn everything(mut stream: impl Read) -> String {
    let mut all = Vec::new();
    let _ = stream.read_to_end(&mut all);
    String::from_utf8(all).unwrap()
}

/// The first number of that name.
pub fn number(json: &str, name: &str) -> u64 {
    let (_, rest) = json.split_once(&format!("\"{name}\":")).unwrap_or_default();
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().unwrap_or_default()
}
