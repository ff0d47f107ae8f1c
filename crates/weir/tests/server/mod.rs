//! The real program in a directory of its own.
//!
//! Its sockets are bound by the test and handed down as `NGINX=fd;`, so no port is guessed, and a
//! connection can be made before the program is up: it waits in the queue. What happens inside is
//! awaited in the error log.

#![allow(dead_code, reason = "each test file uses what it needs")]
#![allow(clippy::print_stderr, reason = "a test may tell why it fails")]

pub mod backend;
pub mod counting;
pub mod crowd;

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// How long anything may take; a slow machine shared by others is not a failure.
pub const PATIENCE: Duration = Duration::from_secs(20);
/// How often a condition is looked at.
const LOOK: Duration = Duration::from_millis(5);

/// A directory that goes when the test ends.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Self {
        static NUMBERS: AtomicU32 = AtomicU32::new(0);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let name = format!("weir-test-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(path.join("logs")).unwrap();
        // The worker process may be another user.
        let everyone = <fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o777);
        fs::set_permissions(&path, everyone).unwrap();
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.join(name), text).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.join(name)).unwrap_or_default()
    }

    /// Writes `nginx.conf`. `ADDRESS` in it stands for `address`, `DIR` for this directory.
    pub fn configure(&self, address: &str, globals: &str, http: &str) {
        // Root's worker process would become nobody, who may not read the test's files.
        let user = if is_root() && !globals.contains("user ") { "user root;\n" } else { "" };
        let text = format!("{user}{GLOBALS}{globals}\nhttp {{\naccess_log off;\n{http}\n}}\n");
        self.write("nginx.conf", &self.fill(&text, address));
    }

    fn fill(&self, text: &str, address: &str) -> String {
        text.replace("ADDRESS", address).replace("DIR", &self.0.to_string_lossy())
    }

    /// The number in a pid file, if it is there.
    pub fn pid(&self, name: &str) -> Option<i32> {
        self.read(name).trim().parse().ok()
    }

    /// A link called `nginx` to the program.
    pub fn nginx(&self) -> PathBuf {
        let link = self.join("nginx");
        if !link.exists() {
            std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_weir"), &link).unwrap();
        }
        link
    }

    /// Runs the program called `nginx` to its end.
    pub fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(self.nginx());
        command.arg("-p").arg(&self.0).args(["-e", "error.log"]).args(arguments);
        output(command)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What a program that has ended wrote to standard error.
pub fn complaint(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub struct Server {
    pub folder: Folder,
    /// Where it listens; configurations say `ADDRESS`.
    pub address: SocketAddr,
    /// Kept so that the address stays this test's.
    listener: TcpListener,
    child: Child,
}

/// What every configuration begins with.
const GLOBALS: &str = "pid nginx.pid;\nerror_log error.log info;\ndaemon off;\n";
const EVENTS: &str = "events {}\n";

impl Server {
    /// Starts a master with `globals` and an `http {}` that holds `http`. `ADDRESS` in it is where
    /// it listens, `DIR` its directory.
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
            folder.write("nginx.conf", &folder.fill(conf, address));
        })
    }

    /// The same, with whatever `configure` writes for the address where it is to listen.
    pub fn start_with(configure: impl FnOnce(&Folder, &str)) -> Self {
        let folder = Folder::new();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        configure(&folder, &address.to_string());
        let child = spawn(&folder, listener.try_clone().unwrap().into());
        let server = Self { folder, address, listener, child };
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

    pub fn log(&self) -> String {
        self.folder.read("error.log")
    }

    /// Waits until the log has that many lines with these words.
    pub fn await_log(&self, words: &str, times: usize) {
        let count = || self.log().lines().filter(|line| line.contains(words)).count();
        eventually(&format!("{words:?} in the log {times} times"), || {
            (count() >= times).then_some(())
        });
    }

    /// Connects; the connection waits where nobody accepts yet.
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

    /// Reloads what has been configured, and waits until it holds.
    pub fn reload(&self) {
        let before = self.log().matches("exited with code 0").count();
        self.signal("HUP");
        self.await_log("exited with code 0", before + 1);
    }

    /// Ends it, and looks at how it ended.
    pub fn stop(mut self, signal: &str) -> Stopped {
        let pid = self.pid();
        kill(pid, signal);
        let status = eventually("the end", || self.child.try_wait().unwrap());
        Stopped { status, log: self.log(), pid_file: self.folder.join("nginx.pid").exists() }
    }
}

pub struct Stopped {
    pub status: ExitStatus,
    pub log: String,
    pub pid_file: bool,
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            if thread::panicking() {
                eprintln!("{}", self.log());
            }
            kill(self.child.id() as i32, "TERM");
            let end = Instant::now() + PATIENCE;
            while let (Ok(None), true) = (self.child.try_wait(), Instant::now() < end) {
                thread::sleep(LOOK);
            }
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Starts the program called `nginx` with a listening socket. The shell moves it from standard
/// input, where a child can be given anything, to where `NGINX` says that it is.
fn spawn(folder: &Folder, socket: OwnedFd) -> Child {
    Command::new("sh")
        .args(["-c", "exec 3<&0 </dev/null; NGINX='3;' exec \"$0\" \"$@\""])
        .arg(folder.nginx())
        .arg("-p")
        .arg(folder.path())
        .args(["-c", "nginx.conf", "-e", "error.log"])
        .stdin(Stdio::from(socket))
        .spawn()
        .unwrap()
}

/// A program that does not outlive its test.
pub struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a program that says little to its end.
pub fn output(mut command: Command) -> Output {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = Running(command.spawn().unwrap());
    let status = eventually("end of a program", || running.0.try_wait().unwrap());
    let Running(child) = &mut running;
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    child.stdout.take().unwrap().read_to_end(&mut stdout).unwrap();
    child.stderr.take().unwrap().read_to_end(&mut stderr).unwrap();
    Output { status, stdout, stderr }
}

/// A free address that no other test chooses, for a socket that the program opens itself.
pub fn own_address() -> SocketAddr {
    static NEXT: AtomicU8 = AtomicU8::new(1);
    let [_, _, high, low] = std::process::id().to_be_bytes();
    let host = Ipv4Addr::new(127, high | 1, low, NEXT.fetch_add(1, Ordering::Relaxed));
    TcpListener::bind((host, 0)).unwrap().local_addr().unwrap()
}

/// A connection on which nothing is waited for without end.
pub fn connect(address: &SocketAddr) -> TcpStream {
    let stream = TcpStream::connect_timeout(address, PATIENCE).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// What comes of work that may wait.
pub fn in_time<T: Send + 'static>(what: &str, work: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, done) = mpsc::channel();
    thread::spawn(move || sender.send(work()));
    done.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("still no {what}"))
}

pub fn kill(pid: i32, signal: &str) {
    let status = Command::new("kill").args(["-s", signal, &pid.to_string()]).status().unwrap();
    assert!(status.success(), "kill -s {signal} {pid}");
}

pub fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    fs::metadata("/proc/self").unwrap().uid() == 0
}

pub fn body(reply: &str) -> &str {
    reply.split_once("\r\n\r\n").map_or("", |(_, body)| body)
}

/// Waits for something to come true.
pub fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(Instant::now() < end, "still no {what}");
        thread::sleep(LOOK);
    }
}
