//! `xtask takeover`: Weir takes over from a running nginx and gives back, under load.
//!
//! What is typed is what docs/moving-from-nginx.md says: its marked commands are run as they stand,
//! with the paths of the installation replaced by those of a folder. No request may fail.

mod client;
mod commands;

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::args::Args;
use crate::project;
use client::ClientTotals;
use commands::Commands;

pub(crate) const HELP: &str = "prove that Weir takes over from nginx and gives back, losing nothing

Usage: cargo xtask takeover [--weir PATH] [--nginx PATH] [--times N]

  --weir PATH   the program under test; built where none is named
  --nginx PATH  the nginx, /usr/sbin/nginx unless given
  --times N     how often there and back, once unless given

The commands are those of docs/moving-from-nginx.md.
";

/// Debian's.
const NGINX: &str = "/usr/sbin/nginx";
/// How long a step may take.
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(10);
/// Requests that are made between two steps.
const REQUESTS_BETWEEN: usize = 200;

const KEPT_CONNECTIONS: usize = 8;
const NEW_CONNECTIONS: usize = 8;
/// Bytes of the slow download, at a quarter of it a second.
const DOWNLOAD_BYTES: usize = 1 << 20;

/// Runs the proof; an error says what failed.
pub(crate) fn run(words: &[String]) -> Result<(), String> {
    let mut args = Args::new(words);
    let weir = args.option("--weir")?.map(PathBuf::from);
    let nginx = args.option("--nginx")?.map_or_else(|| NGINX.into(), PathBuf::from);
    let times: usize = args.parsed("--times", 1)?;
    args.end()?;
    let weir = weir.map_or_else(|| project::debug("weir"), Ok)?;
    let commands = Commands::read(&project::root().join("docs/moving-from-nginx.md"))?;
    let site = NginxInstallation::start(&weir, &nginx)?;
    let tally = ClientTotals::default();
    thread::scope(|scope| {
        for _ in 0..KEPT_CONNECTIONS {
            scope.spawn(|| client::ask_on(site.address, &tally, true));
        }
        for _ in 0..NEW_CONNECTIONS {
            scope.spawn(|| client::ask_on(site.address, &tally, false));
        }
        let result = (0..times).try_for_each(|_| {
            site.given_up(&commands, &tally)?;
            site.there_and_back(&commands, &tally)
        });
        tally.end();
        result
    })?;
    tally.report(times, &site.log())
}

/// An installation of nginx in a folder, which serves.
struct NginxInstallation {
    folder: PathBuf,
    address: SocketAddr,
    /// Kept, so that the address is nobody else's.
    _listener: TcpListener,
}

impl NginxInstallation {
    fn start(weir: &Path, nginx: &Path) -> Result<Self, String> {
        let folder = std::env::temp_dir().join(format!("weir-takeover-{}", std::process::id()));
        let fail = |err: std::io::Error| format!("{}: {err}", folder.display());
        for name in ["sbin", "logs", "html"] {
            fs::create_dir_all(folder.join(name)).map_err(fail)?;
        }
        fs::copy(nginx, folder.join("sbin/nginx")).map_err(fail)?;
        fs::copy(weir, folder.join("sbin/weir")).map_err(fail)?;
        fs::write(folder.join("html/index.html"), "a page\n").map_err(fail)?;
        fs::write(folder.join("html/large.bin"), vec![b'x'; DOWNLOAD_BYTES]).map_err(fail)?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(fail)?;
        listener.set_nonblocking(true).map_err(fail)?;
        let address = listener.local_addr().map_err(fail)?;
        fs::write(folder.join("nginx.conf"), configuration(&folder, address)).map_err(fail)?;
        let socket: OwnedFd = listener.try_clone().map_err(fail)?.into();
        let site = Self { folder, address, _listener: listener };
        site.spawn(socket)?;
        site.await_server(NGINX_ITSELF)?;
        Ok(site)
    }

    /// Starts nginx with its listening socket, by its whole path as a service manager does. With a
    /// socket it stays in the foreground, and while its parent lives it refuses to be replaced: the
    /// shell goes as soon as it runs.
    fn spawn(&self, socket: OwnedFd) -> Result<(), String> {
        let mut shell = Command::new("sh");
        let start = "exec 3<&0 </dev/null; NGINX='3;' \"$0\" \"$@\" & \
                     until [ -s \"$2/nginx.pid\" ]; do kill -0 $! || exit 1; sleep 0.05; done";
        shell.args(["-c", start]);
        shell.arg(self.folder.join("sbin/nginx")).arg("-p").arg(&self.folder);
        shell.args(["-c", "nginx.conf", "-e", "error.log"]).stdin(Stdio::from(socket));
        project::succeed(&mut shell)
    }

