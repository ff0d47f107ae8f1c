//! Whether others are served as fast, and nothing grows, while attackers are at work for as long
//! as one likes. Each attacker is one that once stopped a worker.

mod attackers;
mod hostile;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use processes::procfs;
use processes::server::{Cores, MeasuredServer};
use statistics::median;

use super::latency::{GeneratorReport, report};
use super::{ProofFolder, ProofVerdict, free_port};
use crate::args::Args;
use crate::{packages, project};
use attackers::{ATTACKERS, SoakTarget};

/// The clients whose latency is measured: connections, and requests a second.
const KEPT: usize = 16;
const RATE: u64 = 200;
/// As SCHED_FIFO, they do not wait for the attackers, which share their core.
const REAL_TIME: [&str; 3] = ["chrt", "--fifo", "20"];

/// Windows without attackers before and after, and the shortest window.
const QUIET_WINDOWS: u64 = 3;
const WINDOW_SECONDS_MIN: u64 = 5;
/// So many windows in the time under attack, unless they would be too short.
const WINDOWS: u64 = 60;

const RELOAD_EVERY: Duration = Duration::from_secs(15);

/// What the attackers may cost others: the median of the windows' p99, against the quiet ones'.
const P99_RATIO_MAX: f64 = 2.0;
/// What memory may grow by from the first third of the time under attack to the last.
const GROWTH_MAX: f64 = 1.1;
/// Connections of attackers end a moment after the attackers.
const SETTLE: Duration = Duration::from_secs(10);
/// Tolerance for descriptors that a server opens and closes in normal operation.
const DESCRIPTORS_SPARE: usize = 4;

