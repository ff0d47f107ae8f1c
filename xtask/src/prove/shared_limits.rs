//! A rate that three servers enforce together through a store (Redis): what they admit, next to the
//! formula of docs/shared-limits.md, and what becomes of it while the store is gone.

mod store;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::ProofVerdict;
use super::folder::ProofFolder;
use crate::args::Args;
use crate::packages;
use crate::running::Running;
use crate::wrk::{self, WrkSummary};
use store::ProofStore;

const NODES: u64 = 3;
const RATES: [u64; 3] = [10, 1_000, 100_000];
/// The rate at which the store is stopped and killed.
const RATE_WITHOUT: u64 = 1_000;
const INTERVAL_MS: u64 = 100;
/// The exchanges themselves, on a machine that is busy with the load.
const EXCHANGE_MS: u64 = 100;
const CLIENTS: usize = 4;
/// Requests come in packs where the rate is measured: two processors do not reach it otherwise.
const PACKS: &str = "init = function()
    local pack = {}
    for place = 1, 16 do pack[place] = wrk.format() end
    packed = table.concat(pack)
end
request = function() return packed end
";
const LOOK: Duration = Duration::from_millis(50);
const PATIENCE: Duration = Duration::from_secs(20);

struct SharedServers {
    servers: Vec<Running>,
    rate: u64,
    burst: u64,
}

/// What all servers admitted during a load.
struct SharedRun {
    seconds: f64,
    admitted: u64,
    /// The most that was admitted beyond the limit of one machine, at any moment.
    overshoot: f64,
    /// How long it took to ask all servers, at most.
    look_s: f64,
    load: Vec<WrkSummary>,
}

pub(super) fn run(mut args: Args, weir: &Path) -> Result<ProofVerdict, String> {
    let seconds = args.parsed("--seconds", 10)?;
    args.end()?;
    for program in ["redis-server", "wrk"] {
        if packages::find(program).is_none() {
            return Ok(ProofVerdict::Skipped(format!("{program} is not installed")));
        }
    }
    println!(
        "     rate  burst  seconds   admitted  rate*s+burst+1  overshoot    bound  requests/s"
    );
    let folder = ProofFolder::new("shared-limits")?;
    let packs = folder.write("packs.lua", PACKS)?;
    for rate in RATES {
        let store = ProofStore::start()?;
        let servers = SharedServers::start(weir, &store, rate)?;
        let run = servers.load(seconds, Some(&packs))?;
        servers.print(&run);
        servers.judge(&run)?;
    }
    without_store(weir, seconds)?;
    Ok(ProofVerdict::Right)
}

/// The store is stopped, goes on, and is killed, under load.
fn without_store(weir: &Path, seconds: u64) -> Result<(), String> {
    let store = ProofStore::start()?;
    let servers = SharedServers::start(weir, &store, RATE_WITHOUT)?;
    println!("\nthe store    admitted/s   p50 ms   p99 ms   max ms");
    let show = |what: &str| -> Result<SharedRun, String> {
        let run = servers.load(seconds, None)?;
        let worst = |pick: fn(&WrkSummary) -> f64| run.load.iter().map(pick).fold(0.0, f64::max);
        let rate = run.admitted as f64 / run.seconds;
        let [p50, p99, max] =
            [worst(|load| load.p50_ms), worst(|load| load.p99_ms), worst(|load| load.max_ms)];
        println!("{what:10} {rate:12.1} {p50:8.2} {p99:8.2} {max:8.2}");
        Ok(run)
    };
    show("works")?;
    store.signal("STOP")?;
    servers.await_log("cannot be used", 1)?;
    let stopped = show("stopped")?;
    store.signal("CONT")?;
    servers.await_log("is used", 2)?;
    show("again")?;
    store.signal("KILL")?;
    servers.await_log("cannot be used", 2)?;
    let killed = show("killed")?;
    for run in [stopped, killed] {
        // Each server's share, which every one of them uses up.
        let (admitted, share) = (run.admitted as f64, servers.limit(run.seconds));
        if !(share * 0.9..=share * 1.02 + NODES as f64).contains(&admitted) {
            return Err(format!("{admitted} admitted without the store, and not {share:.0}"));
        }
    }
    Ok(())
}

impl SharedServers {
    fn start(weir: &Path, store: &ProofStore, rate: u64) -> Result<Self, String> {
        let burst = rate / 10;
        let http = format!(
            "limit_req_zone $server_protocol zone=shared:1m rate={rate}r/s
                 sync=valkey://127.0.0.1:{}?interval={INTERVAL_MS}ms;
             limit_req_log_level info;
             keepalive_requests 100000000;
             server {{
                 listen ADDRESS;
                 location / {{ limit_req zone=shared burst={burst} nodelay; empty_gif; }}
                 location /status {{ prometheus; }}
             }}",
            store.port
        );
        let start = |_| Running::start(weir, 1, &http);
        let servers = (0..NODES).map(start).collect::<Result<_, _>>()?;
        let started = Self { servers, rate, burst };
        started.await_log(&format!("{NODES} nodes"), 1)?;
        Ok(started)
    }

