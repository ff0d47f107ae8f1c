//! A server, its discovery and the source of its lists, killed under load in any order: no group
//! may be empty or have an old list, no owner may stay, and nothing may wait for ever.

mod killed_process;
mod lists;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use super::kills::low_port;
use super::{ProofFolder, ProofVerdict};
use crate::args::Args;
use crate::packages;
use killed_process::KilledProcess;
use lists::{EtcdLists, FileLists, KilledLists};

const GROUPS: usize = 5;
/// How long all groups may take to have a new list, after the last start.
const SETTLING_MAX: Duration = Duration::from_secs(30);
const REPLY_MAX: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(5);

pub(super) fn run(mut args: Args, weir: &Path) -> Result<ProofVerdict, String> {
    let kills: u64 = args.parsed("--kills", 50)?;
    args.end()?;
    let discover = weir.with_file_name("weir-discover");
    if !discover.is_file() {
        return Err(format!("{} is missing: cargo build -p discover", discover.display()));
    }
    KillTrial::run(weir, &discover, kills, FileLists::new)?;
    if packages::find("etcd").is_none() || packages::find("etcdctl").is_none() {
        return Ok(ProofVerdict::Skipped("etcd and etcdctl are not installed".into()));
    }
    KillTrial::run(weir, &discover, kills, EtcdLists::new)?;
    Ok(ProofVerdict::Right)
}

struct KillTrial<L> {
    folder: ProofFolder,
    programs: [PathBuf; 2],
    lists: L,
    backends: [u16; 2],
    watch: Arc<ReplyWatch>,
    server: Option<KilledProcess>,
    discovery: Option<KilledProcess>,
    longest: Duration,
}

/// What clients have seen.
struct ReplyWatch {
    address: SocketAddr,
    /// The version that groups must have; another one is as good while it is `None`.
    version: Mutex<Option<u64>>,
    right: AtomicU64,
    /// Requests that had no reply, since the server was killed.
    cut: AtomicU64,
    wrong: Mutex<Vec<String>>,
    is_over: AtomicBool,
}

impl<L: KilledLists> KillTrial<L> {
    fn run(
        weir: &Path,
        discover: &Path,
        kills: u64,
        lists: impl Fn(&Path) -> Result<L, String>,
    ) -> Result<(), String> {
        let folder = ProofFolder::new("discovery")?;
        let lists = lists(&folder.0)?;
        let address = (Ipv4Addr::LOCALHOST, low_port()?).into();
        folder.write("nginx.conf", &configuration(&folder.0, address))?;
        let watch = Arc::new(ReplyWatch {
            address,
            version: Mutex::new(None),
            right: AtomicU64::new(0),
            cut: AtomicU64::new(0),
            wrong: Mutex::new(Vec::new()),
            is_over: AtomicBool::new(false),
        });
        let mut trial = Self {
            folder,
            programs: [weir.to_owned(), discover.to_owned()],
            lists,
            backends: [backend("0")?, backend("1")?],
            watch,
            server: None,
            discovery: None,
            longest: Duration::ZERO,
        };
        trial.begin_all(0, &[0, 1, 2])?;
        trial.settle(0)?;
        let asking = {
            let watch = trial.watch.clone();
            thread::spawn(move || watch.ask_on())
        };
        let done = trial.kill_again_and_again(kills);
        trial.watch.is_over.store(true, Relaxed);
        asking.join().map_err(|_| "the client panicked")?;
        done?;
        trial.forget_a_group()?;
        trial.judge(kills)
    }

    fn kill_again_and_again(&mut self, kills: u64) -> Result<(), String> {
        let mut random = RandomOrder(u64::from(std::process::id()));
        for version in 1..=kills {
            let victims = random.some_of_three();
            for victim in &victims {
                match victim {
                    0 => self.server = None,
                    1 => self.discovery = None,
                    _ => self.lists.kill()?,
                }
                thread::sleep(Duration::from_millis(random.below(100)));
            }
            let starts = random.order(&victims);
            let told = || format!("after the kills {victims:?} and the starts {starts:?}");
            self.begin_all(version, &starts).map_err(|why| format!("{why} {}", told()))?;
            self.settle(version).map_err(|why| format!("{why} {}", told()))?;
        }
        Ok(())
    }

    /// Starts what was killed. The new lists are there as soon as the source is.
    fn begin_all(&mut self, version: u64, starts: &[usize]) -> Result<(), String> {
        *self.watch.version.lock().map_err(|_| "a panic")? = None;
        if !starts.contains(&2) {
            self.put(version)?;
        }
        for start in starts {
            match start {
                0 => {
                    let mut command = Command::new(&self.programs[0]);
                    command.arg("-c").arg(self.folder.join("nginx.conf"));
                    self.server = Some(KilledProcess::start(&mut command)?);
                }
                1 => self.discovery = Some(self.discover()?),
                _ => {
                    self.lists.start()?;
                    self.put(version)?;
                }
            }
        }
        Ok(())
    }

    fn discover(&self) -> Result<KilledProcess, String> {
        let socket = format!("unix:{}", self.folder.join("control.sock").display());
        let mut command = Command::new(&self.programs[1]);
        command.args(self.lists.arguments()).args(["-s", &socket, "--empty-after", "1s"]);
        KilledProcess::start(&mut command)
    }

    fn put(&mut self, version: u64) -> Result<(), String> {
        let port = self.backends[version as usize % 2];
        (0..GROUPS).try_for_each(|group| self.lists.put(group, &format!("127.0.0.1:{port}")))
    }

