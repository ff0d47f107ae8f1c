//! A server with a cache that is killed under load, again and again: no body may be wrong, and
//! nothing may be left over.
//!
//! Every line of a body is its key and its version, so a body that is torn, mixed up or of another
//! key shows. Versions are counted by the backend: none may be newer than it has sent.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use processes::procfs;

use super::{ProofFolder, ProofVerdict};
use crate::args::Args;
use crate::project;

const CLIENTS: usize = 8;
const KEYS: u64 = 200;
/// The longest body.
const BODY_MAX: u64 = 300_000;
/// How long a server serves before it is killed, in milliseconds.
const LIFE_MS: std::ops::Range<u64> = 20..200;
/// Of so many ends, one is clean.
const CLEAN_EVERY: u64 = 20;
const PATIENCE: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(2);

const CONF: &str = "worker_processes 2; daemon off; pid {d}/pid; error_log {d}/error.log;
events { worker_connections 1024; }
http {
    access_log off;
    proxy_cache_path {d}/cache levels=1:2 keys_zone=one:1m max_size=20m{temp};
    proxy_temp_path {d}/temp;
    server {
        listen 127.0.0.1:{port};
        proxy_cache one; proxy_cache_lock on; proxy_cache_valid 200 1s;
        proxy_cache_use_stale updating error timeout;
        location / { proxy_pass http://127.0.0.1:{backend}; }
        location /background/ {
            proxy_pass http://127.0.0.1:{backend}/; proxy_cache_background_update on;
        }
    }
}
";

pub(super) fn run(mut args: Args, weir: &Path) -> Result<ProofVerdict, String> {
    let kills: u64 = args.parsed("--kills", 1000)?;
    let nginx = args.option("--nginx")?.map(PathBuf::from);
    args.end()?;
    let ours = KillRun::of(weir, kills)?;
    println!("weir   {ours}");
    if let Some(nginx) = nginx {
        println!("nginx  {}", KillRun::of(&nginx, kills)?);
    }
    ours.judge().map(|()| ProofVerdict::Right)
}

/// What clients have seen, and what was left over.
#[derive(Default)]
struct KillRun {
    kills: u64,
    clean_ends: u64,
    right: u64,
    from_cache: u64,
    /// Connections that a kill has cut.
    cut: u64,
    wrong: Vec<String>,
    /// Temporary files that are old at the last start and were not removed by it.
    leftovers: usize,
    /// Descriptors of the last server's processes: when it has begun and when all clients had left.
    descriptors: [usize; 2],
}

impl std::fmt::Display for KillRun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { kills, clean_ends, right, from_cache, cut, leftovers, .. } = self;
        let [before, after] = self.descriptors;
        write!(
            f,
            "{kills} kills, {clean_ends} clean ends: {right} right bodies ({from_cache} cached), \
             {} wrong, {cut} cut; {leftovers} files left, descriptors {before} -> {after}",
            self.wrong.len()
        )
    }
}

impl KillRun {
    fn of(program: &Path, kills: u64) -> Result<Self, String> {
        let folder = ProofFolder::new("kills")?;
        let backend = VersionBackend::start()?;
        let mut run = Self::default();
        for temp in ["", " use_temp_path=off"] {
            let place = ServerPlace::new(program, &folder, &backend, temp)?;
            run.serve_and_kill(&place, &backend, kills / 2)?;
            run.check_leftovers(&place, &folder.join("cache"), &folder.join("temp"))?;
        }
        Ok(run)
    }

    fn serve_and_kill(
        &mut self,
        place: &ServerPlace,
        backend: &VersionBackend,
        kills: u64,
    ) -> Result<(), String> {
        let seen = Arc::new(SeenByClients::default());
        let clients: Vec<_> = (0..CLIENTS as u64)
            .map(|number| {
                let (seen, versions) = (seen.clone(), backend.versions.clone());
                let address = place.address;
                thread::spawn(move || seen.ask_until_told(address, &versions, number))
            })
            .collect();
        let mut random = Random(kills);
        for number in 1..=kills {
            let server = place.start()?;
            thread::sleep(Duration::from_millis(random.within(LIFE_MS)));
            if number % CLEAN_EVERY == 0 {
                server.end()?;
                self.clean_ends += 1;
            } else {
                server.kill();
                self.kills += 1;
            }
        }
        seen.is_over.store(true, Ordering::Relaxed);
        for client in clients {
            self.wrong.extend(client.join().map_err(|_| "a client has panicked")?);
        }
        self.right += seen.right.load(Ordering::Relaxed);
        self.from_cache += seen.from_cache.load(Ordering::Relaxed);
        self.cut += seen.cut.load(Ordering::Relaxed);
        Ok(())
    }

