//! A Weir that runs while a proof talks to it.
//!
//! Its socket is bound here and handed down as `NGINX=fd;`, so no port is guessed.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::project;

/// How long starting and stopping may take.
const PATIENCE: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(5);

/// A running server in a folder of its own, which goes with it.
pub(crate) struct Running {
    folder: PathBuf,
    /// Where it listens; configurations say `ADDRESS`.
    pub(crate) address: SocketAddr,
    _listener: TcpListener,
    child: Child,
}

impl Running {
    /// Starts the program with `http` inside `http { }`; `ADDRESS` in it is where it listens, `DIR`
    /// its folder.
    pub(crate) fn start(program: &Path, workers: usize, http: &str) -> Result<Self, String> {
        Self::start_with(program, workers, http, "")
    }

    /// The same with further blocks beside `http { }`.
    pub(crate) fn start_with(
        program: &Path,
        workers: usize,
        http: &str,
        beside: &str,
    ) -> Result<Self, String> {
        static NUMBERS: AtomicU32 = AtomicU32::new(0);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let name = format!("weir-proof-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let fail = |err: std::io::Error| format!("{}: {err}", folder.display());
        fs::create_dir_all(folder.join("logs")).map_err(fail)?;
        // The worker process may be another user.
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).map_err(fail)?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(fail)?;
        // nginx takes that for granted: of two workers the second would wait in accept().
        listener.set_nonblocking(true).map_err(fail)?;
        let address = listener.local_addr().map_err(fail)?;
        write_conf(&folder, address, workers, &[http, beside]).map_err(fail)?;
        let socket: OwnedFd = listener.try_clone().map_err(fail)?.into();
        let child = spawn(program, &folder, socket).map_err(fail)?;
        let running = Self { folder, address, _listener: listener, child };
        running.await_log("start worker process ", 1)?;
        Ok(running)
    }

    /// The process of the master.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends the master a signal.
    pub(crate) fn signal(&self, name: &str) -> Result<(), String> {
        let pid = self.child.id().to_string();
        project::succeed(Command::new("kill").args(["-s", name, &pid]))
    }

    pub(crate) fn log(&self) -> String {
        self.read("error.log")
    }

    /// Where a file of its folder is.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// A file of its folder; empty where there is none.
    pub(crate) fn read(&self, name: &str) -> String {
        let bytes = fs::read(self.folder.join(name)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn await_log(&self, words: &str, times: usize) -> Result<(), String> {
        let end = Instant::now() + PATIENCE;
        while self.log().matches(words).count() < times {
            if Instant::now() > end {
                return Err(format!("no \"{words}\" in the log:\n{}", self.log()));
            }
            thread::sleep(LOOK);
        }
        Ok(())
    }
}

fn write_conf(
    folder: &Path,
    address: SocketAddr,
    workers: usize,
    [http, beside]: &[&str; 2],
) -> std::io::Result<()> {
    let user = if is_root() { "user root;" } else { "" };
    let text = format!(
        "{user} daemon off; pid nginx.pid; error_log error.log notice;\n\
         worker_processes {workers};\nevents {{ }}\n\
         http {{\naccess_log off;\n{http}\n}}\n{beside}\n"
    );
    let text = text.replace("ADDRESS", &address.to_string());
    fs::write(folder.join("nginx.conf"), text.replace("DIR", &folder.to_string_lossy()))
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    fs::metadata("/proc/self").is_ok_and(|meta| meta.uid() == 0)
}

/// The shell moves the socket from standard input to where `NGINX` says that it is.
fn spawn(program: &Path, folder: &Path, socket: OwnedFd) -> std::io::Result<Child> {
    let link = folder.join("nginx");
    std::os::unix::fs::symlink(program.canonicalize()?, &link)?;
    Command::new("sh")
        .args(["-c", "exec 3<&0 </dev/null; NGINX='3;' exec \"$0\" \"$@\""])
        .arg(link)
        .arg("-p")
        .arg(folder)
        .args(["-c", "nginx.conf", "-e", "error.log"])
        .stdin(Stdio::from(socket))
        .spawn()
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.signal("TERM");
        let end = Instant::now() + PATIENCE;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < end {
            thread::sleep(LOOK);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}
