//! Whether full RSA handshakes that arrive as fast as one worker can process them delay the clients
//! that are already connected to that worker.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use processes::server::{Cores, MeasuredServer};
use processes::{certificate, procfs};
use statistics::median;

use super::latency::{GeneratorReport, report};
use super::{ProofFolder, ProofVerdict, free_port};
use crate::args::Args;
use crate::packages;

/// How many connections the flood opens at once.
const FLOODS: [usize; 3] = [16, 64, 256];

/// The clients whose latency is measured: connections, and requests a second.
const KEPT: usize = 16;
const RATE: u64 = 200;

/// How long the flood lasts before the first request that is measured, and after the last.
const MARGIN_SECONDS: u64 = 1;

/// The highest p99 of the median run, as a share of nginx's.
const P99_RATIO_MAX: f64 = 1.0 / 3.0;

/// A run counts if the worker was on its core for this share of it, and if its requests were
/// started in time: else the flood did not keep it busy, or the machine did other things. It is
/// repeated so often.
const BUSY_MIN: f64 = 0.9;
const LATE_P99_MAX_MS: f64 = 0.15;
const RUNS_MAX: usize = 12;

/// As SCHED_FIFO, the measured clients do not wait for the flood's, which share their core.
const REAL_TIME: [&str; 3] = ["chrt", "--fifo", "20"];

