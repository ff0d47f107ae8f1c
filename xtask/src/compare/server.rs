//! One server under comparison: its folder, its process, its logs.

use std::ffi::OsString;
use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime};

use super::backend::{self, ScriptedBackends};
use super::case::{Case, CaseFile};
use super::client;
use super::place::ServerEnvironment;

/// How many ports a configuration may use.
const PORTS: usize = 4;

/// Every file is from Tue, 14 Nov 2023 22:13:20 GMT unless the case says otherwise.
const MTIME: u64 = 1_700_000_000;

/// Somebody else may take a port between its choice and the server's `listen`.
const STARTS_MAX: usize = 5;

const START_MAX: Duration = Duration::from_secs(10);
const STOP_MAX: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(5);

pub(super) struct ComparedProgram {
    path: PathBuf,
    /// What it says of itself.
    pub(super) version: String,
    /// What it needs in `http { }` beside the case.
    extra: &'static str,
}

impl ComparedProgram {
    /// The reference. Debian's nginx makes the folders of modules that no case uses; without these
    /// lines it would need to be root for that.
    pub(super) fn reference(path: &Path) -> Result<ComparedProgram, String> {
        const EXTRA: &str = "proxy_temp_path %%DIR%%/temp; fastcgi_temp_path %%DIR%%/temp; \
            uwsgi_temp_path %%DIR%%/temp; scgi_temp_path %%DIR%%/temp;";
        Ok(ComparedProgram { path: path.into(), version: version(path)?, extra: EXTRA })
    }

    /// The program under test, which answers as nginx does where it is called nginx.
    pub(super) fn under_test(path: &Path, dir: &Path) -> Result<ComparedProgram, String> {
        let fail = |e: std::io::Error| format!("{}: {e}", path.display());
        let link = dir.join("nginx");
        fs::create_dir_all(dir).map_err(fail)?;
        std::os::unix::fs::symlink(path.canonicalize().map_err(fail)?, &link).map_err(fail)?;
        Ok(ComparedProgram { version: version(&link)?, path: link, extra: "" })
    }
}

fn version(program: &Path) -> Result<String, String> {
    let output = Command::new(program).arg("-v").output();
    let output = output.map_err(|e| format!("{}: {e}", program.display()))?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let version = text.split_once("nginx/").and_then(|(_, rest)| rest.split_whitespace().next());
    let version = version.ok_or_else(|| format!("{} -v says \"{text}\"", program.display()))?;
    Ok(version.into())
}

pub(super) struct ComparedServer {
    child: Child,
    dir: PathBuf,
    pub(super) place: ServerEnvironment,
    pub(super) backends: ScriptedBackends,
}

impl ComparedServer {
    /// Starts `program` with the configuration and the files of `case` in the new folder `dir`.
    pub(super) fn start(
        program: &ComparedProgram,
        case: &Case,
        dir: &Path,
    ) -> Result<ComparedServer, String> {
        fill(dir, case).map_err(|e| format!("{}: {e}", dir.display()))?;
        let mut failure = String::new();
        for _ in 0..STARTS_MAX {
            match ComparedServer::try_start(program, case, dir) {
                Err(e) if e.contains("Address already in use") => failure = e,
                done => return done,
            }
        }
        Err(failure)
    }

    fn try_start(
        program: &ComparedProgram,
        case: &Case,
        dir: &Path,
    ) -> Result<ComparedServer, String> {
        let fail = |e: std::io::Error| format!("{}: {e}", program.path.display());
        let text = dir.to_string_lossy().into_owned();
        let sockets = sockets(PORTS + backend::PORTS).map_err(fail)?;
        let mut ports: Vec<u16> = sockets.iter().map(|(_, port)| *port).collect();
        let backends = ports.split_off(PORTS);
        let listeners = sockets.into_iter().skip(PORTS).map(|(listener, _)| listener);
        let mut place = ServerEnvironment::new(text, ports, program.version.clone());
        place.backends = backends;
        let backends = ScriptedBackends::start(listeners.collect(), dir).map_err(fail)?;
        let conf = dir.join("nginx.conf");
        fs::write(&conf, place.filled(configuration(program, case).as_bytes())).map_err(fail)?;
        let stderr = File::create(dir.join("stderr")).map_err(fail)?;
        let child = Command::new(&program.path)
            .args([Path::new("-p"), dir, Path::new("-c"), &conf])
            .args([Path::new("-e"), &dir.join("error.log")])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(stderr)
            .spawn()
            .map_err(fail)?;
        let mut server = ComparedServer { child, dir: dir.into(), place, backends };
        server.wait_until_up()?;
        Ok(server)
    }

    fn wait_until_up(&mut self) -> Result<(), String> {
        let deadline = Instant::now() + START_MAX;
        // The pid file is there only once every port is bound: without it, what answers on the port
        // may be somebody else.
        let pid = self.dir.join("nginx.pid");
        while !pid.exists() || client::pass_through(self.place.ports[0]).is_err() {
            if self.child.try_wait().is_ok_and(|status| status.is_some()) {
                return Err(format!("does not start:\n{}", self.complaints()));
            }
            if Instant::now() > deadline {
                return Err(format!("does not accept in {START_MAX:?}:\n{}", self.complaints()));
            }
            std::thread::sleep(POLL);
        }
        Ok(())
    }

    fn complaints(&self) -> String {
        let read = |name| fs::read(self.dir.join(name)).unwrap_or_default();
        String::from_utf8_lossy(&[read("stderr"), read("error.log")].concat()).into_owned()
    }