    /// Waits until all groups have a list and an owner.
    fn settle(&mut self, version: u64) -> Result<(), String> {
        let begun = Instant::now();
        let expected = (version % 2).to_string();
        let is_there = |group| self.watch.ask(group).is_ok_and(|reply| reply.ends_with(&expected));
        let owner = format!("\"owner\":\"{}\"", self.lists.arguments()[0]);
        while !(0..GROUPS).all(is_there) || self.upstreams().matches(&owner).count() != GROUPS {
            if begun.elapsed() > SETTLING_MAX {
                let upstreams = self.upstreams();
                return Err(format!("version {version} is not everywhere: {upstreams}"));
            }
            thread::sleep(LOOK);
        }
        self.longest = self.longest.max(begun.elapsed());
        *self.watch.version.lock().map_err(|_| "a panic")? = Some(version % 2);
        Ok(())
    }

    /// A group that goes while no discovery runs has no owner afterwards.
    fn forget_a_group(&mut self) -> Result<(), String> {
        self.discovery = None;
        self.lists.remove(0)?;
        self.discovery = Some(self.discover()?);
        let end = Instant::now() + SETTLING_MAX;
        while self.upstreams().matches("\"owner\":").count() != GROUPS - 1 {
            if Instant::now() > end {
                return Err(format!("a stale owner: {}", self.upstreams()));
            }
            thread::sleep(LOOK);
        }
        Ok(())
    }

    /// The groups as the server lists them; empty without a server.
    fn upstreams(&self) -> String {
        let ask = || {
            let mut stream = UnixStream::connect(self.folder.join("control.sock"))?;
            stream.set_read_timeout(Some(REPLY_MAX))?;
            stream.write_all(b"GET /upstreams HTTP/1.0\r\n\r\n")?;
            let mut reply = String::new();
            stream.read_to_string(&mut reply).map(|_| reply)
        };
        ask().unwrap_or_default()
    }

    fn judge(&self, kills: u64) -> Result<(), String> {
        let watch = &self.watch;
        let (right, cut) = (watch.right.load(Relaxed), watch.cut.load(Relaxed));
        let name = &self.lists.arguments()[0];
        println!(
            "{name:6} {kills} rounds: {right} right replies, {cut} requests cut by kills, new \
             lists everywhere after at most {:.1?}",
            self.longest
        );
        match &watch.wrong.lock().map_err(|_| "a panic")?[..] {
            [] => Ok(()),
            [first, rest @ ..] => Err(format!("{} wrong replies: {first}", rest.len() + 1)),
        }
    }
}

fn configuration(folder: &Path, address: SocketAddr) -> String {
    let at = folder.display();
    let groups = (0..GROUPS).map(|group| format!("upstream g{group} {{ state {at}/g{group}; }}\n"));
    let places =
        (0..GROUPS).map(|group| format!("location = /{group} {{ proxy_pass http://g{group}; }}\n"));
    let (groups, places) = (groups.collect::<String>(), places.collect::<String>());
    format!(
        "daemon off; worker_processes 2; pid {at}/pid; error_log {at}/error.log;
control_socket unix:{at}/control.sock;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    {groups}
    server {{ listen {address}; {places} }}
}}
"
    )
}

/// A server that answers with this text.
fn backend(text: &'static str) -> Result<u16, String> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|err| err.to_string())?;
    let port = listener.local_addr().map_err(|err| err.to_string())?.port();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.set_read_timeout(Some(REPLY_MAX));
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(b"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\n");
            let _ = stream.write_all(text.as_bytes());
        }
    });
    Ok(port)
}

impl ReplyWatch {
    fn ask(&self, group: usize) -> std::io::Result<String> {
        let mut stream = TcpStream::connect(self.address)?;
        stream.set_read_timeout(Some(REPLY_MAX))?;
        write!(stream, "GET /{group} HTTP/1.0\r\n\r\n")?;
        let mut reply = String::new();
        stream.read_to_string(&mut reply).map(|_| reply)
    }

    fn ask_on(&self) {
        while !self.is_over.load(Relaxed) {
            for group in 0..GROUPS {
                let version = || self.version.lock().map_or(None, |version| *version);
                let before = version();
                let reply = self.ask(group);
                // Another list may have come while the request was under way.
                let version = before.filter(|before| version() == Some(*before));
                self.look_at(group, version, reply);
            }
        }
    }

    fn look_at(&self, group: usize, version: Option<u64>, reply: std::io::Result<String>) {
        let reply = reply.unwrap_or_else(|error| match error.kind() {
            std::io::ErrorKind::WouldBlock => format!("no reply in {REPLY_MAX:?}"),
            _ => String::new(),
        });
        let is_right = reply.starts_with("HTTP/1.1 200 ")
            && version.is_none_or(|version| reply.ends_with(&version.to_string()));
        match (reply.is_empty(), is_right) {
            (true, _) => _ = self.cut.fetch_add(1, Relaxed),
            (false, true) => _ = self.right.fetch_add(1, Relaxed),
            (false, false) => {
                let wrong = format!("group {group}, version {version:?}: {reply}");
                self.wrong.lock().map(|mut all| all.push(wrong)).unwrap_or_default();
            }
        }
    }
}

/// Numbers that look random.
struct RandomOrder(u64);

impl RandomOrder {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % end
    }

    /// One, two or three of three, in some order.
    fn some_of_three(&mut self) -> Vec<usize> {
        let count = 1 + self.below(3) as usize;
        let mut all = self.order(&[0, 1, 2]);
        all.truncate(count);
        all
    }

    fn order(&mut self, all: &[usize]) -> Vec<usize> {
        let mut left = all.to_vec();
        let take = |_| left.swap_remove(self.below(left.len() as u64) as usize);
        all.iter().map(take).collect()
    }
}
