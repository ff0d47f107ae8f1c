//! The program `weir` in a folder of its own.
//!
//! Its socket is bound here and handed down as `NGINX=fd;`, so no port is guessed, and a connection
//! can be made before the program is up: it waits in the queue. Tests wait for events inside the
//! program by reading its error log.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Output, Stdio};
use std::thread;
use std::time::Instant;

use crate::{Folder, LOOK, PATIENCE, Running, body, connect, eventually, is_root, kill, output};

/// The first lines of every configuration.
const GLOBALS: &str = "pid nginx.pid;\nerror_log error.log info;\ndaemon off;\n";
const EVENTS: &str = "events {}\n";

/// The program that cargo has built for the integration test that runs: it is in the folder above
/// the test's own.
fn weir() -> PathBuf {
    std::env::current_exe().unwrap().ancestors().nth(2).unwrap().join("weir")
}

/// A folder that is a server's prefix.
impl Folder {
    /// Writes `nginx.conf`. `ADDRESS` in it stands for `address`, `DIR` for this folder.
    pub fn configure(&self, address: &str, globals: &str, http: &str) {
        // Root's worker process would become nobody, who may not read the test's files.
        let user = if is_root() && !globals.contains("user ") { "user root;\n" } else { "" };
        let text = format!("{user}{GLOBALS}{globals}\nhttp {{\naccess_log off;\n{http}\n}}\n");
        self.write("nginx.conf", self.fill(&text, address));
    }

    fn fill(&self, text: &str, address: &str) -> String {
        text.replace("ADDRESS", address).replace("DIR", &self.to_string_lossy())
    }

    /// The number in a pid file, if it exists.
    pub fn pid(&self, file: &str) -> Option<i32> {
        self.read(file).trim().parse().ok()
    }

    /// A link called `nginx` to the program.
    pub fn nginx(&self) -> PathBuf {
        let link = self.join("nginx");
        if !link.exists() {
            symlink(weir().canonicalize().unwrap(), &link).unwrap();
        }
        link
    }

    /// Runs the program called `nginx` to its end.
    pub fn run(&self, arguments: &[&str]) -> Output {
        fs::create_dir_all(self.join("logs")).unwrap();
        let mut command = Command::new(self.nginx());
        command.arg("-p").arg(self).args(["-e", "error.log"]).args(arguments);
        output(command)
    }
}

/// A running server, which is stopped when this is dropped.
#[derive(Debug)]
pub struct TestServer {
    /// Its prefix.
    pub folder: Folder,
    /// The address where it listens; configurations write it as `ADDRESS`.
    pub address: SocketAddr,
    /// Kept so that the address stays this test's.
    _listener: TcpListener,
    child: Running,
}

impl TestServer {
    /// Starts a master with `globals` and an `http {}` that contains `http`. `ADDRESS` stands for
    /// the address where it listens, `DIR` for its folder.
    pub fn start(globals: &str, http: &str) -> Self {
        let server = Self::start_any(&format!("{EVENTS}{globals}"), http);
        server.await_log("start worker process ", 1);
        server
    }

    /// The same, with an `events {}` among `globals`, or without a master.
    pub fn start_any(globals: &str, http: &str) -> Self {
        Self::start_with(|folder, address| folder.configure(address, globals, http))
    }

    /// The same, with a whole configuration; its pid file is `nginx.pid`.
    pub fn start_as(conf: &str) -> Self {
        Self::start_with(|folder, address| {
            folder.write("nginx.conf", folder.fill(conf, address));
        })
    }

    /// The same, with the configuration that `configure` writes for an address.
    pub fn start_with(configure: impl FnOnce(&Folder, &str)) -> Self {
        let (folder, listener) = (Folder::new(), TcpListener::bind("127.0.0.1:0").unwrap());
        let address = listener.local_addr().unwrap();
        configure(&folder, &address.to_string());
        let child = spawn(&folder, listener.try_clone().unwrap().into());
        let server = Self { folder, address, _listener: listener, child };
        server.pid();
        server
    }

    /// Writes another configuration.
    pub fn configure(&self, globals: &str, http: &str) {
        let address = self.address.to_string();
        self.folder.configure(&address, &format!("{EVENTS}{globals}"), http);
    }

    /// The number in the pid file.
    pub fn pid(&self) -> i32 {
        eventually("a pid file", || self.folder.pid("nginx.pid"))
    }

    /// Sends the master a signal: `HUP`.
    pub fn signal(&self, name: &str) {
        kill(self.pid(), name);
    }

    /// The number of the worker process started last.
    pub fn worker_process(&self) -> i32 {
        let started = "start worker process ";
        let log = self.log();
        let line = log.lines().rev().find(|line| line.contains(started)).unwrap();
        line.rsplit(' ').next().unwrap().parse().unwrap()
    }

    /// The error log.
    pub fn log(&self) -> String {
        self.folder.read("error.log")
    }

    /// Waits until the log has `times` lines with these words.
    pub fn await_log(&self, words: &str, times: usize) {
        let count = || self.log().lines().filter(|line| line.contains(words)).count();
        eventually(&format!("{words:?} in the log {times} times"), || {
            (count() >= times).then_some(())
        });
    }

    /// Connects; the connection waits if nothing accepts yet.
    pub fn connect(&self) -> TcpStream {
        connect(&self.address)
    }

    /// The body of a reply to `GET path`, on a connection of its own.
    pub fn get(&self, path: &str) -> String {
        let mut stream = self.connect();
        write!(stream, "GET {path} HTTP/1.0\r\nHost: test\r\n\r\n").unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        body(&reply).to_owned()
    }

    /// Reloads the configuration, and waits until the old worker process has ended.
    pub fn reload(&self) {
        let before = self.log().matches("exited with code 0").count();
        self.signal("HUP");
        self.await_log("exited with code 0", before + 1);
    }

    /// Stops it with a signal, and returns how it ended.
    pub fn stop(mut self, signal: &str) -> Stopped {
        let pid = self.pid();
        kill(pid, signal);
        let status = eventually("the end", || self.child.0.try_wait().unwrap());
        Stopped { status, log: self.log(), pid_file: self.folder.join("nginx.pid").exists() }
    }
}

/// How a server ended.
#[derive(Debug)]
pub struct Stopped {
    /// The status of the process.
    pub status: ExitStatus,
    /// The error log.
    pub log: String,
    /// Whether the pid file was left behind.
    pub pid_file: bool,
}

impl Drop for TestServer {
    #[allow(clippy::print_stderr, reason = "a test may print why it fails")]
    fn drop(&mut self) {
        let Running(child) = &mut self.child;
        if let Ok(None) = child.try_wait() {
            if thread::panicking() {
                eprintln!("{}", self.folder.read("error.log"));
            }
            kill(child.id() as i32, "TERM");
            let end = Instant::now() + PATIENCE;
            while let (Ok(None), true) = (child.try_wait(), Instant::now() < end) {
                thread::sleep(LOOK);
            }
        }
    }
}

/// Starts the program called `nginx` with a listening socket. The shell moves it from standard
/// input to the number that `NGINX` names.
fn spawn(folder: &Folder, socket: OwnedFd) -> Running {
    fs::create_dir_all(folder.join("logs")).unwrap();
    let mut shell = Command::new("sh");
    shell.args(["-c", "exec 3<&0 </dev/null; NGINX='3;' exec \"$0\" \"$@\""]);
    shell.arg(folder.nginx()).arg("-p").arg(folder);
    shell.args(["-c", "nginx.conf", "-e", "error.log"]).stdin(Stdio::from(socket));
    Running(shell.spawn().unwrap())
}
