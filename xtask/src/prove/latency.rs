//! Whether the latencies that `weir load` reports are those that requests had.
//!
//! The backend keeps a schedule of delays and pauses, so what they had is known twice without the
//! generator: from the schedule alone, and from the times in the backend's log. A closed loop and
//! wrk are shown beside it. Nothing is said here about how fast anything is.

mod figures;
mod load;
mod log;
mod schedule;

use std::fs;
use std::path::{Path, PathBuf};

use super::{ProofFolder, ProofVerdict};
use crate::args::Args;
use crate::packages;
use crate::weir_backend::WeirBackend;
use crate::wrk::{self, WrkSummary};
use figures::{Figures, names};
pub(super) use load::{GeneratorReport, report};
use log::BackendLog;

/// A wrong figure says nothing if the generator or the backend did something so much too late.
const DISTURBED_US: u64 = 2000;
/// The generator's own judgement of when its threads are too busy.
const BUSY_MAX: f64 = 0.9;

pub(super) fn run(mut args: Args, weir: &Path) -> Result<ProofVerdict, String> {
    let seconds = args.parsed("--seconds", 60)?;
    let runs = args.parsed("--runs", 5)?;
    let is_alone = args.flag("--alone");
    args.end()?;
    if seconds < schedule::SECONDS_MIN {
        return Err(format!("--seconds {seconds}: there is no pause in it"));
    }
    let folder = ProofFolder::in_memory("latency")?;
    LatencyPlan { weir: weir.into(), folder, seconds, is_alone }.prove(runs)
}

struct LatencyPlan {
    weir: PathBuf,
    folder: ProofFolder,
    seconds: u64,
    is_alone: bool,
}

impl LatencyPlan {
    fn prove(&self, runs: usize) -> Result<ProofVerdict, String> {
        for number in 1..=runs {
            let trial = self.trial()?;
            print!("{}", trial.table());
            let (faults, late) = (trial.faults(0.0), trial.disturbances());
            if faults.is_empty() {
                print!("{}", self.beside()?);
                println!("\nright; {}", trial.lateness());
                return Ok(ProofVerdict::Right);
            }
            let excused_us = trial.open.late_us + trial.log.late_us() as f64;
            if late.is_empty() || !trial.faults(excused_us).is_empty() {
                return Err(faults.join("\n"));
            }
            println!("\nrun {number} of at most {runs}: {}", faults.join("\n"));
            println!("but {}\n", late.join("; "));
        }
        Ok(ProofVerdict::Disturbed(format!("the machine spoilt each of {runs} runs")))
    }

    fn trial(&self) -> Result<Trial, String> {
        let requests = self.seconds * schedule::RATE;
        let (open, log) =
            self.with_backend(|url| load::open(&self.weir, url, self.seconds, &self.folder.0))?;
        let schedule = Figures::of(schedule::latencies_us(requests));
        Ok(Trial { requests, schedule, log, open })
    }

    /// Rows of what others make of it.
    fn beside(&self) -> Result<String, String> {
        if self.is_alone {
            return Ok(String::new());
        }
        let (closed, _) =
            self.with_backend(|url| load::closed(&self.weir, url, self.seconds, &self.folder.0))?;
        let mut rows = row("weir load, closed loop", &closed.figures, closed.requests);
        if packages::find("wrk").is_some() {
            let (wrk, log) =
                self.with_backend(|url| wrk::run(url, schedule::clients() as usize, self.seconds))?;
            rows += &row("wrk", &figures_of(&wrk), log.requests() as u64);
        }
        Ok(rows)
    }

    fn with_backend<T>(
        &self,
        work: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<(T, BackendLog), String> {
        let log = self.folder.join("backend.log");
        let (options, name) = (schedule::options(), log.display().to_string());
        let mut options: Vec<&str> = options.iter().map(String::as_str).collect();
        options.extend(["--log", &name]);
        let backend = WeirBackend::start(&self.weir, 0, &options)?;
        let done = work(&format!("http://127.0.0.1:{}/", backend.port))?;
        backend.end()?;
        let text = fs::read_to_string(&log).map_err(|err| format!("{name}: {err}"))?;
        Ok((done, BackendLog::parse(&text)?))
    }
}

/// wrk has no p99.9.
fn figures_of(wrk: &WrkSummary) -> Figures {
    let figures = [Some(wrk.p50_ms), Some(wrk.p99_ms), None, Some(wrk.max_ms)];
    Figures(figures.map(|ms| ms.map(|ms| ms * 1000.0)))
}

/// A run in open loop, and what it should have found.
struct Trial {
    requests: u64,
    schedule: Figures,
    log: BackendLog,
    open: GeneratorReport,
}

impl Trial {
    fn disturbances(&self) -> Vec<String> {
        let late = |what: &str, us: f64| {
            let is_late = us > DISTURBED_US as f64;
            is_late.then(|| format!("{what} up to {:.1} ms late", us / 1000.0))
        };
        let busy = self.open.busiest_thread;
        let reasons = [
            late("the generator started requests", self.open.late_us),
            late("the backend answered", self.log.late_us() as f64),
            (busy > BUSY_MAX).then(|| {
                format!("the generator's busiest thread took {:.0} % of a CPU", busy * 100.0)
            }),
        ];
        reasons.into_iter().flatten().collect()
    }

