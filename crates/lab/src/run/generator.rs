//! `weir load` as the generator of a row: one process, whose connections stay open between turns.
//!
//! It is started before the first turn (`--on-demand`) and runs one turn for each line on its
//! standard input. The rate of a turn is measured while every connection is at work, and a turn
//! ends when every request has its reply: none is cut off.

use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::distribution::LatencyCounts;
use crate::figures::MeasuredRun;
use crate::study::StudySearch;

/// The parameters of the generator's turns.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GeneratorTurn {
    /// The words before the command that place it on a host and a processor.
    #[serde(skip)]
    pub(crate) placed: Vec<String>,
    pub(crate) connections: u32,
    pub(crate) turn_ms: u64,
    /// Further options of `weir load`.
    pub(crate) options: Vec<String>,
    pub(crate) url: String,
    /// Further URLs of the same server, requested in turn with it.
    #[serde(default)]
    pub(crate) further_urls: Vec<String>,
}

/// A generator that waits for its next turn. Dropping it ends the process.
pub(crate) struct RunningGenerator {
    child: Child,
    /// The process's standard input; each line begins a turn. `None` once the process is ended.
    orders: Option<ChildStdin>,
    results: Lines<BufReader<ChildStdout>>,
    command: String,
}

impl GeneratorTurn {
    /// Starts a generator for these turns. The server must already accept connections.
    pub(crate) fn start(&self, weir: &Path) -> Result<RunningGenerator, String> {
        let extent = [format!("-c{}", self.connections), format!("-d{}ms", self.turn_ms)];
        let words = self.words(weir, &extent, &["--on-demand".to_owned()]);
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).stdin(Stdio::piped());
        let spawned = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = spawned.map_err(|error| format!("{}: {error}", words[0]))?;
        let (orders, results) = (child.stdin.take(), child.stdout.take());
        let results = results.ok_or("the generator has no standard output")?;
        let results = BufReader::new(results).lines();
        Ok(RunningGenerator { child, orders, results, command: words.join(" ") })
    }

    /// Sends one request and returns the status of its reply.
    pub(super) fn probe(&self, weir: &Path) -> Result<String, String> {
        let extent = ["-c1".to_owned(), "-n1".to_owned()];
        let words = self.words(weir, &extent, &["--json".to_owned(), "-".to_owned()]);
        let output = Command::new(&words[0]).args(&words[1..]).stdin(Stdio::null()).output();
        let output = output.map_err(|error| format!("{}: {error}", words[0]))?;
        status(&output.stdout).ok_or_else(|| {
            let message = String::from_utf8_lossy(&output.stderr);
            format!("{}\nhad no reply: {}", words.join(" "), message.trim_end())
        })
    }

    /// Whether replies have a status; datagrams have none.
    pub(super) fn has_statuses(&self) -> bool {
        self.url.starts_with("http")
    }

    /// Searches the highest rate at which latency keeps a bound; also returns the number of rates
    /// tried. The rate is 0 if none keeps it.
    pub(super) fn search(&self, weir: &Path, search: &StudySearch) -> Result<(f64, usize), String> {
        let extent = [format!("-c{}", self.connections), format!("-d{}ms", search.step_ms)];
        let output = ["--search", &search.bound, "--json", "-"].map(str::to_owned);
        let words = self.words(weir, &extent, &output);
        let output = Command::new(&words[0]).args(&words[1..]).stdin(Stdio::null()).output();
        let output = output.map_err(|error| format!("{}: {error}", words[0]))?;
        highest(&output.stdout).ok_or_else(|| {
            let message = String::from_utf8_lossy(&output.stderr);
            format!("{}\nfound nothing: {}", words.join(" "), message.trim_end())
        })
    }

    /// The requests at once on a connection, with HTTP/2.
    pub(super) fn streams(&self) -> Option<&str> {
        let place = self.options.iter().position(|word| word == "--streams");
        place.and_then(|place| self.options.get(place + 1)).map(String::as_str)
    }

    /// The path of the requests.
    pub(super) fn path(&self) -> &str {
        let behind_scheme = self.url.find("://").map_or(0, |at| at + 3);
        let slash = self.url[behind_scheme..].find('/');
        slash.map_or("/", |at| &self.url[behind_scheme + at..])
    }

    fn words(&self, weir: &Path, extent: &[String], output: &[String]) -> Vec<String> {
        let mut words = self.placed.clone();
        words.extend([weir.display().to_string(), "load".into(), "-q".into(), "-t1".into()]);
        words.extend_from_slice(extent);
        words.extend_from_slice(&self.options);
        words.extend_from_slice(output);
        words.push(self.url.clone());
        words.extend_from_slice(&self.further_urls);
        words
    }
}