    fn await_log(&self, words: &str, times: usize) -> Result<(), String> {
        let end = Instant::now() + PATIENCE;
        for server in &self.servers {
            while server.log().matches(words).count() < times {
                if Instant::now() > end {
                    return Err(format!("no \"{words}\" in the log:\n{}", server.log()));
                }
                thread::sleep(LOOK);
            }
        }
        Ok(())
    }

    /// What one machine would admit.
    fn limit(&self, seconds: f64) -> f64 {
        self.rate as f64 * seconds + self.burst as f64 + 1.0
    }

    /// What all may admit beyond that, with the time after which others know of a request.
    fn overshoot_max(&self, lag_s: f64) -> f64 {
        (NODES - 1) as f64 * (self.burst as f64 + 1.0 + self.rate as f64 * lag_s)
    }

    /// Asks all servers as fast as they answer.
    fn load(&self, seconds: u64, script: Option<&Path>) -> Result<SharedRun, String> {
        let (first, begun) = (self.admitted()?, Instant::now());
        let mut run =
            SharedRun { seconds: 0.0, admitted: 0, overshoot: 0.0, look_s: 0.0, load: Vec::new() };
        let load = |server: &Running| {
            let url = format!("http://{}/", server.address);
            let script = script.map(Path::to_owned);
            thread::spawn(move || wrk::run_script(&url, CLIENTS, seconds, script.as_deref()))
        };
        let loads: Vec<_> = self.servers.iter().map(load).collect();
        while !loads.iter().all(thread::JoinHandle::is_finished) {
            thread::sleep(LOOK);
            let look_s = begun.elapsed().as_secs_f64();
            let admitted = self.admitted()? - first;
            run.overshoot = run.overshoot.max(admitted as f64 - self.limit(look_s));
            run.look_s = run.look_s.max(begun.elapsed().as_secs_f64() - look_s);
        }
        for load in loads {
            run.load.push(load.join().map_err(|_| "a load panicked".to_owned())??);
        }
        run.seconds = begun.elapsed().as_secs_f64();
        run.admitted = self.admitted()? - first;
        Ok(run)
    }

    fn admitted(&self) -> Result<u64, String> {
        self.servers.iter().map(passed).sum()
    }

    fn print(&self, run: &SharedRun) {
        let Self { rate, burst, .. } = self;
        let SharedRun { seconds, admitted, overshoot, load, .. } = run;
        let bound = self.overshoot_max(INTERVAL_MS as f64 / 1000.0);
        let asked: f64 = load.iter().map(|load| load.rate).sum();
        let limit = self.limit(*seconds);
        println!(
            "{rate:9} {burst:6} {seconds:8.2} {admitted:10} {limit:15.0} {overshoot:10.0} \
             {bound:8.0} {asked:11.0}"
        );
    }

    fn judge(&self, run: &SharedRun) -> Result<(), String> {
        let lag_s = (INTERVAL_MS + EXCHANGE_MS) as f64 / 1000.0;
        let bound = self.overshoot_max(lag_s) + self.rate as f64 * run.look_s;
        if run.overshoot > bound {
            return Err(format!("an overshoot of {:.0}, above {bound:.0}", run.overshoot));
        }
        let asked: f64 = run.load.iter().map(|load| load.rate).sum();
        let wanted = (self.rate as f64).min(asked) * run.seconds;
        if (run.admitted as f64) < wanted * 0.9 {
            return Err(format!("{} admitted of {wanted:.0}", run.admitted));
        }
        Ok(())
    }
}

/// The requests that a server has admitted, as its page says.
fn passed(server: &Running) -> Result<u64, String> {
    let fail = |error: std::io::Error| format!("{}: {error}", server.address);
    let mut stream = TcpStream::connect(server.address).map_err(fail)?;
    stream.write_all(b"GET /status HTTP/1.0\r\n\r\n").map_err(fail)?;
    let mut page = String::new();
    stream.read_to_string(&mut page).map_err(fail)?;
    let is_passed = |line: &&str| {
        line.starts_with("weir_limit_req_total{") && line.contains("result=\"passed\"")
    };
    let line = page.lines().find(is_passed);
    let number = line.and_then(|line| line.rsplit(' ').next()?.parse().ok());
    number.ok_or_else(|| format!("no requests on the page:\n{page}"))
}
