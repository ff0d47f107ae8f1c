//! A run of `weir load`, and what it says.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use testing::{eventually, kill};

/// Runs `weir load` with these words to its end.
pub fn load(words: &str) -> Report {
    start(words).end()
}

pub fn start(words: &str) -> Generator {
    Generator::start(Command::new(env!("CARGO_BIN_EXE_weir")).arg("load"), words)
}

/// Runs it through a link called `wrk`.
pub fn wrk(words: &str) -> Report {
    Generator::start(Command::new(env!("CARGO_BIN_EXE_weir")).arg0("wrk"), words).end()
}

/// Runs it where so many files may be open.
pub fn load_within(files: u64, words: &str) -> Report {
    let script = format!("ulimit -n {files} && exec \"$0\" load \"$@\"");
    let command = &mut Command::new("sh");
    Generator::start(command.args(["-c", &script, env!("CARGO_BIN_EXE_weir")]), words).end()
}

/// Starts it as a shell without job control starts background jobs: SIGINT is ignored.
pub fn start_in_background(words: &str) -> Generator {
    let script = "trap '' INT && exec \"$0\" load \"$@\"";
    let command = &mut Command::new("sh");
    Generator::start(command.args(["-c", script, env!("CARGO_BIN_EXE_weir")]), words)
}

/// Killed if the test ends before it does.
pub struct Generator {
    child: Child,
    out: BufReader<ChildStdout>,
    said: String,
    err: Arc<Mutex<Vec<u8>>>,
    /// Ends with the last byte of standard error.
    err_reader: Option<JoinHandle<()>>,
}

impl Generator {
    fn start(command: &mut Command, words: &str) -> Self {
        let command = command.args(words.split_whitespace()).stdin(Stdio::null());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stderr = child.stderr.take().unwrap();
        let err = Arc::<Mutex<Vec<u8>>>::default();
        let shared = err.clone();
        let err_reader = std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(length @ 1..) = stderr.read(&mut buffer) {
                shared.lock().unwrap().write_all(&buffer[..length]).unwrap();
            }
        });
        Self {
            out: BufReader::new(child.stdout.take().unwrap()),
            said: String::new(),
            err_reader: Some(err_reader),
            err,
            child,
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Reads the two lines that come before the first connection.
    pub fn await_opening(&mut self) {
        self.await_line(" threads and ");
    }

    /// Reads up to a line with that in it.
    pub fn await_line(&mut self, part: &str) {
        while !self.said.lines().last().is_some_and(|line| line.contains(part)) {
            assert!(self.out.read_line(&mut self.said).unwrap() > 0, "{}", self.said);
        }
    }

    /// What it has written to standard error so far.
    pub fn err(&self) -> String {
        String::from_utf8_lossy(&self.err.lock().unwrap()).into_owned()
    }

    /// Interrupts it as Ctrl-C does, and waits for its end.
    pub fn interrupt(self) -> Report {
        kill(self.child.id() as i32, "INT");
        self.end()
    }

    /// Waits for its end.
    pub fn end(mut self) -> Report {
        let status = eventually("the generator's end", || self.child.try_wait().unwrap());
        self.out.read_to_string(&mut self.said).unwrap();
        self.err_reader.take().unwrap().join().unwrap();
        Report { code: status.code(), out: std::mem::take(&mut self.said), err: self.err() }
    }
}

impl Drop for Generator {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[derive(Debug)]
pub struct Report {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

/// Errors by the names that people read.
pub const IMPOSSIBLE: &str = "connection failed";
pub const REFUSED: &str = "connection refused";
pub const RESET: &str = "connection reset";
pub const CLOSED: &str = "closed before the reply";
pub const SHORT: &str = "reply ended too early";
pub const INVALID: &str = "reply is not valid HTTP";
pub const TIMEOUT: &str = "no complete reply in time";
pub const STATUS_404: &str = "status 404";
pub const STATUS_500: &str = "status 500";
pub const STATUS_600: &str = "status 600";

impl Report {
    /// The number in `  1000 requests in 1.00s, 1.00MB read`.
    pub fn requests(&self) -> u64 {
        let line = self.out.lines().find(|line| line.contains(" requests in "));
        let line = line.unwrap_or_else(|| panic!("no requests in {self:#?}"));
        line.trim().split(' ').next().unwrap().parse().unwrap()
    }

    /// The errors that it lists, and how many each.
    pub fn errors(&self) -> Vec<(&str, u64)> {
        let title = "Errors, each counted once:";
        let lines = self.err.lines().skip_while(|line| *line != title).skip(1);
        let parts = lines.map_while(|line| line.trim().rsplit_once(' '));
        parts.map_while(|(name, count)| Some((name.trim(), count.parse().ok()?))).collect()
    }

    /// How many there are of that kind.
    pub fn error(&self, kind: &str) -> u64 {
        self.errors().iter().filter(|(name, _)| *name == kind).map(|(_, count)| count).sum()
    }

    /// Errors that are not replies.
    pub fn failures(&self) -> u64 {
        let errors = self.errors();
        let failures = errors.iter().filter(|(name, _)| !name.starts_with("status"));
        failures.map(|(_, count)| count).sum()
    }

    /// The numbers in `  Socket errors: connect 1, read 2, write 3, timeout 4`.
    pub fn socket_errors(&self) -> Option<[u64; 4]> {
        let rest = self.out.lines().find_map(|line| line.strip_prefix("  Socket errors: "))?;
        let numbers = rest.split(", ").map(|part| part.rsplit(' ').next().unwrap());
        let numbers: Vec<u64> = numbers.map(|number| number.parse().unwrap()).collect();
        Some(numbers.try_into().unwrap())
    }

    /// The number after `Requests/sec:`.
    pub fn rate(&self) -> f64 {
        let rate = self.out.lines().find_map(|line| line.strip_prefix("Requests/sec:"));
        rate.unwrap().trim().parse().unwrap()
    }

    /// The number after `Non-2xx or 3xx responses: `.
    pub fn bad_statuses(&self) -> Option<u64> {
        let name = "  Non-2xx or 3xx responses: ";
        let number = self.out.lines().find_map(|line| line.strip_prefix(name))?;
        Some(number.parse().unwrap())
    }

    /// All replies came, and nothing else happened.
    pub fn assert_clean(&self, requests: u64) {
        assert_eq!((self.requests(), self.code), (requests, Some(0)), "{self:#?}");
        assert_eq!((self.errors().len(), self.socket_errors()), (0, None), "{self:#?}");
        assert_eq!(self.bad_statuses(), None, "{self:#?}");
    }
}
