//! `xtask backends`: Weir before real servers, asked by real clients.
//!
//! The servers are programs of `conformance/backends`, an entry here each. Who lacks what one needs
//! is told so and goes on without it. Nothing is measured, and every transfer is bounded in time.

mod checks;
mod notes;
mod php;
pub(crate) mod program;

use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::args::Args;
use crate::running::Running;
use crate::{packages, php_fpm, project};
use checks::BackendCheck;
use notes::Notes;
use program::RunningBackend;

pub(crate) const HELP: &str = "real servers behind Weir, real clients before it

Usage: cargo xtask backends [--weir PATH] [--only NAME] [--megabytes N] [--strict]

  --weir PATH     the program under test; built where none is named
  --only NAME     this server alone
  --megabytes N   how large a download is, 1024 unless given; uploads are a tenth of it
  --strict        what is skipped is a failure
";

/// A server, and how it is built and started.
struct BackendProgram {
    name: &'static str,
    /// The folder in `conformance/backends`.
    folder: &'static str,
    /// What has to be installed on the machine.
    programs: &'static [&'static str],
    /// Run once in a copy of the folder.
    install: &'static [&'static str],
    command: &'static [&'static str],
    http: bool,
    /// Whether ranges are its own; else Weir cuts them out.
    ranges: bool,
    websockets: bool,
}

const SERVERS: &[BackendProgram] = &[
    BackendProgram {
        name: "node",
        folder: "node",
        programs: &["node", "npm"],
        install: &["npm install --silent --no-audit --no-fund"],
        command: &["node", "server.js"],
        http: true,
        ranges: false,
        websockets: true,
    },
    BackendProgram {
        name: "python",
        folder: "python",
        programs: &["python3"],
        install: &[],
        command: &["python3", "server.py"],
        http: true,
        ranges: false,
        websockets: false,
    },
    BackendProgram {
        name: "websockets",
        folder: "python",
        programs: &["python3"],
        install: &[PIP],
        command: &["python3", "websocket.py"],
        http: false,
        ranges: false,
        websockets: true,
    },
    BackendProgram {
        name: "go",
        folder: "go",
        programs: &["go"],
        install: &["go build -o backend ."],
        command: &["./backend"],
        http: true,
        ranges: true,
        websockets: true,
    },
    BackendProgram {
        name: "tomcat",
        folder: "tomcat",
        programs: &["java", "javac", "mvn"],
        install: &[
            "mvn -q -B dependency:copy-dependencies -DoutputDirectory=lib",
            "javac -cp 'lib/*' -d classes Backend.java",
        ],
        command: &["java", "-cp", "classes:lib/*", "Backend"],
        http: true,
        ranges: true,
        websockets: true,
    },
];

const PIP: &str = "python3 -m pip install -q --target lib -r requirements.txt";

/// The clients of WebSockets, in folders of their own.
const CLIENTS: &[BackendProgram] = &[
    BackendProgram {
        name: "client-ws",
        folder: "node",
        programs: &["node", "npm"],
        install: &["npm install --silent --no-audit --no-fund"],
        command: &["node", "client.js"],
        http: false,
        ranges: false,
        websockets: false,
    },
    BackendProgram {
        name: "client-websockets",
        folder: "python",
        programs: &["python3"],
        install: &[PIP],
        command: &["python3", "client.py"],
        http: false,
        ranges: false,
        websockets: false,
    },
];