    /// For the reader of a table: how far the machine kept to the schedule.
    fn lateness(&self) -> String {
        format!(
            "starts were late by {:.2} ms at most, 99 % by less than {:.2} ms, answers by {:.2} ms",
            self.open.late_us / 1000.0,
            self.open.late_p99_us / 1000.0,
            self.log.late_us() as f64 / 1000.0
        )
    }

    fn faults(&self, excused_us: f64) -> Vec<String> {
        let mut faults = self.open.figures.faults(&self.schedule, "the schedule", excused_us);
        let of_log = Figures::of(self.log.latencies_us());
        faults.extend(self.open.figures.faults(&of_log, "the backend's log", excused_us));
        for (count, where_) in [
            (self.open.requests, "replies, the generator says"),
            (self.log.requests() as u64, "requests, the backend's log says"),
        ] {
            if count != self.requests {
                faults.push(format!("{count} {where_}, of {}", self.requests));
            }
        }
        faults
    }

    fn table(&self) -> String {
        let heads = names().map(|name| format!(" {:>8} |", format!("{name}"))).concat();
        let of_log = Figures::of(self.log.latencies_us());
        format!("| {:<24} |{heads} requests |\n|--------------------------|", "latency in ms")
            + &"---------:|".repeat(names().len() + 1)
            + "\n"
            + &row("by the schedule", &self.schedule, self.requests)
            + &row("by the backend's log", &of_log, self.log.requests() as u64)
            + &row("weir load, open loop", &self.open.figures, self.open.requests)
    }
}

fn row(name: &str, figures: &Figures, requests: u64) -> String {
    format!("| {name:<24} |{} {requests:>8} |\n", figures.cells())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run without fault, 100 us behind the schedule.
    fn trial() -> Trial {
        let requests = 2400;
        let line = |number| {
            let arrived_us = 1_000_000 + schedule::start_us(number);
            let begun_us = 1_000_000 + schedule::answer_us(number, schedule::start_us(number));
            format!("{arrived_us} {begun_us} {} 200 79 GET /\n", begun_us + 50)
        };
        let log = BackendLog::parse(&(0..requests).map(line).collect::<String>()).unwrap();
        let seen = schedule::latencies_us(requests).iter().map(|us| us + 100).collect();
        let open = GeneratorReport {
            figures: Figures::of(seen),
            requests,
            late_us: 150.0,
            late_p99_us: 80.0,
            busiest_thread: 0.02,
        };
        let schedule = Figures::of(schedule::latencies_us(requests));
        Trial { requests, schedule, log, open }
    }

    #[test]
    fn a_right_generator_is_right() {
        assert_eq!(trial().faults(0.0), Vec::<String>::new());
        assert_eq!(trial().disturbances(), Vec::<String>::new());
    }

    /// Counted from when it was sent, no request that came in a pause waits for its end.
    #[test]
    fn one_that_leaves_out_waiting_is_not() {
        let mut trial = trial();
        trial.open.figures.0[1] = Some(252_000.0);
        let faults = trial.faults(1000.0);
        assert!(faults[0].contains("by the schedule") && faults[1].contains("log"), "{faults:?}");
    }

    #[test]
    fn lost_requests_are_a_fault() {
        let mut trial = trial();
        trial.open.requests -= 1;
        assert_eq!(trial.faults(1e9), ["2399 replies, the generator says, of 2400"]);
    }

    #[test]
    fn who_was_late_is_named() {
        let mut trial = trial();
        (trial.open.late_us, trial.open.busiest_thread) = (2500.0, 0.95);
        let late = trial.disturbances();
        assert_eq!(late[0], "the generator started requests up to 2.5 ms late");
        assert_eq!(late[1], "the generator's busiest thread took 95 % of a CPU");
    }
}