const CONF: &str = "worker_processes 1; daemon off; pid {d}/pid; error_log {d}/error.log;
events { worker_connections 4096; }
http {
    access_log off; keepalive_requests 100000000; client_header_timeout 2s;
    server {
        listen 127.0.0.1:{port}; http2 on;
        location / { return 200 hello; }
        location /pieces { proxy_pass http://127.0.0.1:{pieces}; }
        location /errors { fastcgi_pass 127.0.0.1:{errors}; }
    }
}
";

pub(super) fn run(mut args: Args, weir: &Path) -> Result<ProofVerdict, String> {
    let minutes: u64 = args.parsed("--minutes", 60)?;
    let nginx = args.option("--nginx")?.map(PathBuf::from);
    args.end()?;
    let plan = SoakPlan {
        weir: weir.into(),
        cores: Cores::of_this_machine()?,
        folder: ProofFolder::new("soak")?,
        seconds: minutes * 60,
    };
    pin_to(plan.cores.load)?;
    if let Some(nginx) = nginx {
        println!("{}", nginx.display());
        plan.soak(&nginx)?.print();
        println!("{}", weir.display());
    }
    let soak = plan.soak(weir)?;
    soak.print();
    soak.judge().map(|()| ProofVerdict::Right)
}

/// Keeps the attackers off the server's core.
fn pin_to(core: usize) -> Result<(), String> {
    let (core, pid) = (core.to_string(), std::process::id().to_string());
    project::output(Command::new("taskset").args(["-cp", &core, &pid])).map(|_| ())
}

struct SoakPlan {
    weir: PathBuf,
    cores: Cores,
    folder: ProofFolder,
    seconds: u64,
}

impl SoakPlan {
    fn soak(&self, program: &Path) -> Result<Soak, String> {
        let (target, server) = self.start(program)?;
        let mut soak = Soak::default();
        for _ in 0..QUIET_WINDOWS {
            soak.quiet.push(self.window(&server, &target, "quiet")?);
        }
        soak.descriptors_before = procfs::descriptors(server.pid());
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            for attacker in ATTACKERS {
                scope.spawn(|| attacker.repeat(&target, &stop));
            }
            scope.spawn(|| reload_until(&server, &stop));
            let attacked = self.attacked(&server, &target);
            stop.store(true, Ordering::Relaxed);
            attacked.map(|windows| soak.attacked = windows)
        })?;
        thread::sleep(SETTLE);
        for _ in 0..QUIET_WINDOWS {
            soak.after.push(self.window(&server, &target, "after")?);
        }
        soak.descriptors_after = procfs::descriptors(server.pid());
        soak.wrong = target.wrong();
        Ok(soak)
    }

    fn start(&self, program: &Path) -> Result<(SoakTarget, MeasuredServer), String> {
        let target = SoakTarget::new(free_port()?);
        let text = CONF.replace("{d}", &self.folder.0.to_string_lossy());
        let text = text.replace("{port}", &target.address.port().to_string());
        let text = text.replace("{pieces}", &hostile::start(hostile::PIECES)?.to_string());
        let text = text.replace("{errors}", &hostile::start(hostile::ERRORS)?.to_string());
        let text = if packages::is_root() { format!("user root;\n{text}") } else { text };
        let conf = self.folder.write("conf", &text)?;
        let port = target.address.port();
        Ok((target, MeasuredServer::pinned(program, self.cores.server, &conf, port)?))
    }

    fn attacked(
        &self,
        server: &MeasuredServer,
        target: &SoakTarget,
    ) -> Result<Vec<SoakWindow>, String> {
        let end = Instant::now() + Duration::from_secs(self.seconds);
        let mut windows = Vec::new();
        while Instant::now() < end {
            windows.push(self.window(server, target, "attacked")?);
        }
        Ok(windows)
    }

    /// Requests by the clock for the length of a window; all of them must be answered.
    fn window(
        &self,
        server: &MeasuredServer,
        target: &SoakTarget,
        name: &str,
    ) -> Result<SoakWindow, String> {
        let seconds = (self.seconds / WINDOWS).max(WINDOW_SECONDS_MIN);
        let others = self.ask(&format!("http://{}/", target.address), seconds)?;
        // Each client may be waiting for a reply when the window ends.
        if others.requests + (KEPT as u64) < RATE * seconds {
            return Err(format!("{name}: {} replies, of {}", others.requests, RATE * seconds));
        }
        let window = SoakWindow {
            p99_ms: others.p99_us() / 1000.0,
            megabytes: procfs::memory(server.pid())? / 1e6,
        };
        let descriptors = procfs::descriptors(server.pid());
        let SoakWindow { p99_ms, megabytes } = window;
        println!("{name:9} p99 {p99_ms:7.2} ms {megabytes:7.1} MB {descriptors:5} descriptors");
        Ok(window)
    }

    fn ask(&self, url: &str, seconds: u64) -> Result<GeneratorReport, String> {
        let mut command = Command::new("taskset");
        command.args(["-c", &self.cores.load.to_string()]);
        command.args(if packages::is_root() { &REAL_TIME[..] } else { &[] });
        command.arg(&self.weir).arg("load");
        let (connections, rate) = (format!("-c{KEPT}"), format!("--rate={RATE}"));
        let options = ["-t1", &connections, &rate, &format!("-d{seconds}s"), "--timeout=5s", url];
        report(command, &options, &self.folder.join("others.json"))
    }
}

fn reload_until(server: &MeasuredServer, stop: &AtomicBool) {
    const LOOK: Duration = Duration::from_millis(100);
    let mut last = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        thread::sleep(LOOK);
        if last.elapsed() >= RELOAD_EVERY {
            last = Instant::now();
            let pid = server.pid().to_string();
            let _ = project::succeed(Command::new("kill").args(["-s", "HUP", &pid]));
        }
    }
}

struct SoakWindow {
    p99_ms: f64,
    megabytes: f64,
}

#[derive(Default)]
struct Soak {
    quiet: Vec<SoakWindow>,
    attacked: Vec<SoakWindow>,
    after: Vec<SoakWindow>,
    descriptors_before: usize,
    descriptors_after: usize,
    /// What attackers saw that must not be.
    wrong: Vec<String>,
}

