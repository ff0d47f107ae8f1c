//! Many names with a certificate and key each: how long it takes to check the configuration, and
//! the memory of all processes after the start and after reloads.

use std::fmt::Write as _;
use std::io::{Read, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use processes::server::MeasuredServer;
use processes::{certificate, procfs};

use super::{ProofFolder, ProofVerdict, free_port};
use crate::args::Args;
use crate::{packages, project};

/// How long a reload may take, old processes included.
const RELOAD_MAX: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(20);

/// Memory is read when it has not changed by more than this share for this long.
const STEADY_SHARE: f64 = 0.002;
const STEADY: Duration = Duration::from_secs(1);

/// By how much memory may grow between the halves of the reloads. Free memory gets fragmented; a
/// generation that is not freed would take as much again for each reload.
const GROWTH_SHARE_MAX: f64 = 0.15;

const CONF: &str = "worker_processes 2; daemon off; pid {d}/pid; error_log {d}/error.log;
events { worker_connections 1024; }
http {
    access_log off;
    server_names_hash_max_size 131072; server_names_hash_bucket_size 128;
    server { listen 127.0.0.1:{plain}; return 200 {generation}; }
    include {d}/names;
}
";

pub(super) fn run(mut args: Args, weir: &Path) -> Result<ProofVerdict, String> {
    let names = args.parsed("--names", 10_000)?;
    let reloads = args.parsed("--reloads", 12)?;
    let nginx = args.option("--nginx")?.map(PathBuf::from);
    args.end()?;
    packages::need(&[("openssl", "openssl")])?;
    let folder = ProofFolder::new("names")?;
    make_certificates(&folder.0, names)?;
    let ours = NamesCost::of(weir, &folder, names, reloads)?;
    println!("weir   {ours}");
    if let Some(nginx) = nginx {
        let theirs = NamesCost::of(&nginx, &folder, names, reloads)?;
        println!("nginx  {theirs}");
        ours.compare(&theirs)?;
    }
    ours.grows().map_or(Ok(ProofVerdict::Right), Err)
}

/// A key and a certificate for each name, by all processors.
fn make_certificates(folder: &Path, names: usize) -> Result<(), String> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let make = |first| {
            (first..names)
                .step_by(threads)
                .map(|name| ["key", "crt"].map(|end| folder.join(format!("n{name}.{end}"))))
                .try_for_each(|[key, certificate]| certificate::make(&key, &certificate))
        };
        let makers: Vec<_> = (0..threads).map(|first| scope.spawn(move || make(first))).collect();
        makers.into_iter().try_for_each(|maker| maker.join().map_err(|_| "a thread panicked")?)
    })
}

/// What a program takes for the names.
struct NamesCost {
    /// To check the configuration: passed, and on processors.
    check_seconds: f64,
    check_cpu_seconds: f64,
    /// After the start, then after each reload.
    bytes: Vec<f64>,
    /// From the signal until clients get the new configuration, at most.
    reload_seconds: f64,
}

impl NamesCost {
    fn of(
        program: &Path,
        folder: &ProofFolder,
        names: usize,
        reloads: usize,
    ) -> Result<Self, String> {
        let [port, plain] = [free_port()?, free_port()?];
        let directory = folder.0.to_string_lossy();
        folder.write("names", &servers(&directory, port, names))?;
        let user = if packages::is_root() { "user root;\n" } else { "" };
        let text = format!("{user}{CONF}").replace("{d}", &directory);
        let text = text.replace("{plain}", &plain.to_string());
        let write = |reload: usize| {
            folder.write("conf", &text.replace("{generation}", &generation(reload)))
        };
        let conf = write(0)?;
        let (check_seconds, check_cpu_seconds) = check(program, &conf)?;
        let server = MeasuredServer::start(program, &conf, port)?;
        await_generation(plain, 0)?;
        let mut bytes = vec![steady_memory(&server)?];
        let processes = procfs::family(server.pid()).len();
        let mut reload_seconds: f64 = 0.0;
        for reload in 1..=reloads {
            write(reload)?;
            let begun = Instant::now();
            signal_hup(&server)?;
            await_generation(plain, reload)?;
            reload_seconds = reload_seconds.max(begun.elapsed().as_secs_f64());
            until("old processes end", || procfs::family(server.pid()).len() <= processes)?;
            bytes.push(steady_memory(&server)?);
        }
        Ok(Self { check_seconds, check_cpu_seconds, bytes, reload_seconds })
    }

