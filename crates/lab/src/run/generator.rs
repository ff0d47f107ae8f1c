//! `weir load` as the generator of one turn.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::figures::MeasuredRun;

/// What the generator does in a turn.
#[derive(Clone, Debug)]
pub(crate) struct GeneratorTurn {
    /// The words that place it.
    pub(crate) placed: Vec<String>,
    pub(crate) connections: u32,
    pub(crate) turn_ms: u64,
    /// More of its options.
    pub(crate) options: Vec<String>,
    pub(crate) url: String,
}

impl GeneratorTurn {
    /// Runs it; what the server's processes have used is not known here.
    pub(crate) fn run(&self, weir: &Path) -> Result<MeasuredRun, String> {
        let extent = [format!("-c{}", self.connections), format!("-d{}ms", self.turn_ms)];
        self.load(weir, &extent, read)
    }

    /// Sends one request; the status of its reply.
    pub(super) fn probe(&self, weir: &Path) -> Result<String, String> {
        self.load(weir, &["-c1".to_owned(), "-n1".to_owned()], status)
    }

    /// The path that is requested.
    pub(super) fn path(&self) -> &str {
        let behind_scheme = self.url.find("://").map_or(0, |at| at + 3);
        let slash = self.url[behind_scheme..].find('/');
        slash.map_or("/", |at| &self.url[behind_scheme + at..])
    }

    fn load<T>(
        &self,
        weir: &Path,
        extent: &[String],
        read: fn(&[u8]) -> Option<T>,
    ) -> Result<T, String> {
        let mut words = self.placed.clone();
        words.extend([weir.display().to_string(), "load".into(), "-q".into(), "-t1".into()]);
        words.extend_from_slice(extent);
        words.extend_from_slice(&self.options);
        words.extend(["--json".into(), "-".into(), self.url.clone()]);
        let mut command = Command::new(&words[0]);
        let output = command.args(&words[1..]).stdin(Stdio::null()).output();
        let output = output.map_err(|error| format!("{}: {error}", words[0]))?;
        read(&output.stdout).ok_or_else(|| {
            let said = String::from_utf8_lossy(&output.stderr);
            format!("{}\nhad no reply: {}", words.join(" "), said.trim_end())
        })
    }
}

/// The status of the only reply.
fn status(json: &[u8]) -> Option<String> {
    let run: Value = serde_json::from_slice(json).ok()?;
    run["status_codes"].as_object()?.keys().next().cloned()
}

/// What the generator's JSON says; docs/load-json.md explains the fields.
fn read(json: &[u8]) -> Option<MeasuredRun> {
    let run: Value = serde_json::from_slice(json).ok()?;
    let latency = |name: &str| run["latency_us"][name].as_f64().unwrap_or_default();
    let requests = run["replies"].as_u64().filter(|requests| *requests > 0)?;
    let seconds = run["elapsed_s"].as_f64()?;
    let errors = run["errors"].as_object()?.values().filter_map(Value::as_u64).sum::<u64>();
    let bad = run["statuses"].as_array()?.iter().enumerate().filter(|(digit, _)| *digit != 2);
    let bad = bad.filter_map(|(_, count)| count.as_u64()).sum::<u64>();
    Some(MeasuredRun {
        requests,
        seconds,
        errors: errors + bad,
        rate: requests as f64 / seconds,
        mean_us: latency("mean"),
        p50_us: latency("p50"),
        p99_us: latency("p99"),
        p999_us: latency("p99.9"),
        max_us: latency("max"),
        generator_busy: run["busiest_thread"].as_f64().unwrap_or_default(),
        ..MeasuredRun::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generators_json_is_read() {
        let json = br#"{"replies": 600, "elapsed_s": 0.3, "busiest_thread": 0.5,
            "statuses": [0, 0, 590, 0, 10, 0], "errors": {"reset": 2, "timeout": 1},
            "latency_us": {"mean": 1.5, "p50": 1, "p99": 9.0, "p99.9": 10, "max": 11}}"#;
        let run = read(json).unwrap();
        assert_eq!((run.requests, run.errors, run.rate), (600, 13, 2000.0));
        assert_eq!((run.p50_us, run.p999_us, run.generator_busy), (1.0, 10.0, 0.5));
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
        };
        assert_eq!(turn("https://127.0.0.1:80/a/b?c").path(), "/a/b?c");
        assert_eq!(turn("http://127.0.0.1:80").path(), "/");
    }

    #[test]
    fn a_turn_without_replies_is_none() {
        assert!(read(b"").is_none() && read(b"{}").is_none());
        let json = br#"{"replies": 0, "elapsed_s": 0.3, "statuses": [], "errors": {}}"#;
        assert!(read(json).is_none());
    }
}