    /// A takeover that is undone while the old master still waits.
    fn given_up(&self, commands: &Commands, tally: &ClientTotals) -> Result<(), String> {
        self.step(commands, "takeover", tally)?;
        self.await_masters(2)?;
        self.step(commands, "old workers stop", tally)?;
        self.await_server(WEIR)?;
        self.step(commands, "give up", tally)?;
        self.await_masters(1)?;
        self.await_server(NGINX_ITSELF)
    }

    fn there_and_back(&self, commands: &Commands, tally: &ClientTotals) -> Result<(), String> {
        let download = client::download(self.address, DOWNLOAD_BYTES);
        self.step(commands, "takeover", tally)?;
        self.await_masters(2)?;
        self.step(commands, "old workers stop", tally)?;
        self.await_server(WEIR)?;
        self.step(commands, "old master ends", tally)?;
        self.await_masters(1)?;
        download.join().map_err(|_| "the download panicked")?.map_err(|err| err.to_string())?;
        tally.await_requests(REQUESTS_BETWEEN)?;

        let download = client::download(self.address, DOWNLOAD_BYTES);
        self.step(commands, "way back", tally)?;
        self.await_masters(2)?;
        self.step(commands, "weir ends", tally)?;
        self.await_masters(1)?;
        self.await_server(NGINX_ITSELF)?;
        download.join().map_err(|_| "the download panicked")?.map_err(|err| err.to_string())?;
        tally.await_requests(REQUESTS_BETWEEN)
    }

    /// Types the commands of one step, each once requests have been made since the last.
    fn step(&self, commands: &Commands, step: &str, tally: &ClientTotals) -> Result<(), String> {
        tally.await_requests(REQUESTS_BETWEEN)?;
        for line in commands.of(step)? {
            let here = commands::here(line, &self.folder);
            println!("$ {line}");
            project::output(Command::new("sh").args(["-c", &here]))?;
        }
        Ok(())
    }

    /// Waits for one master, or for both.
    fn await_masters(&self, count: usize) -> Result<(), String> {
        let both = || self.pid("nginx.pid").is_some() && self.pid("nginx.pid.oldbin").is_some();
        let one = || self.pid("nginx.pid").is_some() && self.pid("nginx.pid.oldbin").is_none();
        eventually(|| if count == 2 { both() } else { one() })
            .ok_or_else(|| format!("not {count} masters after {PATIENCE:?}\n{}", self.log()))
    }

    /// Waits until new connections are answered by this program alone.
    fn await_server(&self, server: &str) -> Result<(), String> {
        let answers =
            || (0..8).all(|_| client::server(self.address).is_some_and(|s| s.starts_with(server)));
        eventually(answers)
            .ok_or_else(|| format!("no \"{server}\" after {PATIENCE:?}\n{}", self.log()))
    }

    fn pid(&self, name: &str) -> Option<String> {
        let text = fs::read_to_string(self.folder.join(name)).ok()?;
        Some(text.trim().to_owned()).filter(|pid| !pid.is_empty())
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.join("error.log")).unwrap_or_default()
    }
}

/// What Weir calls itself through a link named `nginx`.
const WEIR: &str = "nginx/1.31";
/// What the nginx that is replaced calls itself: Debian 12's, 13's.
const NGINX_ITSELF: &str = "nginx/1.2";

impl Drop for NginxInstallation {
    fn drop(&mut self) {
        for name in ["nginx.pid", "nginx.pid.oldbin"] {
            if let Some(pid) = self.pid(name) {
                let _ = Command::new("kill").args(["-s", "TERM", &pid]).status();
            }
        }
        let gone = || self.pid("nginx.pid").is_none() && self.pid("nginx.pid.oldbin").is_none();
        let _ = eventually(gone);
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn configuration(folder: &Path, address: SocketAddr) -> String {
    let folder = folder.display();
    format!(
        "worker_processes 2;
         pid {folder}/nginx.pid;
         error_log {folder}/error.log notice;
         events {{ }}
         http {{
             access_log {folder}/logs/access.log;
             client_body_temp_path {folder}/body;
             proxy_temp_path {folder}/proxy;
             server {{
                 listen {address};
                 root {folder}/html;
                 location = /large.bin {{ limit_rate 256k; }}
                 location = /text {{ return 200 \"a text\\n\"; }}
             }}
         }}\n"
    )
}

/// Whether it came true in time.
fn eventually(mut look: impl FnMut() -> bool) -> Option<()> {
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        if look() {
            return Some(());
        }
        thread::sleep(LOOK);
    }
    None
}