/// Runs every server; an error says which did not do what.
pub(crate) fn run(words: &[String]) -> Result<(), String> {
    let mut args = Args::new(words);
    let weir = args.option("--weir")?.map(PathBuf::from);
    let only = args.option("--only")?;
    let megabytes = args.parsed("--megabytes", 1024)?;
    let strict = args.flag("--strict");
    args.end()?;
    let weir = weir.map_or_else(|| project::debug("weir"), Ok)?;
    let (mut failed, mut skipped) = (Vec::new(), Vec::new());
    let clients = prepare_all(CLIENTS.iter(), &mut skipped);
    let wanted = |server: &&BackendProgram| only.as_deref().is_none_or(|name| name == server.name);
    let servers = prepare_all(SERVERS.iter().filter(wanted), &mut skipped);
    for (server, folder) in &servers {
        let begun = Instant::now();
        let done = play(server, folder, &clients, &weir, megabytes << 20);
        report(server.name, begun, done, &mut failed);
    }
    let is_php_wanted = only.as_deref().is_none_or(|name| name == PHP);
    let has_php = is_php_wanted && php_is_there(&mut skipped);
    if has_php {
        let begun = Instant::now();
        report(PHP, begun, php::play(&weir, megabytes << 20), &mut failed);
    }
    if strict {
        failed.extend(skipped);
    }
    if servers.is_empty() && !has_php && failed.is_empty() {
        println!("no server could be started, so nothing was checked");
    }
    if failed.is_empty() { Ok(()) } else { Err(failed.join("\n")) }
}

/// The server that is started in its own way.
const PHP: &str = "php";

fn php_is_there(skipped: &mut Vec<String>) -> bool {
    match php_fpm::program() {
        Ok(_) => true,
        Err(why) => {
            println!("{PHP:11} skipped: {why}");
            skipped.push(format!("{PHP}: skipped: {why}"));
            false
        }
    }
}

fn report(name: &str, begun: Instant, done: Result<Vec<String>, String>, failed: &mut Vec<String>) {
    match done {
        Ok(done) => {
            let seconds = begun.elapsed().as_secs_f64();
            println!("{name:11} ok ({seconds:.1} s): {}", done.join(", "));
        }
        Err(why) => failed.push(format!("{name}: {why}")),
    }
}

type PreparedPrograms<'a> = Vec<(&'a BackendProgram, PathBuf)>;

/// Those whose programs and libraries are there; the others are told of.
fn prepare_all<'a>(
    servers: impl Iterator<Item = &'a BackendProgram>,
    skipped: &mut Vec<String>,
) -> PreparedPrograms<'a> {
    let mut ready = Vec::new();
    for server in servers {
        match prepare(server) {
            Ok(folder) => ready.push((server, folder)),
            Err(why) => {
                println!("{:11} skipped: {why}", server.name);
                skipped.push(format!("{}: skipped: {why}", server.name));
            }
        }
    }
    ready
}

fn prepare(server: &BackendProgram) -> Result<PathBuf, String> {
    if let Some(absent) = server.programs.iter().find(|name| packages::find(name).is_none()) {
        return Err(format!("{absent} is not installed"));
    }
    let source = project::root().join("conformance/backends").join(server.folder);
    program::prepare(&source, server.name, server.install)
}

fn configuration(port: u16) -> String {
    format!(
        "upstream u {{ server 127.0.0.1:{port}; keepalive 4; }}
         map $http_upgrade $connection_upgrade {{ default upgrade; '' ''; }}
         server {{
             listen ADDRESS;
             client_max_body_size 0;
             proxy_http_version 1.1;
             proxy_set_header Host $http_host;
             proxy_set_header Upgrade $http_upgrade;
             proxy_set_header Connection $connection_upgrade;
             location / {{ proxy_pass http://u; }}
             location /streamed/ {{
                 proxy_buffering off;
                 proxy_request_buffering off;
                 proxy_pass http://u/;
             }}
             location /forced/ {{ proxy_force_ranges on; proxy_pass http://u/; }}
         }}"
    )
}

fn play(
    server: &BackendProgram,
    folder: &Path,
    clients: &PreparedPrograms<'_>,
    weir: &Path,
    bytes: u64,
) -> Result<Vec<String>, String> {
    let backend = RunningBackend::start(server.command, folder)?;
    let running = Running::start(weir, 2, &configuration(backend.port))?;
    let check = BackendCheck { address: running.address, bytes };
    let mut notes = Notes::new();
    if server.http {
        let ranges = if server.ranges { "/range" } else { "/forced/range" };
        check.in_every_way(ranges, &mut notes)?;
    }
    if server.websockets {
        let url = format!("ws://{}/ws", running.address);
        for (client, folder) in clients {
            notes.note(client.name, program::finish(client.command, &url, folder))?;
        }
    }
    Ok(notes.done)
}