    /// Starts once more, with temporary files that are an hour old.
    fn check_leftovers(
        &mut self,
        place: &ServerPlace,
        cache: &Path,
        temp: &Path,
    ) -> Result<(), String> {
        let hour_ago = SystemTime::now() - Duration::from_secs(3600);
        for file in temporary_files(cache) {
            let file = fs::File::options().write(true).open(file).map_err(|e| e.to_string())?;
            file.set_modified(hour_ago).map_err(|e| e.to_string())?;
        }
        // Those of proxy_temp_path are the administrator's, as with nginx.
        let _ = fs::remove_dir_all(temp);
        let server = place.start()?;
        let pids = procfs::family(server.0.id());
        let descriptors = || pids.iter().map(|pid| procfs::descriptors(*pid)).sum();
        self.descriptors[0] = descriptors();
        let end = Instant::now() + Duration::from_secs(5);
        while !temporary_files(cache).is_empty() && Instant::now() < end {
            thread::sleep(LOOK);
        }
        self.leftovers += temporary_files(cache).len();
        for key in 0..KEYS {
            let _ = ask(place.address, &format!("/{key}"));
        }
        while descriptors() > self.descriptors[0] && Instant::now() < end {
            thread::sleep(LOOK);
        }
        self.descriptors[1] = descriptors();
        server.end()
    }

    fn judge(&self) -> Result<(), String> {
        let [before, after] = self.descriptors;
        // Connections to the backend are kept.
        match &self.wrong[..] {
            [first, ..] => Err(format!("{} wrong bodies: {first}", self.wrong.len())),
            [] if self.from_cache == 0 => Err("nothing came from the cache".into()),
            [] if self.leftovers > 0 => Err(format!("{} temporary files", self.leftovers)),
            [] if after > before + KEYS as usize / 2 => {
                Err(format!("descriptors: {before}, then {after}"))
            }
            [] => Ok(()),
        }
    }
}

/// A free port that no client is given: one that connects while no server listens could be
/// connected with itself, and the port would be taken.
pub(super) fn low_port() -> Result<u16, String> {
    let first = 10_000 + (std::process::id() % 20_000) as u16;
    let is_free = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
    (first..first + 100).find(is_free).ok_or_else(|| "no free port".to_owned())
}

/// Files whose names end as those of replies that are being received.
fn temporary_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => found.extend(temporary_files(&path)),
            _ if name.len() > 32 && name.contains('.') => found.push(path),
            _ => {}
        }
    }
    found
}

/// Where the server runs.
struct ServerPlace {
    program: PathBuf,
    conf: PathBuf,
    prefix: PathBuf,
    address: SocketAddr,
}

/// A server; its drop kills it and its workers.
struct KilledServer(Child);

impl ServerPlace {
    fn new(
        program: &Path,
        folder: &ProofFolder,
        backend: &VersionBackend,
        temp: &str,
    ) -> Result<Self, String> {
        let port = low_port()?;
        let conf = CONF
            .replace("{d}", &folder.0.to_string_lossy())
            .replace("{port}", &port.to_string())
            .replace("{backend}", &backend.port.to_string())
            .replace("{temp}", temp);
        let address = (Ipv4Addr::LOCALHOST, port).into();
        let (program, conf) = (program.to_owned(), folder.write("nginx.conf", &conf)?);
        Ok(Self { program, conf, prefix: folder.0.clone(), address })
    }

    fn start(&self) -> Result<KilledServer, String> {
        let mut command = Command::new(&self.program);
        command.arg("-p").arg(&self.prefix).arg("-c").arg(&self.conf);
        let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut server = KilledServer(quiet.spawn().map_err(|err| err.to_string())?);
        let end = Instant::now() + PATIENCE;
        while TcpStream::connect(self.address).is_err() {
            let has_ended = !matches!(server.0.try_wait(), Ok(None));
            if has_ended || Instant::now() > end {
                return Err("the server does not start".into());
            }
            thread::sleep(LOOK);
        }
        Ok(server)
    }
}

impl KilledServer {
    fn kill(self) {}

    fn end(mut self) -> Result<(), String> {
        let pid = self.0.id().to_string();
        project::succeed(Command::new("kill").args(["-s", "QUIT", &pid]))?;
        let end = Instant::now() + PATIENCE;
        while matches!(self.0.try_wait(), Ok(None)) {
            if Instant::now() > end {
                return Err("the server does not end".into());
            }
            thread::sleep(LOOK);
        }
        Ok(())
    }
}

