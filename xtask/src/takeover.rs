//! `xtask takeover`: Weir takes over from a running nginx and gives back, as
//! docs/moving-from-nginx.md says.
//!
//! Once under load: the commands of the takeover are run with the paths of the installation
//! replaced by those of a folder, and no request may fail. And once in a Debian root of its own,
//! where every command of the page is typed as it stands (`page`).

mod client;
mod commands;
mod debian_root;
mod masters;
mod page;
mod patience;
mod probes;
mod sites;

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use crate::args::Args;
use crate::project;
use client::ClientTotals;
use commands::Commands;
use masters::{Masters, NGINX_ITSELF, WEIR};
use patience::eventually;

pub(crate) const HELP: &str = "prove that Weir takes over from nginx and gives back, losing nothing

Usage: cargo xtask takeover [--weir PATH] [--nginx PATH] [--times N] [--only load|page]

  --weir PATH   the program under test; built where none is named
  --nginx PATH  the nginx, /usr/sbin/nginx unless given
  --times N     how often there and back under load, once unless given
  --only PART   load: the takeover, with clients that ask without a pause; page: every command of
                docs/moving-from-nginx.md in a Debian root with all modules of nginx and four sites,
                which takes root, Debian and its packages, and leaves nothing behind
";

/// Debian's.
const NGINX: &str = "/usr/sbin/nginx";
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
    let only = args.option("--only")?;
    // How this program is started in the root.
    let in_root = args.flag("--in-root");
    args.end()?;
    if in_root {
        return page::run();
    }
    let (load, page) = match only.as_deref() {
        None => (true, true),
        Some("load") => (true, false),
        Some("page") => (false, true),
        Some(part) => return Err(format!("--only \"{part}\": there are load and page")),
    };
    let weir = weir.map_or_else(|| project::debug("weir"), Ok)?;
    if load {
        under_load(&weir, &nginx, times)?;
    }
    if page && let Some(why) = follow_page(&weir)? {
        println!("the page's commands were skipped: {why}");
    }
    Ok(())
}

/// Types every command of the page; `Some`: why that is not possible here.
pub(crate) fn follow_page(weir: &Path) -> Result<Option<String>, String> {
    debian_root::run(weir)
}

fn under_load(weir: &Path, nginx: &Path, times: usize) -> Result<(), String> {
    let commands = Commands::read(&project::root().join("docs/moving-from-nginx.md"))?;
    let site = NginxInstallation::start(weir, nginx)?;
    let tally = ClientTotals::default();
    thread::scope(|scope| {
        for _ in 0..KEPT_CONNECTIONS {
            scope.spawn(|| client::ask_on(site.masters.address, &tally, true));
        }
        for _ in 0..NEW_CONNECTIONS {
            scope.spawn(|| client::ask_on(site.masters.address, &tally, false));
        }
        let result = (0..times).try_for_each(|_| {
            site.given_up(&commands, &tally)?;
            site.there_and_back(&commands, &tally)
        });
        tally.end();
        result
    })?;
    tally.report(times, &site.masters.log())
}

/// An installation of nginx in a folder, which serves.
struct NginxInstallation {
    folder: PathBuf,
    masters: Masters,
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
        let error_log = folder.join("error.log");
        let masters = Masters { run: folder.clone(), error_log, address };
        let site = Self { folder, masters, _listener: listener };
        site.spawn(socket)?;
        site.masters.await_server(NGINX_ITSELF)?;
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
        self.masters.await_count(2)?;
        self.step(commands, "old workers stop", tally)?;
        self.masters.await_server(WEIR)?;
        self.step(commands, "give up", tally)?;
        self.masters.await_count(1)?;
        self.masters.await_server(NGINX_ITSELF)
    }

    fn there_and_back(&self, commands: &Commands, tally: &ClientTotals) -> Result<(), String> {
        let download = client::download(self.masters.address, DOWNLOAD_BYTES);
        self.step(commands, "takeover", tally)?;
        self.masters.await_count(2)?;
        self.step(commands, "old workers stop", tally)?;
        self.masters.await_server(WEIR)?;
        self.step(commands, "old master ends", tally)?;
        self.masters.await_count(1)?;
        download.join().map_err(|_| "the download panicked")?.map_err(|err| err.to_string())?;
        tally.await_requests(REQUESTS_BETWEEN)?;

        let download = client::download(self.masters.address, DOWNLOAD_BYTES);
        self.step(commands, "way back", tally)?;
        self.masters.await_count(2)?;
        self.step(commands, "weir ends", tally)?;
        self.masters.await_count(1)?;
        self.masters.await_server(NGINX_ITSELF)?;
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
}

impl Drop for NginxInstallation {
    fn drop(&mut self) {
        for name in ["nginx.pid", "nginx.pid.oldbin"] {
            if let Some(pid) = self.masters.pid(name) {
                let _ = Command::new("kill").args(["-s", "TERM", &pid]).status();
            }
        }
        let gone = || {
            self.masters.pid("nginx.pid").is_none()
                && self.masters.pid("nginx.pid.oldbin").is_none()
        };
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