    /// Whether memory grows with the number of reloads: the second half of them is compared with
    /// the first.
    fn grows(&self) -> Option<String> {
        let (first, second) = self.bytes.split_at(self.bytes.len().div_ceil(2));
        let [before, after] = [highest(first), highest(second)];
        (after > before * (1.0 + GROWTH_SHARE_MAX)).then(|| {
            format!("memory grows with reloads: {:.1} MB, then {:.1}", before / 1e6, after / 1e6)
        })
    }

    fn compare(&self, nginx: &Self) -> Result<(), String> {
        let figures = [
            ("time of the check", self.check_seconds, nginx.check_seconds),
            ("CPU time of the check", self.check_cpu_seconds, nginx.check_cpu_seconds),
            ("memory after the start", self.bytes[0], nginx.bytes[0]),
            ("memory after reloads", highest(&self.bytes[1..]), highest(&nginx.bytes[1..])),
        ];
        for (what, ours, theirs) in figures {
            println!("{what}: {:.2} of nginx's", ours / theirs);
            if ours > theirs {
                return Err(format!("{what}: more than nginx's"));
            }
        }
        Ok(())
    }
}

impl std::fmt::Display for NamesCost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "check {:.2} s, {:.2} s of CPU; reload at most {:.2} s; memory, MB:",
            self.check_seconds, self.check_cpu_seconds, self.reload_seconds
        )?;
        self.bytes.iter().try_for_each(|bytes| write!(f, " {:.1}", bytes / 1e6))
    }
}

fn highest(bytes: &[f64]) -> f64 {
    bytes.iter().copied().fold(0.0, f64::max)
}

fn servers(directory: &str, port: u16, names: usize) -> String {
    let mut text = String::new();
    for name in 0..names {
        let _ = writeln!(
            text,
            "server {{ listen 127.0.0.1:{port} ssl; server_name n{name}.example; \
             ssl_certificate {directory}/n{name}.crt; ssl_certificate_key {directory}/n{name}.key; \
             return 200; }}"
        );
    }
    text
}

/// How long `-t` takes, passed and on processors.
fn check(program: &Path, conf: &Path) -> Result<(f64, f64), String> {
    let cpu_seconds = procfs::cpu_of_the_ended_s()?;
    let begun = Instant::now();
    project::output(Command::new(program).arg("-t").arg("-c").arg(conf))?;
    Ok((begun.elapsed().as_secs_f64(), procfs::cpu_of_the_ended_s()? - cpu_seconds))
}

fn generation(reload: usize) -> String {
    format!("generation-{reload}.")
}

fn await_generation(plain: u16, reload: usize) -> Result<(), String> {
    let generation = generation(reload);
    until(&generation, || reply(plain).is_ok_and(|reply| reply.ends_with(&generation)))
}

fn reply(port: u16) -> std::io::Result<String> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(RELOAD_MAX))?;
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text)
}

fn signal_hup(server: &MeasuredServer) -> Result<(), String> {
    project::succeed(Command::new("kill").args(["-s", "HUP", &server.pid().to_string()]))
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) -> Result<(), String> {
    let begun = Instant::now();
    while !is_so() {
        if begun.elapsed() > RELOAD_MAX {
            return Err(format!("{what}: not within {} s", RELOAD_MAX.as_secs()));
        }
        thread::sleep(LOOK);
    }
    Ok(())
}

/// Memory of all processes once it no longer changes.
fn steady_memory(server: &MeasuredServer) -> Result<f64, String> {
    let begun = Instant::now();
    let mut before = procfs::memory(server.pid())?;
    loop {
        thread::sleep(STEADY);
        let bytes = procfs::memory(server.pid())?;
        if (bytes - before).abs() <= STEADY_SHARE * before || begun.elapsed() > RELOAD_MAX {
            return Ok(bytes);
        }
        before = bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(bytes: &[f64]) -> NamesCost {
        let bytes = bytes.to_vec();
        NamesCost { check_seconds: 1.0, check_cpu_seconds: 1.0, bytes, reload_seconds: 1.0 }
    }

    #[test]
    fn memory_may_grow_with_the_first_reloads_only() {
        assert_eq!(cost(&[100e6, 180e6, 181e6, 182e6, 181e6]).grows(), None);
        let why = cost(&[100e6, 150e6, 200e6, 250e6, 300e6]).grows();
        assert_eq!(why.as_deref(), Some("memory grows with reloads: 200.0 MB, then 300.0"));
    }

    #[test]
    fn more_than_nginx_is_an_error() {
        let nginx = cost(&[100.0, 200.0]);
        assert_eq!(cost(&[100.0, 200.0]).compare(&nginx), Ok(()));
        let why = cost(&[90.0, 201.0]).compare(&nginx);
        assert_eq!(why, Err("memory after reloads: more than nginx's".to_owned()));
    }
}