impl Soak {
    fn p99_ms(windows: &[SoakWindow]) -> f64 {
        median(&windows.iter().map(|window| window.p99_ms).collect::<Vec<_>>())
    }

    fn megabytes(windows: &[SoakWindow]) -> f64 {
        median(&windows.iter().map(|window| window.megabytes).collect::<Vec<_>>())
    }

    /// The memory of the first and the last third of the time under attack.
    fn growth(&self) -> (f64, f64) {
        let third = self.attacked.len().div_ceil(3);
        let last = &self.attacked[self.attacked.len() - third..];
        (Self::megabytes(&self.attacked[..third]), Self::megabytes(last))
    }

    fn print(&self) {
        let (first, last) = self.growth();
        println!(
            "p99 {:.2} ms quiet, {:.2} ms under attack, {:.2} ms after; {:.1} MB quiet, \
             {first:.1} and {last:.1} MB under attack, {:.1} MB after; {} and {} descriptors\n",
            Self::p99_ms(&self.quiet),
            Self::p99_ms(&self.attacked),
            Self::p99_ms(&self.after),
            Self::megabytes(&self.quiet),
            Self::megabytes(&self.after),
            self.descriptors_before,
            self.descriptors_after,
        );
    }

    /// A machine may become slower or faster within an hour, so the quiet windows on both sides of
    /// the attack count alike.
    fn judge(&self) -> Result<(), String> {
        let (before, after) = (Self::p99_ms(&self.quiet), Self::p99_ms(&self.after));
        let ratio = Self::p99_ms(&self.attacked) / before.midpoint(after);
        let (first, last) = self.growth();
        if let Some(wrong) = self.wrong.first() {
            return Err(format!("{wrong}, and {} more", self.wrong.len() - 1));
        }
        if ratio > P99_RATIO_MAX {
            return Err(format!("others' p99 is {ratio:.1} times the quiet one"));
        }
        if after > before * P99_RATIO_MAX {
            return Err(format!("others' p99 stays {:.1} times as high", after / before));
        }
        if last > first * GROWTH_MAX {
            return Err(format!("memory grows: {first:.1} MB, then {last:.1} MB"));
        }
        if self.descriptors_after > self.descriptors_before + DESCRIPTORS_SPARE {
            let (before, after) = (self.descriptors_before, self.descriptors_after);
            return Err(format!("descriptors are left: {before} before, {after} after"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn windows(p99_ms: f64, megabytes: &[f64]) -> Vec<SoakWindow> {
        megabytes.iter().map(|&megabytes| SoakWindow { p99_ms, megabytes }).collect()
    }

    fn soak() -> Soak {
        Soak {
            quiet: windows(0.5, &[10.0; 3]),
            attacked: windows(0.9, &[12.0; 9]),
            after: windows(0.5, &[10.0; 3]),
            descriptors_before: 30,
            descriptors_after: 32,
            wrong: Vec::new(),
        }
    }

    #[test]
    fn a_soak_fails_for_slow_others_growth_left_descriptors_and_wrong_ends() {
        assert_eq!(soak().judge(), Ok(()));
        let slow = Soak { attacked: windows(1.1, &[12.0; 9]), ..soak() };
        let lasting = Soak { after: windows(1.2, &[10.0; 3]), ..soak() };
        let grown = Soak { attacked: windows(0.9, &[12.0, 12.0, 12.0, 15.0, 15.0]), ..soak() };
        let left = Soak { descriptors_after: 35, ..soak() };
        let wrong = Soak { wrong: vec!["open for ever".into()], ..soak() };
        for (failed, why) in [
            (slow, "2.2 times"),
            (lasting, "stays 2.4 times"),
            (grown, "memory grows"),
            (left, "descriptors are left"),
            (wrong, "open for ever"),
        ] {
            assert!(failed.judge().is_err_and(|message| message.contains(why)), "{why}");
        }
    }
}
