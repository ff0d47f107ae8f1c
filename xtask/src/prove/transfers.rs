//! Whether large bodies pass through a proxy unchanged over HTTP/2 and TLS, several streams at a
//! time on one connection, and in bounded memory when one side is slow.

mod backend;
mod body;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use processes::procfs;

use super::{ProofFolder, ProofVerdict};
use crate::args::Args;
use crate::own_certificate::OwnCertificate;
use crate::packages;
use crate::running::Running;
use backend::TransferBackend;
use body::TransferBody;

const STREAMS: usize = 4;

/// By how much the memory of the server may grow, of which buffers are most.
const MORE_BYTES_MAX: f64 = 8e6;

/// What a slow client reads or sends on a stream, in bytes a second.
const SLOW_CLIENT_RATE: &str = "40M";

const LOOK: Duration = Duration::from_millis(20);

struct Transfer {
    name: &'static str,
    is_upload: bool,
    /// The beginning of the path: which location, and whether the backend is slow.
    path: &'static str,
    is_client_slow: bool,
}

const TRANSFERS: &[Transfer] = &[
    upload("upload, buffered", "buffered/fast"),
    upload("upload, unbuffered", "unbuffered/fast"),
    upload("upload, unbuffered, slow backend", "unbuffered/slow"),
    Transfer {
        is_client_slow: true,
        ..upload("upload, unbuffered, slow client", "unbuffered/fast")
    },
    download("download, buffered", "buffered/fast"),
    download("download, unbuffered", "unbuffered/fast"),
    Transfer {
        is_client_slow: true,
        ..download("download, buffered, slow client", "buffered/fast")
    },
    Transfer {
        is_client_slow: true,
        ..download("download, unbuffered, slow client", "unbuffered/fast")
    },
];

const fn upload(name: &'static str, path: &'static str) -> Transfer {
    Transfer { name, is_upload: true, path, is_client_slow: false }
}

const fn download(name: &'static str, path: &'static str) -> Transfer {
    Transfer { is_upload: false, ..upload(name, path) }
}

pub(super) fn run(mut args: Args, weir: &Path) -> Result<ProofVerdict, String> {
    let megabytes = args.parsed("--megabytes", 100)?;
    let nginx = args.option("--nginx")?.map(PathBuf::from);
    args.end()?;
    if packages::find("curl").is_none() {
        return Ok(ProofVerdict::Skipped("curl is not installed".to_owned()));
    }
    let length = megabytes * 1_000_000;
    let wrong = transfer_all(weir, length)?;
    if let Some(nginx) = nginx {
        println!("{}", nginx.display());
        transfer_all(&nginx, length)?;
    }
    if wrong.is_empty() { Ok(ProofVerdict::Right) } else { Err(wrong.join("\n")) }
}

/// Runs all transfers through a server. What went wrong.
fn transfer_all(program: &Path, length: usize) -> Result<Vec<String>, String> {
    let folder = ProofFolder::new("transfers")?;
    let bodies: Vec<_> = (0..STREAMS).map(|stream| TransferBody::new(stream, length)).collect();
    for (stream, body) in bodies.iter().enumerate() {
        let write = File::create(sent(&folder, stream)).and_then(|mut file| body.write(&mut file));
        write.map_err(|err| err.to_string())?;
    }
    let keys = OwnCertificate::new()?;
    let backend = TransferBackend::start(bodies.clone())?;
    println!("{:34}       s  memory, MB", "");
    let mut wrong = Vec::new();
    for transfer in TRANSFERS {
        let server = Running::start(program, 1, &conf(backend.port, &keys))?;
        let before = procfs::memory(server.pid())?;
        let begun = Instant::now();
        let mut client = curl(transfer, &server, &folder).map_err(|err| err.to_string())?;
        let mut peak = before;
        while client.try_wait().map_err(|err| err.to_string())?.is_none() {
            peak = procfs::memory(server.pid())?.max(peak);
            thread::sleep(LOOK);
        }
        let more = peak - before;
        let name = transfer.name;
        println!("{name:34} {:7.1}  {:10.1}", begun.elapsed().as_secs_f64(), more / 1e6);
        let output = client.wait_with_output().map_err(|err| err.to_string())?;
        let output = String::from_utf8_lossy(&output.stdout).into_owned();
        if let Err(why) = judge(transfer, &output, &folder, &bodies) {
            wrong.push(format!("{name}: {why}\n{}", server.log()));
        }
        if more > MORE_BYTES_MAX {
            wrong.push(format!("{name}: {:.1} MB", more / 1e6));
        }
    }
    Ok(wrong)
}

fn conf(port: u16, keys: &OwnCertificate) -> String {
    let certificate = keys.directives();
    format!(
        "server {{
             listen ADDRESS ssl; http2 on; {certificate}
             client_max_body_size 0; proxy_http_version 1.1;
             location /buffered/ {{ proxy_pass http://127.0.0.1:{port}; }}
             location /unbuffered/ {{
                 proxy_pass http://127.0.0.1:{port};
                 proxy_buffering off; proxy_request_buffering off;
             }}
         }}"
    )
}

fn sent(folder: &ProofFolder, stream: usize) -> PathBuf {
    folder.join(&format!("sent{stream}"))
}

fn received(folder: &ProofFolder, stream: usize) -> PathBuf {
    folder.join(&format!("received{stream}"))
}

fn curl(
    transfer: &Transfer,
    server: &Running,
    folder: &ProofFolder,
) -> std::io::Result<std::process::Child> {
    let mut curl = Command::new("curl");
    curl.args(["-s", "-Z", "-k", "--http2", "-w", "%{http_code} %{num_connects}\n"]);
    for stream in 0..STREAMS {
        if transfer.is_client_slow {
            curl.args(["--limit-rate", SLOW_CLIENT_RATE]);
        }
        if transfer.is_upload {
            curl.arg("-T").arg(sent(folder, stream));
        }
        curl.arg("-o").arg(received(folder, stream));
        curl.arg(format!("https://{}/{}/{stream}", server.address, transfer.path));
    }
    curl.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()
}

/// What curl wrote: a line for each stream with the status and how many connections it opened.
fn judge(
    transfer: &Transfer,
    output: &str,
    folder: &ProofFolder,
    bodies: &[TransferBody],
) -> Result<(), String> {
    let ok = output.lines().filter(|line| line.starts_with("200 ")).count();
    let connections: usize =
        output.lines().filter_map(|line| line.split_once(' ')?.1.parse::<usize>().ok()).sum();
    if (ok, connections) != (STREAMS, 1) {
        return Err(format!("{ok} streams succeeded, over {connections} connections: {output:?}"));
    }
    for (stream, body) in bodies.iter().enumerate() {
        let file = File::open(received(folder, stream));
        let mut file = file.map_err(|err| err.to_string())?;
        let checked = match transfer.is_upload {
            true => backend::read_verdict(&mut file),
            false => body.check(&mut file, |_| {}),
        };
        checked.map_err(|err| format!("stream {stream}: {err}"))?;
    }
    Ok(())
}
