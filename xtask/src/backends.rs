//! `xtask backends`: Weir before real servers, asked by real clients.
//!
//! The servers are programs of `conformance/backends`, an entry here each. Who lacks what one needs
//! is told so and goes on without it. Nothing is measured, and every transfer is bounded in time.

mod checks;
pub(crate) mod program;

use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::args::Args;
use crate::running::Running;
use crate::{packages, project};
use checks::BackendCheck;
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
        match play(server, folder, &clients, &weir, megabytes << 20) {
            Ok(done) => {
                let seconds = begun.elapsed().as_secs_f64();
                println!("{:11} ok ({seconds:.1} s): {}", server.name, done.join(", "));
            }
            Err(why) => failed.push(format!("{}: {why}", server.name)),
        }
    }
    if strict {
        failed.extend(skipped);
    }
    if servers.is_empty() && failed.is_empty() {
        println!("no server could be started, so nothing was checked");
    }
    if failed.is_empty() { Ok(()) } else { Err(failed.join("\n")) }
}

type Prepared<'a> = Vec<(&'a BackendProgram, PathBuf)>;

/// Those whose programs and libraries are there; the others are told of.
fn prepare_all<'a>(
    servers: impl Iterator<Item = &'a BackendProgram>,
    skipped: &mut Vec<String>,
) -> Prepared<'a> {
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
    clients: &Prepared<'_>,
    weir: &Path,
    bytes: u64,
) -> Result<Vec<String>, String> {
    let backend = RunningBackend::start(server.command, folder)?;
    let running = Running::start(weir, 2, &configuration(backend.port))?;
    let check = BackendCheck { address: running.address, bytes };
    let mut done = Vec::new();
    let mut begun = Instant::now();
    let mut note = |what: &str, result: Result<(), String>| {
        done.push(format!("{what} {:.1} s", begun.elapsed().as_secs_f64()));
        begun = Instant::now();
        result.map_err(|why| format!("{what}: {why}"))
    };
    if server.http {
        note("kept connections", check.keepalive())?;
        note("ranges", check.ranges(if server.ranges { "/range" } else { "/forced/range" }))?;
        for prefix in ["", "/streamed"] {
            note(&format!("upload{prefix}"), check.upload(prefix, false))?;
            note(&format!("download{prefix}"), check.download(&format!("{prefix}/sized")))?;
            note(&format!("chunks{prefix}"), check.download(&format!("{prefix}/chunked")))?;
        }
        note("upload in chunks", check.upload("", true))?;
    }
    if server.websockets {
        let url = format!("ws://{}/ws", running.address);
        for (client, folder) in clients {
            note(client.name, program::finish(client.command, &url, folder))?;
        }
    }
    Ok(done)
}
