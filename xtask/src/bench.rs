//! The yardstick: what a server's processes cost per request, Weir against nginx.
//!
//! CPU time repeats where requests per second do not, and only as a ratio of two servers measured
//! in turn on the same configuration in one run. Each measurement has a fresh server. This says
//! nothing of latency.

mod answer;
mod idle;
mod load;
mod procfs;
mod report;
mod rows;
mod scratch;
pub(crate) mod server;

use std::io::IsTerminal;
use std::path::PathBuf;

use crate::args::Args;
use crate::weir_backend::WeirBackend;
use crate::{packages, project};
use answer::BenchAnswer;
use procfs::Cpu;
use report::BenchReport;
pub(crate) use report::median;
use rows::{BenchBackend, BenchRow, BenchWork, ROWS};
use scratch::BenchFolder;
use server::{BenchServer, Cores};

pub(crate) const HELP: &str = "CPU per request, Weir and nginx in turn, as ratios

Usage: cargo xtask bench [ROW[=GOAL]]... [--rounds N] [--seconds N]
                         [--weir PATH] [--nginx PATH]

  ROW           a row of bench/rows.rs; none: all
  GOAL          the highest ratio weir/nginx that passes; 0 only shows; none: the row's own
  --rounds N    pairs of measurements for each row, in the order ABBA (5)
  --seconds N   length of a measurement (2)
  --weir PATH   this program instead of a fresh release build
  --nginx PATH  this one instead of Debian's

Fails when a row is above its goal, an answer differs from nginx's, or a measurement fails.
Fewer than five rounds are for trying out.
";

/// Below this the spread of the ratio says little.
const ROUNDS_MEANT: usize = 5;

const PROGRAMS: &[(&str, &str)] = &[
    ("nginx", "nginx"),
    ("wrk", "wrk"),
    ("curl", "curl"),
    ("taskset", "util-linux"),
    ("setpriv", "util-linux"),
];

/// One of the two servers compared.
pub(crate) struct Contender {
    name: &'static str,
    binary: PathBuf,
}

/// What one run measures, and with what.
struct Bench {
    contenders: [Contender; 2],
    nginx: PathBuf,
    cores: Cores,
    scratch: BenchFolder,
    rounds: usize,
    seconds: u64,
}

/// One measurement of one server.
struct Sample {
    /// Microseconds of CPU per request, or bytes per connection.
    figure: f64,
    /// The same, of user and of system time, where the figure is time.
    split: Option<Cpu>,
    /// How busy the server's core and the load's were, 1 being wholly.
    busy: Option<(f64, f64)>,
    /// What went wrong without stopping the measurement.
    complaint: Option<String>,
    answer: BenchAnswer,
}

pub(crate) fn run(words: &[String]) -> Result<(), String> {
    let mut args = Args::new(words);
    let rounds = args.parsed("--rounds", ROUNDS_MEANT)?;
    let seconds = args.parsed("--seconds", 2)?;
    let weir = args.option("--weir")?.map(PathBuf::from);
    let nginx = args.option("--nginx")?.map(PathBuf::from);
    let goals = chosen(&args.words()?)?;
    if rounds == 0 || seconds == 0 {
        return Err("--rounds and --seconds are at least 1".into());
    }
    packages::need(PROGRAMS)?;
    server::raise_descriptors()?;
    let debian = packages::find("nginx").ok_or("nginx is not installed")?;
    let bench = Bench {
        contenders: [
            Contender { name: "weir", binary: weir.map_or_else(|| project::release("weir"), Ok)? },
            Contender { name: "nginx", binary: nginx.unwrap_or_else(|| debian.clone()) },
        ],
        nginx: debian,
        cores: Cores::of_this_machine()?,
        scratch: BenchFolder::new()?,
        rounds,
        seconds,
    };
    let report = bench.measure(&goals);
    report.verdict()
}

/// The rows named, each with its goal.
fn chosen(words: &[String]) -> Result<Vec<(&'static BenchRow, f64)>, String> {
    if words.is_empty() {
        return Ok(ROWS.iter().map(|row| (row, row.goal)).collect());
    }
    words.iter().map(|word| one_chosen(word)).collect()
}