impl RunningGenerator {
    /// The id of the process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Runs a turn. The caller adds the figures of the server's processes.
    pub(crate) fn turn(&mut self) -> Result<MeasuredRun, String> {
        let turn = self.turn_json()?;
        read(&turn).ok_or_else(|| format!("{}\nprinted no results: {turn}", self.command))
    }

    /// Runs a turn and returns what the generator prints about it.
    pub(super) fn turn_json(&mut self) -> Result<Value, String> {
        let begun = self.orders.as_mut().map(|orders| orders.write_all(b"\n"));
        if begun.is_some_and(|begun| begun.is_ok())
            && let Some(Ok(line)) = self.results.next()
        {
            return serde_json::from_str(&line)
                .map_err(|_| format!("{}\nprinted no results: {line}", self.command));
        }
        Err(self.failure())
    }

    /// Ends the process; returns the message that it printed.
    fn failure(&mut self) -> String {
        self.end();
        let mut message = String::new();
        if let Some(errors) = &mut self.child.stderr {
            let _ = errors.read_to_string(&mut message);
        }
        format!("{}\nended: {}", self.command, message.trim_end())
    }

    fn end(&mut self) {
        self.orders = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for RunningGenerator {
    fn drop(&mut self) {
        self.end();
    }
}

/// The status of the only reply.
fn status(json: &[u8]) -> Option<String> {
    let run: Value = serde_json::from_slice(json).ok()?;
    run["status_codes"].as_object()?.keys().next().cloned()
}

/// The highest rate of a search's steps that kept the bound, and the number of steps.
fn highest(json: &[u8]) -> Option<(f64, usize)> {
    let steps: Value = serde_json::from_slice(json).ok()?;
    // One step is no list.
    let steps = steps.as_array().cloned().unwrap_or_else(|| vec![steps]);
    let mut highest = 0.0;
    for step in &steps {
        let rate = step["pace"]["from"].as_f64()?;
        if step["expectations"][0]["kept"].as_bool()? {
            highest = rate.max(highest);
        }
    }
    (!steps.is_empty()).then_some((highest, steps.len()))
}

/// The figures of a turn; docs/load-json.md explains the fields of its run. A turn without replies
/// has figures too: its rate is 0.
fn read(turn: &Value) -> Option<MeasuredRun> {
    let run = &turn["run"];
    let latency = |name: &str| run["latency_us"][name].as_f64().unwrap_or_default();
    let errors = run["errors"].as_object()?.values().filter_map(Value::as_u64).sum::<u64>();
    let bad = run["statuses"].as_array()?.iter().enumerate().filter(|(digit, _)| *digit != 2);
    let bad = bad.filter_map(|(_, count)| count.as_u64()).sum::<u64>();
    Some(MeasuredRun {
        requests: run["replies"].as_u64()?,
        seconds: run["elapsed_s"].as_f64()?,
        errors: errors + bad + run["slow"]["failed"].as_u64().unwrap_or_default(),
        rate: turn["steady_replies_per_s"].as_f64()?,
        mean_us: latency("mean"),
        p50_us: latency("p50"),
        p90_us: latency("p90"),
        p99_us: latency("p99"),
        p999_us: latency("p99.9"),
        p9999_us: latency("p99.99"),
        max_us: latency("max"),
        reply_bytes: run["bytes"].as_f64().unwrap_or_default()
            / run["replies"].as_u64()?.max(1) as f64,
        latencies: latencies(&run["latency_us"]["counts"]),
        generator_busy: run["busiest_thread"].as_f64().unwrap_or_default(),
        ..MeasuredRun::default()
    })
}

fn latencies(counts: &Value) -> LatencyCounts {
    let pairs = counts.as_array().into_iter().flatten();
    LatencyCounts::of(pairs.filter_map(|pair| Some((pair[0].as_u64()?, pair[1].as_u64()?))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generators_json_is_read() {
        let json = r#"{"steady_replies_per_s": 2000, "run": {"replies": 600, "bytes": 1200,
            "elapsed_s": 0.31, "busiest_thread": 0.5, "statuses": [0, 0, 590, 0, 10, 0],
            "errors": {"reset": 2, "timeout": 1}, "slow": {"failed": 4},
            "latency_us": {"mean": 1.5, "p50": 1, "p99": 9.0, "p99.9": 10, "max": 11,
                "counts": [[1, 300], [10, 300]]}}}"#;
        let run = read(&serde_json::from_str(json).unwrap()).unwrap();
        assert_eq!((run.requests, run.errors, run.rate), (600, 17, 2000.0));
        assert_eq!((run.p50_us, run.p999_us, run.generator_busy), (1.0, 10.0, 0.5));
        assert_eq!(run.reply_bytes, 2.0);
        assert_eq!(run.latencies, LatencyCounts::of([(1, 300), (10, 300)]));
    }

    #[test]
    fn the_status_of_one_reply_is_read() {
        let json = br#"{"replies": 1, "status_codes": {"404": 1}}"#;
        assert_eq!(status(json).as_deref(), Some("404"));
        assert_eq!(status(br#"{"replies": 0, "status_codes": {}}"#), None);
        let turn = |url: &str| GeneratorTurn {
            placed: Vec::new(),
            connections: 1,
            turn_ms: 50,
            options: Vec::new(),
            url: url.to_owned(),
            further_urls: Vec::new(),
        };
        assert_eq!(turn("https://127.0.0.1:80/a/b?c").path(), "/a/b?c");
        assert_eq!(turn("http://127.0.0.1:80").path(), "/");
    }

    #[test]
    fn the_highest_rate_that_kept_the_bound_is_found() {
        let step = |rate: f64, kept: bool| {
            format!(r#"{{"pace": {{"from": {rate}}}, "expectations": [{{"kept": {kept}}}]}}"#)
        };
        let steps =
            format!("[{}, {}, {}]", step(500.0, true), step(1000.5, true), step(2e3, false));
        assert_eq!(highest(steps.as_bytes()), Some((1000.5, 3)));
        assert_eq!(highest(step(8.0, false).as_bytes()), Some((0.0, 1)));
        for wrong in ["", "[]", "{}", r#"[{"pace": "closed"}]"#] {
            assert_eq!(highest(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn a_turn_without_replies_has_a_rate_of_0() {
        assert!(read(&Value::Null).is_none());
        let json = r#"{"steady_replies_per_s": 0, "run":
            {"replies": 0, "elapsed_s": 0.3, "statuses": [], "errors": {"timeout": 4}}}"#;
        let run = read(&serde_json::from_str(json).unwrap()).unwrap();
        assert_eq!((run.requests, run.errors, run.rate), (0, 4, 0.0));
    }

    #[test]
    fn a_generator_that_ends_is_an_error_with_its_message() {
        let turn = GeneratorTurn {
            placed: ["sh", "-c", "echo no >&2", "sh"].map(str::to_owned).to_vec(),
            connections: 1,
            turn_ms: 50,
            options: Vec::new(),
            url: "http://127.0.0.1:1/".to_owned(),
            further_urls: Vec::new(),
        };
        let failure = turn.start(Path::new("weir")).unwrap().turn().unwrap_err();
        assert!(failure.ends_with("\nended: no"), "{failure}");
    }
}
