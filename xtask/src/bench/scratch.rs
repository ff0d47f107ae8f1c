//! The folder of a run: files to serve, and a configuration with ports of its own for each
//! measurement.

use std::fs::{self, File, Permissions};
use std::io::Read;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::project;

use super::load::varied;
use super::rows::BenchRow;

/// Enough for the idle connections; nginx counts its listeners in.
const FRONT: &str = "worker_processes 1; daemon off; pid {d}/{name}.pid; error_log {d}/{name}.err;
events { worker_connections 16000; }
http {
    access_log off; keepalive_requests 100000000;
    {http lines}
    server {
        listen 127.0.0.1:{http} backlog=4096;
        {server lines}
    }
}
{main lines}
";

const BACKEND: &str = "worker_processes 1; daemon off; pid {d}/{name}-back.pid;
error_log {d}/{name}-back.err;
events { worker_connections 9000; }
http {
    access_log off; keepalive_requests 100000000;
    server {
        listen 127.0.0.1:{backend} backlog=4096;
        location / { return 200 \"hello world\"; }
    }
}
";

/// Has wrk close each connection after its request.
const CLOSE: &str = "wrk.headers[\"Connection\"] = \"close\"\n";

/// Sizes of the files served, in KB: `1k.bin` and so on.
const FILES_KB: &[usize] = &[1, 10, 100];

/// What is written for people to read, as a text to be compressed: 100 KB of it.
const TEXTS: &[&str] =
    &["ARCHITECTURE.md", "CHANGELOG.md", "docs/proxy.md", "docs/load.md", "docs/directives.md"];
const TEXT_BYTES: usize = 100 * 1024;

/// Kinds of keys, in the words of `openssl req`.
const CERTIFICATES: &[(&str, &[&str])] = &[("ecdsa", ECDSA_KEY), ("rsa", RSA_KEY)];
pub(crate) const ECDSA_KEY: &[&str] =
    &["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"];
pub(crate) const RSA_KEY: &[&str] = &["-newkey", "rsa:2048"];

/// Makes a key and a certificate of that name in the folder: `NAME.key` and `NAME.crt`.
pub(crate) fn make_certificate(folder: &Path, name: &str, key: &[&str]) -> Result<(), String> {
    let mut openssl = Command::new("openssl");
    openssl.args(["req", "-x509", "-nodes", "-days", "30", "-subj", "/CN=localhost"]).args(key);
    openssl.arg("-keyout").arg(folder.join(format!("{name}.key")));
    openssl.arg("-out").arg(folder.join(format!("{name}.crt")));
    project::output(&mut openssl).map(drop)
}

/// The folder; it goes away with this.
pub(super) struct BenchFolder {
    folder: PathBuf,
}

fn text() -> std::io::Result<Vec<u8>> {
    let mut text = Vec::new();
    for name in TEXTS {
        text.extend(fs::read(project::root().join(name))?);
    }
    text.truncate(TEXT_BYTES);
    Ok(text)
}

/// What one measurement is configured with.
pub(super) struct BenchSite {
    name: &'static str,
    pub(super) front: PathBuf,
    pub(super) backend: PathBuf,
    /// Paths that differ, for the generator.
    pub(super) list: PathBuf,
    pub(super) ports: Ports,
    folder: PathBuf,
}

#[derive(Clone, Copy)]
pub(super) struct Ports {
    pub(super) http: u16,
    pub(super) https: u16,
    pub(super) tcp: u16,
    pub(super) udp: u16,
    pub(super) backend: u16,
}

impl BenchFolder {
    pub(super) fn new() -> Result<Self, String> {
        let folder = std::env::temp_dir().join(format!("weir-bench-{}", std::process::id()));
        let scratch = Self { folder };
        scratch.fill().map_err(|err| format!("{}: {err}", scratch.folder.display()))?;
        Ok(scratch)
    }

    fn fill(&self) -> std::io::Result<()> {
        let www = self.folder.join("www");
        fs::create_dir_all(&www)?;
        // The servers' workers run as another user and read what is here.
        for folder in [&self.folder, &www] {
            fs::set_permissions(folder, Permissions::from_mode(0o755))?;
        }
        for size in FILES_KB {
            let file = www.join(format!("{size}k.bin"));
            let mut bytes = vec![0; size * 1024];
            File::open("/dev/urandom")?.read_exact(&mut bytes)?;
            fs::write(&file, bytes)?;
            fs::set_permissions(&file, Permissions::from_mode(0o644))?;
        }
        let file = www.join("100k.html");
        fs::write(&file, text()?)?;
        fs::set_permissions(&file, Permissions::from_mode(0o644))?;
        fs::write(self.folder.join("close.lua"), CLOSE)
    }

    /// Makes a certificate for each kind of key, signed by itself.
    pub(super) fn certify(&self) -> Result<(), String> {
        for (name, key) in CERTIFICATES {
            make_certificate(&self.folder, name, key)?;
        }
        Ok(())
    }

    /// Configures one of the servers for this row.
    pub(super) fn site(&self, row: &BenchRow, name: &'static str) -> Result<BenchSite, String> {
        let site = BenchSite {
            name,
            front: self.folder.join(format!("{name}.conf")),
            backend: self.folder.join(format!("{name}-back.conf")),
            list: self.folder.join(format!("{name}.list")),
            ports: Ports::free().map_err(|err| format!("a free port: {err}"))?,
            folder: self.folder.clone(),
        };
        let front = FRONT.replace("{http lines}", row.http).replace("{server lines}", row.server);
        let front = front.replace("{main lines}", row.main);
        site.write(&site.front, &front)?;
        site.write(&site.backend, BACKEND)?;
        let path = row.url.rsplit('/').next().unwrap_or_default();
        site.write(&site.list, &varied(&format!("/{path}")))?;
        Ok(site)
    }
}

impl Drop for BenchFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl BenchSite {
    fn write(&self, path: &Path, template: &str) -> Result<(), String> {
        fs::write(path, self.fill(template)).map_err(|err| format!("{}: {err}", path.display()))
    }

    /// The text with every name in braces replaced by its value.
    pub(super) fn fill(&self, template: &str) -> String {
        let Ports { http, https, tcp, udp, backend } = self.ports;
        let ports = [
            ("{http}", http),
            ("{https}", https),
            ("{tcp}", tcp),
            ("{udp}", udp),
            ("{backend}", backend),
        ];
        let text = template.replace("{d}", &self.folder.to_string_lossy());
        let text = text.replace("{name}", self.name);
        ports.iter().fold(text, |text, (name, port)| text.replace(name, &port.to_string()))
    }
}

impl Ports {
    /// Ports that are free now. A server takes them a moment later: good enough on loopback.
    fn free() -> std::io::Result<Self> {
        let held: Vec<TcpListener> =
            (0..5).map(|_| TcpListener::bind("127.0.0.1:0")).collect::<Result<_, _>>()?;
        let port = |n: usize| held[n].local_addr().map(|address| address.port());
        let [http, https, tcp, udp, backend] = [port(0)?, port(1)?, port(2)?, port(3)?, port(4)?];
        Ok(Self { http, https, tcp, udp, backend })
    }
}

#[cfg(test)]
mod tests {
    use super::super::rows::ROWS;
    use super::*;

    #[test]
    fn no_row_leaves_a_name_unfilled() {
        let scratch = BenchFolder::new().expect("a folder");
        for row in ROWS {
            let site = scratch.site(row, "weir").expect("a configuration");
            let text =
                fs::read_to_string(&site.front).expect("it was written") + &site.fill(row.url);
            for name in
                ["{d}", "{name}", "{http", "{server", "{main", "{backend}", "{tcp}", "{udp}"]
            {
                assert!(!text.contains(name), "{}: {text}", row.name);
            }
        }
        assert_eq!(fs::metadata(scratch.folder.join("www/10k.bin")).expect("a file").len(), 10240);
        let folder = scratch.folder.clone();
        drop(scratch);
        assert!(!folder.exists());
    }
}