    /// Stops the server; returns what it logged, and what it found wrong with itself.
    pub(super) fn stop(mut self) -> (Vec<LogLine>, Vec<String>) {
        let status = self.quit();
        let mut wrong = match status {
            Some(status) if status.success() => vec![],
            Some(status) => vec![format!("exit: {status}")],
            None => vec![format!("does not stop in {STOP_MAX:?}")],
        };
        let complaints = self.complaints();
        let grave = |line: &&str| line.contains("[alert]") || line.contains("[emerg]");
        wrong.extend(complaints.lines().filter(grave).map(str::to_owned));
        (read_logs(&self.dir.join("logs")), wrong)
    }

    /// QUIT, so that a connection whose end is still under way is logged before the server goes.
    fn quit(&mut self) -> Option<ExitStatus> {
        if let Ok(Some(status)) = self.child.try_wait() {
            return Some(status);
        }
        let kill = format!("kill -QUIT {}", self.child.id());
        let _ = Command::new("sh").args(["-c", &kill]).status();
        let deadline = Instant::now() + STOP_MAX;
        while Instant::now() < deadline {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status);
            }
            std::thread::sleep(POLL);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        None
    }
}

impl Drop for ComparedServer {
    fn drop(&mut self) {
        self.quit();
    }
}

/// The client's port leads every line of the log, so that each finds its request.
fn configuration(program: &ComparedProgram, case: &Case) -> String {
    format!(
        r#"daemon off;
worker_processes 1;
pid %%DIR%%/nginx.pid;
error_log %%DIR%%/error.log;
events {{ }}
http {{
    log_format compare '$remote_port $remote_addr - $remote_user [$time_local] '
                       '"$request" $status $body_bytes_sent "$http_referer" "$http_user_agent"';
    access_log %%DIR%%/logs/access.log compare;
    client_body_temp_path %%DIR%%/temp;
{}
{}
}}
"#,
        program.extra, case.config
    )
}

/// The ports of servers under comparison: of five digits, so that lengths agree, and below those
/// that the system gives to clients, which would take them from a server that is about to listen.
const PORTS_FROM: u16 = 10_000;
const PORTS_TO: u16 = 32_000;

/// Sockets on ports that no other server has; none that a case could mean as a number of its own.
/// Whoever is to listen on one drops its socket first.
fn sockets(count: usize) -> std::io::Result<Vec<(TcpListener, u16)>> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // Another run begins elsewhere.
    let start = std::process::id().wrapping_mul(977);
    let mut sockets = Vec::new();
    while sockets.len() < count {
        let number = start.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = PORTS_FROM + (number % u32::from(PORTS_TO - PORTS_FROM)) as u16;
        match TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            Ok(listener) if !port.is_multiple_of(100) => sockets.push((listener, port)),
            Err(error) if error.kind() != std::io::ErrorKind::AddrInUse => return Err(error),
            _ => {}
        }
    }
    Ok(sockets)
}

fn fill(dir: &Path, case: &Case) -> std::io::Result<()> {
    let at = |path: &[u8]| dir.join(std::ffi::OsStr::from_bytes(path));
    fs::create_dir_all(dir.join("logs"))?;
    for entry in &case.files {
        match entry {
            CaseFile::File(path, content) => make_file(&at(path), content)?,
            CaseFile::Folder(path) => fs::create_dir_all(at(path))?,
            CaseFile::Link(path, target) => {
                make_parent(&at(path))?;
                std::os::unix::fs::symlink(std::ffi::OsStr::from_bytes(target), at(path))?;
            }
            CaseFile::Mode(..) | CaseFile::Mtime(..) => {}
        }
    }
    set_mtimes(dir)?;
    for entry in &case.files {
        match entry {
            CaseFile::Mtime(mtime, path) => set_mtime(&at(path), *mtime)?,
            CaseFile::Mode(mode, path) => set_mode(&at(path), *mode)?,
            _ => {}
        }
    }
    // A worker that is not root opens logs with variables in their path itself.
    set_mode(&dir.join("logs"), 0o777)
}

fn make_file(path: &Path, content: &[u8]) -> std::io::Result<()> {
    make_parent(path)?;
    fs::write(path, content)
}

fn make_parent(path: &Path) -> std::io::Result<()> {
    path.parent().map_or(Ok(()), fs::create_dir_all)
}

fn set_mtimes(dir: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        match entry.file_type()? {
            kind if kind.is_dir() => set_mtimes(&entry.path())?,
            kind if kind.is_symlink() => touch_link(&entry.path())?,
            _ => set_mtime(&entry.path(), MTIME)?,
        }
    }
    set_mtime(dir, MTIME)
}

fn set_mtime(path: &Path, seconds: u64) -> std::io::Result<()> {
    File::open(path)?.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
}

/// What `std` cannot do: the time of the link itself, which autoindex shows where it leads nowhere.
fn touch_link(path: &Path) -> std::io::Result<()> {
    let time = format!("@{MTIME}");
    let status = Command::new("touch").args(["-h", "-d", &time]).arg(path).status()?;
    if status.success() { Ok(()) } else { Err(std::io::Error::other("touch -h fails")) }
}

fn set_mode(path: &Path, mode: u32) -> std::io::Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

/// A line that a server wrote to a file under `logs`.
pub(super) struct LogLine {
    pub(super) file: String,
    /// The line, without its end.
    pub(super) text: Vec<u8>,
}

fn read_logs(dir: &Path) -> Vec<LogLine> {
    let names = fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let mut names: Vec<OsString> = names.collect();
    names.sort();
    let mut lines = Vec::new();
    for name in names {
        let text = fs::read(dir.join(&name)).unwrap_or_default();
        let file = name.to_string_lossy();
        let log_line = |line: &[u8]| LogLine {
            file: file.clone().into_owned(),
            text: line.strip_suffix(b"\n").unwrap_or(line).to_vec(),
        };
        lines.extend(text.split_inclusive(|&b| b == b'\n').map(log_line));
    }
    lines
}
