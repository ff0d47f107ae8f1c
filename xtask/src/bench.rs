//! The yardstick: what a server's processes cost per request, Weir against nginx.
//!
//! CPU time repeats where requests per second do not, and only as a ratio of two servers measured
//! in turn on the same configuration in one run. Both servers run at once on one core, and each
//! gets short turns of load, so that what else the machine does meets both. CPU time is the
//! scheduler's account in nanoseconds, and what counts is the ratio within a round. Memory, and the
//! generator itself, are measured with a fresh server each time. This says nothing of latency.

mod answer;
mod idle;
mod load;
mod report;
mod rows;
mod sample;
mod scratch;

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use processes::server::{self, Cores, MeasuredServer};

use crate::args::Args;
use crate::weir_backend::WeirBackend;
use crate::{packages, project};
use answer::BenchAnswer;
use report::BenchReport;
use rows::{BenchBackend, BenchRow, BenchWork, ROWS, TurnLoad};
use sample::{ContenderSamples, Sample};
use scratch::{BenchFolder, BenchSite};
pub(crate) use scratch::{ECDSA_KEY, RSA_KEY, make_certificate};

pub(crate) const HELP: &str = "CPU per request, Weir and nginx in turn, as ratios

Usage: cargo xtask bench [ROW[=GOAL]]... [--rounds N] [--turn MS] [--seconds N]
                         [--weir PATH] [--nginx PATH]

  ROW           a row of bench/rows.rs; none: all
  GOAL          the highest ratio weir/nginx that passes; 0 only shows; none: the row's own
  --rounds N    turns of each server, in the order ABBA (24); rows of memory and of the load
                generator have a fifth as many
  --turn MS     length of a turn (200)
  --seconds N   length of a measurement of the load generator (2)
  --weir PATH   this program instead of a fresh release build
  --nginx PATH  this one instead of Debian's

Fails when a row is above its goal, an answer differs from nginx's, or a measurement fails.
The ratio is the median over the rounds, its quartiles in brackets. Fewer than 16 rounds are for
trying out.
";

const ROUNDS: usize = 24;
/// Turns for each measurement with a fresh server, which takes seconds.
const TURNS_PER_LONG_ROUND: usize = 5;
const TURN_MS: u64 = 200;
const SECONDS: u64 = 2;

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
    turn_ms: u64,
    seconds: u64,
}

/// A server that serves a row, with what stands behind it.
struct RunningContender {
    server: MeasuredServer,
    site: BenchSite,
    answer: BenchAnswer,
    _nginx: Option<MeasuredServer>,
    _tunnels: Option<WeirBackend>,
}

pub(crate) fn run(words: &[String]) -> Result<(), String> {
    let mut args = Args::new(words);
    let rounds = args.parsed("--rounds", ROUNDS)?;
    let turn_ms = args.parsed("--turn", TURN_MS)?;
    let seconds = args.parsed("--seconds", SECONDS)?;
    let weir = args.option("--weir")?.map(PathBuf::from);
    let nginx = args.option("--nginx")?.map(PathBuf::from);
    let goals = chosen(&args.words()?)?;
    if rounds == 0 || seconds == 0 || turn_ms == 0 {
        return Err("--rounds, --turn and --seconds are at least 1".into());
    }
    packages::need(PROGRAMS)?;
    let weir = weir.map_or_else(|| project::release("weir"), Ok)?;
    let mut bench = Bench { rounds, turn_ms, seconds, ..Bench::new(weir)? };
    if let Some(nginx) = nginx {
        bench.contenders[1].binary = nginx;
    }
    if goals.iter().any(|(row, _)| row.has_tls()) {
        bench.certify()?;
    }
    if goals.iter().any(|(row, _)| row.peer() == "h2load") {
        packages::need(&[("h2load", "nghttp2-client")])?;
    }
    let report = bench.measure(&goals);
    report.verdict()
}