fn one_chosen(word: &str) -> Result<(&'static BenchRow, f64), String> {
    let (name, goal) = word.split_once('=').map_or((word, None), |(name, goal)| (name, Some(goal)));
    let row = ROWS.iter().find(|row| row.name == name).ok_or_else(|| {
        let names: Vec<&str> = ROWS.iter().map(|row| row.name).collect();
        format!("there is no row \"{name}\": {}", names.join(" "))
    })?;
    match goal.map(str::parse::<f64>) {
        None => Ok((row, row.goal)),
        Some(Ok(goal)) if goal >= 0.0 => Ok((row, goal)),
        Some(_) => Err(format!("\"{word}\": the goal is a ratio")),
    }
}

impl Bench {
    fn measure(&self, goals: &[(&'static BenchRow, f64)]) -> BenchReport {
        let mut report = BenchReport::new(self.rounds);
        for (row, goal) in goals {
            let samples = self.row(row);
            progress("");
            report.add(row, *goal, samples);
        }
        report
    }

    /// The samples of both, in pairs; the first of a pair changes every round.
    fn row(&self, row: &BenchRow) -> Result<[Vec<Sample>; 2], String> {
        let mut samples = [Vec::new(), Vec::new()];
        for round in 0..self.rounds {
            for place in 0..2 {
                let which = (round + place) % 2;
                let contender = &self.contenders[which];
                let turn = format!("round {} of {}", round + 1, self.rounds);
                progress(&format!("{} {turn}: {}", row.name, contender.name));
                samples[which].push(self.sample(row, contender)?);
            }
        }
        Ok(samples)
    }

    fn sample(&self, row: &BenchRow, contender: &Contender) -> Result<Sample, String> {
        let site = self.scratch.site(row)?;
        let port = site.ports.backend;
        let (_nginx, _tunnels) = match row.backend {
            BenchBackend::None => (None, None),
            BenchBackend::Nginx => {
                let nginx = BenchServer::pinned(&self.nginx, self.cores.load, &site.backend, port)?;
                (Some(nginx), None)
            }
            BenchBackend::Tunnels => {
                (None, Some(WeirBackend::start(&self.contenders[0].binary, port, &["--upgrade"])?))
            }
        };
        let serves = match row.work {
            BenchWork::Generator { .. } => &self.nginx,
            BenchWork::Load(_) | BenchWork::Idle(_) => &contender.binary,
        };
        let server = BenchServer::pinned(serves, self.cores.server, &site.front, site.ports.http)?;
        let answer = answer::of(&site.fill(row.url))?;
        match &row.work {
            BenchWork::Load(generator) => {
                let generator = format!("{} {}", site.fill(generator), site.fill(row.url));
                load::sample(&server, &generator, self.cores.load, self.seconds, answer)
            }
            BenchWork::Idle(idle) => idle::sample(&server, site.ports.http, idle, answer),
            BenchWork::Generator { weir, wrk } => {
                let (program, options) = match contender.name {
                    "weir" => (format!("{} load -q", contender.binary.display()), weir),
                    _ => ("wrk".to_owned(), wrk),
                };
                let generator = site.fill(&format!("{program} {options} {}", row.url));
                load::sample_generator(&server, &generator, self.cores.load, self.seconds, answer)
            }
        }
    }
}

/// One line that the next one replaces, for a person who waits.
fn progress(line: &str) {
    if std::io::stderr().is_terminal() {
        eprint!("\r{line:40}{}", if line.is_empty() { "\r" } else { "" });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_chosen_with_their_goals() {
        let names = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            chosen(&words).map(|rows| rows.iter().map(|(row, goal)| (row.name, *goal)).collect())
        };
        assert_eq!(names(&["null=0.5", "idle"]), Ok(vec![("null", 0.5), ("idle", 0.6)]));
        assert!(names(&["nul"]).unwrap_err().contains("null 1k 10k"));
        assert!(names(&["null=fast"]).is_err());
        let all: Vec<(&str, f64)> = names(&[]).expect("every row");
        assert!(all.contains(&("close", 1.0)) && all.len() == ROWS.len());
    }
}