impl Drop for KilledServer {
    fn drop(&mut self) {
        // The master first, or it would start others.
        for pid in procfs::family(self.0.id()) {
            let pid = pid.to_string();
            let _ = Command::new("kill").args(["-s", "KILL", &pid]).stderr(Stdio::null()).status();
        }
        let _ = self.0.wait();
    }
}

/// What all clients have seen.
#[derive(Default)]
struct SeenByClients {
    is_over: AtomicBool,
    right: AtomicU64,
    from_cache: AtomicU64,
    cut: AtomicU64,
}

impl SeenByClients {
    /// Returns what was wrong.
    fn ask_until_told(&self, at: SocketAddr, versions: &[AtomicU64], seed: u64) -> Vec<String> {
        let (mut random, mut wrong) = (Random(seed + 1), Vec::new());
        while !self.is_over.load(Ordering::Relaxed) {
            let key = random.within(0..KEYS);
            let before = versions[key as usize].load(Ordering::SeqCst);
            let prefix = if random.within(0..2) == 0 { "/background" } else { "" };
            let Some(body) = ask(at, &format!("{prefix}/{key}")) else {
                self.cut.fetch_add(1, Ordering::Relaxed);
                thread::sleep(LOOK);
                continue;
            };
            let after = versions[key as usize].load(Ordering::SeqCst);
            match version_of(&body, key) {
                Some(version) if version <= after => {
                    self.right.fetch_add(1, Ordering::Relaxed);
                    let is_old = u64::from(version <= before);
                    self.from_cache.fetch_add(is_old, Ordering::Relaxed);
                }
                _ => wrong.push(format!("/{key}: {:?}", body.get(..80).unwrap_or(&body))),
            }
        }
        wrong
    }
}

/// The version of a body all of whose lines are alike.
fn version_of(body: &str, key: u64) -> Option<u64> {
    let first = body.lines().next()?;
    let version: u64 = first.strip_prefix(&format!("{key} "))?.parse().ok()?;
    let is_whole = body.len() as u64 == length_of(key, version) && body.ends_with('\n');
    (is_whole && body.lines().all(|line| line == first)).then_some(version)
}

/// The complete body of a reply; `None`: there was none.
fn ask(at: SocketAddr, target: &str) -> Option<String> {
    let mut stream = TcpStream::connect(at).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    let request = format!("GET {target} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply).ok()?;
    let reply = String::from_utf8(reply).ok()?;
    let (head, body) = reply.split_once("\r\n\r\n")?;
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "))?;
    let is_whole = head.starts_with("HTTP/1.1 200") && length.parse() == Ok(body.len());
    is_whole.then(|| body.to_owned())
}

/// A backend that answers `/KEY` with lines of the key and a version that grows.
struct VersionBackend {
    port: u16,
    /// The newest version of each key.
    versions: Arc<Vec<AtomicU64>>,
}

impl VersionBackend {
    fn start() -> Result<Self, String> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|e| e.to_string())?;
        let port = listener.local_addr().map_err(|e| e.to_string())?.port();
        let versions: Arc<Vec<_>> = Arc::new((0..KEYS).map(|_| AtomicU64::new(0)).collect());
        let counted = versions.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let versions = counted.clone();
                thread::spawn(move || answer_all(&stream, &versions));
            }
        });
        Ok(Self { port, versions })
    }
}

fn answer_all(stream: &TcpStream, versions: &[AtomicU64]) -> Option<()> {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    loop {
        let first = lines.next()?;
        lines.by_ref().take_while(|line| !line.is_empty()).for_each(drop);
        let key: u64 = first.split(['/', ' ']).nth(2)?.parse().ok()?;
        let version = versions.get(key as usize)?.fetch_add(1, Ordering::SeqCst) + 1;
        let line = format!("{key} {version}\n");
        let body = line.repeat(length_of(key, version) as usize / line.len());
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
        (&*stream).write_all(head.as_bytes()).ok()?;
        // In pieces, so that a kill meets replies that are not complete.
        for piece in body.as_bytes().chunks(50_000) {
            (&*stream).write_all(piece).ok()?;
            thread::yield_now();
        }
    }
}

/// The length of a body: most are small.
fn length_of(key: u64, version: u64) -> u64 {
    let line = format!("{key} {version}\n").len() as u64;
    let wanted = match Random(key * 7919 + version).within(0..4) {
        0 => Random(key * 104_729 + version).within(line..BODY_MAX),
        _ => Random(key + version).within(line..2000),
    };
    wanted / line * line
}

/// Numbers that look random, and are the same in each run.
struct Random(u64);

impl Random {
    fn within(&mut self, range: std::ops::Range<u64>) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        range.start + (self.0 >> 33) % (range.end - range.start)
    }
}