const CONF: &str = "worker_processes 1; daemon off; pid {d}/pid; error_log {d}/error.log;
events { worker_connections 4096; }
http {
    access_log off; keepalive_requests 100000000;
    server {
        listen 127.0.0.1:{port} ssl backlog=4096;
        ssl_certificate {d}/rsa.crt; ssl_certificate_key {d}/rsa.key;
        ssl_session_cache off; ssl_session_tickets off; ssl_ecdh_curve X25519;
        location / { return 200 \"hello world\"; }
    }
}
";

pub(super) fn run(mut args: Args, weir: &Path) -> Result<ProofVerdict, String> {
    let rounds = args.parsed("--rounds", 3)?;
    let seconds = args.parsed("--seconds", 3)?;
    let nginx = args.option("--nginx")?.map(PathBuf::from);
    args.end()?;
    packages::need(&[("openssl", "openssl")])?;
    let folder = ProofFolder::new("handshakes")?;
    certificate::make_rsa(&folder.join("rsa.key"), &folder.join("rsa.crt"))?;
    let plan =
        FloodPlan { weir: weir.into(), cores: Cores::of_this_machine()?, folder, rounds, seconds };
    println!("flood  server  handshakes/s   p99, ms    busy  late starts, p99 ms");
    for connections in FLOODS {
        if let Some(disturbed) = plan.prove(connections, nginx.as_deref())? {
            return Ok(ProofVerdict::Disturbed(disturbed));
        }
    }
    Ok(ProofVerdict::Right)
}

struct FloodPlan {
    weir: PathBuf,
    cores: Cores,
    folder: ProofFolder,
    rounds: usize,
    seconds: u64,
}

impl FloodPlan {
    /// Runs of the servers in turn, with so many connections that flood. What disturbed them.
    fn prove(&self, connections: usize, nginx: Option<&Path>) -> Result<Option<String>, String> {
        let servers = [("weir", Some(self.weir.as_path())), ("nginx", nginx)];
        let mut p99_ms = [Vec::new(), Vec::new()];
        for _ in 0..self.rounds {
            for ((name, program), p99_ms) in servers.iter().zip(&mut p99_ms) {
                let Some(program) = program else { continue };
                match self.undisturbed(name, program, connections)? {
                    Some(run) => p99_ms.push(run),
                    None => return Ok(Some(format!("{RUNS_MAX} runs were disturbed"))),
                }
            }
        }
        let [ours, theirs] = p99_ms;
        if nginx.is_some() { verdict(connections, &ours, &theirs).map(|()| None) } else { Ok(None) }
    }

    /// The p99 of a run that counts, in milliseconds.
    fn undisturbed(
        &self,
        name: &str,
        program: &Path,
        connections: usize,
    ) -> Result<Option<f64>, String> {
        for _ in 0..RUNS_MAX {
            let trial = self.trial(name, program, connections)?;
            if trial.busy >= BUSY_MIN && trial.late_p99_ms <= LATE_P99_MAX_MS {
                return Ok(Some(trial.p99_ms));
            }
        }
        Ok(None)
    }

    fn trial(&self, name: &str, program: &Path, connections: usize) -> Result<FloodTrial, String> {
        let port = free_port()?;
        let text = CONF.replace("{d}", &self.folder.0.to_string_lossy());
        let text = text.replace("{port}", &port.to_string());
        let text = if packages::is_root() { format!("user root;\n{text}") } else { text };
        let conf = self.folder.write("conf", &text)?;
        let server = MeasuredServer::pinned(program, self.cores.server, &conf, port)?;
        let url = format!("https://127.0.0.1:{port}/");
        let (flood, kept) = thread::scope(|scope| {
            let flood = scope.spawn(|| self.flood(connections, &url));
            thread::sleep(Duration::from_secs(MARGIN_SECONDS));
            let kept = self.measure(&server, &url);
            (flood.join().map_err(|_| "the flood panicked".to_owned()), kept)
        });
        let (flood, (kept, busy)) = (flood??, kept?);
        let trial = FloodTrial {
            p99_ms: kept.p99_us() / 1000.0,
            late_p99_ms: kept.late_p99_us / 1000.0,
            busy,
        };
        println!(
            "{connections:5}  {name:6}  {:12.0} {:9.2}  {:4.0} %  {:19.2}",
            flood.requests as f64 / self.flood_seconds() as f64,
            trial.p99_ms,
            busy * 100.0,
            trial.late_p99_ms
        );
        let expected = RATE * self.seconds;
        match kept.requests < expected {
            true => Err(format!("{name}: {} replies, of {expected}", kept.requests)),
            false => Ok(trial),
        }
    }

    fn flood_seconds(&self) -> u64 {
        self.seconds + 2 * MARGIN_SECONDS
    }

    /// Connections that are opened for one request each.
    fn flood(&self, connections: usize, url: &str) -> Result<GeneratorReport, String> {
        let (connections, seconds) =
            (format!("-c{connections}"), format!("-d{}s", self.flood_seconds()));
        let options = ["-t1", "--close", &connections, &seconds, url];
        report(self.load(&[]), &options, &self.folder.join("flood.json"))
    }

    /// Requests by the clock on connections that are kept, and how busy the worker was meanwhile.
    fn measure(
        &self,
        server: &MeasuredServer,
        url: &str,
    ) -> Result<(GeneratorReport, f64), String> {
        let real_time: &[&str] = if packages::is_root() { &REAL_TIME } else { &[] };
        let rate = format!("--rate={RATE}");
        let (connections, seconds) = (format!("-c{KEPT}"), format!("-d{}s", self.seconds));
        let options = ["-t1", &connections, &rate, &seconds, "--timeout=5s", url];
        let (begun, cpu_s) = (Instant::now(), procfs::cpu_s(server.pid())?);
        let kept = report(self.load(real_time), &options, &self.folder.join("kept.json"))?;
        let cpu_s = procfs::cpu_s(server.pid())? - cpu_s;
        Ok((kept, cpu_s / begun.elapsed().as_secs_f64()))
    }

    /// `weir load` on its core, started by these words.
    fn load(&self, starter: &[&str]) -> Command {
        let mut command = Command::new("taskset");
        command.args(["-c", &self.cores.load.to_string()]).args(starter);
        command.arg(&self.weir).arg("load");
        command
    }
}

/// A run of both loads.
struct FloodTrial {
    p99_ms: f64,
    /// By how much requests were started after their time, at p99.
    late_p99_ms: f64,
    /// The share of its time that the worker was on its core.
    busy: f64,
}

/// Compares the medians.
fn verdict(connections: usize, ours: &[f64], theirs: &[f64]) -> Result<(), String> {
    let [ours, theirs] = [ours, theirs].map(median);
    let ratio = ours / theirs;
    println!("{connections:5}  p99 {ours:.2} ms and {theirs:.2} ms: {ratio:.2}\n");
    match ratio <= P99_RATIO_MAX {
        true => Ok(()),
        false => Err(format!(
            "with {connections} connections at once, p99 is {ratio:.2} of nginx's; at most \
             {P99_RATIO_MAX:.2} is expected"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_medians_are_compared() {
        assert_eq!(verdict(16, &[1.0, 9.0, 1.0], &[3.1, 0.1, 3.1]), Ok(()));
        let why = verdict(16, &[2.0, 2.0], &[5.0, 5.0]).unwrap_err();
        assert!(why.contains("p99 is 0.40 of nginx's"), "{why}");
        assert!(verdict(16, &[f64::NAN], &[1.0]).is_err());
    }
}