/// Has Weir serve each row that is a load for one turn, without measuring anything.
pub(crate) fn exercise(weir: &Path, turn_ms: u64) -> Result<(), String> {
    packages::need(PROGRAMS)?;
    let bench = Bench { turn_ms, ..Bench::new(weir.to_owned())? };
    bench.certify()?;
    for row in ROWS {
        if let BenchWork::Load(turn) = &row.work {
            let [weir, _] = &bench.contenders;
            let running = bench.start(row, weir)?;
            load::sample(&running.server, &bench.turn_of(row, turn, &running), bench.cores.load)?;
        }
    }
    Ok(())
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
    /// Weir next to Debian's nginx.
    fn new(weir: PathBuf) -> Result<Self, String> {
        server::raise_descriptors()?;
        let nginx = packages::find("nginx").ok_or("nginx is not installed")?;
        Ok(Self {
            contenders: [
                Contender { name: "weir", binary: weir },
                Contender { name: "nginx", binary: nginx.clone() },
            ],
            nginx,
            cores: Cores::of_this_machine()?,
            scratch: BenchFolder::new()?,
            rounds: ROUNDS,
            turn_ms: TURN_MS,
            seconds: SECONDS,
        })
    }

    fn certify(&self) -> Result<(), String> {
        packages::need(&[("openssl", "openssl")])?;
        self.scratch.certify()
    }

    fn measure(&self, goals: &[(&'static BenchRow, f64)]) -> BenchReport {
        let mut report = BenchReport::new(self.rounds);
        for (row, goal) in goals {
            let samples = self.row(row);
            progress("");
            report.add(row, *goal, samples);
        }
        report
    }

    fn row(&self, row: &BenchRow) -> Result<[ContenderSamples; 2], String> {
        match &row.work {
            BenchWork::Load(turn) => self.short_turns(row, turn),
            BenchWork::Idle(_) | BenchWork::Generator { .. } => self.long_turns(row),
        }
    }

    /// Both servers run, and each gets its turn in every round.
    fn short_turns(
        &self,
        row: &BenchRow,
        turn: &TurnLoad,
    ) -> Result<[ContenderSamples; 2], String> {
        let [weir, nginx] = &self.contenders;
        let running = [self.start(row, weir)?, self.start(row, nginx)?];
        let commands = running.each_ref().map(|running| self.turn_of(row, turn, running));
        let sample =
            |which: usize| load::sample(&running[which].server, &commands[which], self.cores.load);
        // The first turns are not counted: caches are filled, connections to backends opened.
        let _warm_up = [sample(0)?, sample(1)?];
        let samples = self.alternate(row, self.rounds, sample)?;
        let answers = running.map(|running| running.answer);
        Ok(with_answers(samples, answers))
    }

    /// The generator's command for a turn of this row.
    fn turn_of(&self, row: &BenchRow, turn: &TurnLoad, running: &RunningContender) -> Vec<String> {
        let [weir, _] = &self.contenders;
        let url = running.site.fill(row.url);
        load::of_turn(&weir.binary, turn, self.turn_ms, &running.site.list, &url)
    }

    /// Each measurement has a fresh server.
    fn long_turns(&self, row: &BenchRow) -> Result<[ContenderSamples; 2], String> {
        let mut answers = [None, None];
        let rounds = self.rounds.div_ceil(TURNS_PER_LONG_ROUND);
        let samples = self.alternate(row, rounds, |which| {
            let (sample, answer) = self.long_turn(row, &self.contenders[which])?;
            answers[which] = Some(answer);
            Ok(sample)
        })?;
        match answers {
            [Some(weir), Some(nginx)] => Ok(with_answers(samples, [weir, nginx])),
            _ => Err("no round".into()),
        }
    }

    /// The samples of both, in pairs; the first of a pair changes every round.
    fn alternate(
        &self,
        row: &BenchRow,
        rounds: usize,
        mut sample: impl FnMut(usize) -> Result<Sample, String>,
    ) -> Result<[Vec<Sample>; 2], String> {
        let mut samples = [Vec::new(), Vec::new()];
        for round in 0..rounds {
            for place in 0..2 {
                let which = (round + place) % 2;
                let name = self.contenders[which].name;
                progress(&format!("{} round {} of {rounds}: {name}", row.name, round + 1));
                samples[which].push(sample(which)?);
            }
        }
        Ok(samples)
    }

    fn start(&self, row: &BenchRow, contender: &Contender) -> Result<RunningContender, String> {
        let site = self.scratch.site(row, contender.name)?;
        let port = site.ports.backend;
        let (_nginx, _tunnels) = match row.backend {
            BenchBackend::None => (None, None),
            BenchBackend::Nginx => {
                let nginx =
                    MeasuredServer::pinned(&self.nginx, self.cores.load, &site.backend, port)?;
                (Some(nginx), None)
            }
            BenchBackend::Tunnels => {
                (None, Some(WeirBackend::start(&self.contenders[0].binary, port, &["--upgrade"])?))
            }
            BenchBackend::Datagrams => {
                let (weir, echo) = (&self.contenders[0].binary, format!("127.0.0.1:{port}"));
                (None, Some(WeirBackend::start(weir, port, &["--udp-echo", &echo])?))
            }
        };
        let serves = match row.work {
            BenchWork::Generator { .. } => &self.nginx,
            BenchWork::Load(_) | BenchWork::Idle(_) => &contender.binary,
        };
        let server =
            MeasuredServer::pinned(serves, self.cores.server, &site.front, site.ports.http)?;
        let url = site.fill(row.url);
        let answer = match row.work.datagram() {
            Some(body) => answer::of_datagram(&url, body)?,
            None => answer::of(&url, row.work.is_http2())?,
        };
        Ok(RunningContender { server, site, answer, _nginx, _tunnels })
    }

    fn long_turn(
        &self,
        row: &BenchRow,
        contender: &Contender,
    ) -> Result<(Sample, BenchAnswer), String> {
        let running = self.start(row, contender)?;
        let site = &running.site;
        let sample = match &row.work {
            BenchWork::Load(_) => return Err("it is measured in short turns".into()),
            BenchWork::Idle(idle) => idle::sample(&running.server, site.ports.http, idle),
            BenchWork::Generator { weir, peer } => {
                let command = match contender.name {
                    "weir" => format!("{} load -q {weir}", contender.binary.display()),
                    _ => (*peer).to_owned(),
                };
                let generator = site.fill(&format!("{command} {}", row.url));
                load::sample_generator(&generator, self.cores.load, self.seconds)
            }
        };
        Ok((sample?, running.answer))
    }
}

fn with_answers(samples: [Vec<Sample>; 2], answers: [BenchAnswer; 2]) -> [ContenderSamples; 2] {
    let ([weir, nginx], [of_weir, of_nginx]) = (samples, answers);
    [
        ContenderSamples { samples: weir, answer: of_weir },
        ContenderSamples { samples: nginx, answer: of_nginx },
    ]
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
        assert_eq!(names(&["null=0.5", "idle"]), Ok(vec![("null", 0.5), ("idle", 0.5)]));
        assert!(names(&["nul"]).unwrap_err().contains("null null-vary null-alone 1k"));
        assert!(names(&["null=fast"]).is_err());
        let all: Vec<(&str, f64)> = names(&[]).expect("every row");
        assert!(all.contains(&("close", 0.95)) && all.len() == ROWS.len());
    }
}
