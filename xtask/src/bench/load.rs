//! CPU time per request under a load generator.

use std::path::Path;
use std::process::Command;

use processes::procfs;
use processes::server::MeasuredServer;

use super::rows::TurnLoad;
use super::sample::Sample;
use crate::project;

const WARM_UP_SECONDS: u64 = 1;

const MICROSECONDS: f64 = 1e6;

/// What a browser sends besides, on a page that it was led to.
const BROWSER: [&str; 6] = [
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
    "Accept: text/html,application/xhtml+xml,*/*;q=0.8",
    "Accept-Language: en-US,en;q=0.5",
    "Accept-Encoding: identity",
    "Referer: http://127.0.0.1/start",
    "Cookie: id=8f14e45fceea167a; theme=dark",
];

/// Paths that a turn with varying requests goes through.
const VARIED: usize = 50_000;

/// The paths that `weir load --list` is given.
pub(super) fn varied(path: &str) -> String {
    (0..VARIED).map(|number| format!("{path}?i={number}\n")).collect()
}

/// The generator's command for a turn.
pub(super) fn of_turn(
    weir: &Path,
    turn: &TurnLoad,
    turn_ms: u64,
    list: &Path,
    url: &str,
) -> Vec<String> {
    let mut words = vec![weir.display().to_string(), "load".into(), "-q".into(), "-t1".into()];
    words.extend([format!("-c{}", turn.connections), format!("-d{turn_ms}ms")]);
    if turn.close {
        words.push("--close".into());
    }
    if turn.streams > 0 {
        words.extend(["--h2".into(), "--streams".into(), turn.streams.to_string()]);
    }
    let browser: &[&str] = if turn.vary { &BROWSER } else { &[] };
    for field in turn.fields.iter().chain(browser) {
        words.extend(["-H".into(), (*field).into()]);
    }
    if !turn.body.is_empty() {
        words.extend(["--body".into(), turn.body.into()]);
    }
    if turn.vary {
        words.extend(["--list".into(), list.display().to_string()]);
    }
    words.push(url.into());
    words
}

/// Runs the generator on its core and charges the server's CPU time to the requests answered.
pub(super) fn sample(
    server: &MeasuredServer,
    generator: &[String],
    core: usize,
) -> Result<Sample, String> {
    let before = procfs::cpu_s(server.pid())?;
    let done = generate(generator, core)?;
    let used = procfs::cpu_s(server.pid())? - before;
    Ok(done.sample(used))
}

/// Runs another generator for so many seconds and charges its own CPU time.
pub(super) fn sample_generator(
    generator: &str,
    core: usize,
    seconds: u64,
) -> Result<Sample, String> {
    let words = |seconds: u64| -> Vec<String> {
        let command = generator.replace("{seconds}", &seconds.to_string());
        command.split_whitespace().map(str::to_owned).collect()
    };
    generate(&words(WARM_UP_SECONDS), core)?;
    let before = procfs::cpu_of_the_ended_s()?;
    let done = generate(&words(seconds), core)?;
    Ok(done.sample(procfs::cpu_of_the_ended_s()? - before))
}

/// What a load generator says it did.
#[derive(Debug, PartialEq)]
struct Done {
    requests: f64,
    /// Its line about errors, where it has one.
    complaint: Option<String>,
}

impl Done {
    fn sample(self, used_s: f64) -> Sample {
        Sample { figure: used_s * MICROSECONDS / self.requests, complaint: self.complaint }
    }
}

fn generate(generator: &[String], core: usize) -> Result<Done, String> {
    let mut taskset = Command::new("taskset");
    taskset.args(["-c", &core.to_string()]).args(generator);
    let output = project::output(&mut taskset)?;
    let text = String::from_utf8_lossy(&output);
    let command = generator.join(" ");
    done(&text).ok_or_else(|| format!("no request was answered\n{command}\n{}", text.trim_end()))
}

/// wrk's summary: `N requests in 2.00s`, and a line for each kind of error it saw. h2load's, where
/// there is none: `requests: 9 total, 9 started, 9 done, 9 succeeded, 0 failed, ...`.
fn done(text: &str) -> Option<Done> {
    let lines = || text.lines().map(str::trim);
    let Some((requests, _)) = lines().find_map(|line| line.split_once(" requests in ")) else {
        return done_by_h2load(text);
    };
    let requests: f64 = requests.parse().ok().filter(|requests| *requests > 0.0)?;
    let errors = |line: &&str| line.starts_with("Socket errors:") || line.starts_with("Non-2xx");
    let complaints: Vec<&str> = lines().filter(errors).collect();
    Some(Done { requests, complaint: (!complaints.is_empty()).then(|| complaints.join("; ")) })
}

fn done_by_h2load(text: &str) -> Option<Done> {
    let line = text.lines().find(|line| line.starts_with("requests: "))?;
    let count = |kind: &str| -> Option<f64> {
        let part = line.split(", ").find_map(|part| part.strip_suffix(kind))?;
        part.trim().parse().ok()
    };
    let requests = count("succeeded").filter(|requests| *requests > 0.0)?;
    let has_failed = count("failed")? > 0.0;
    Some(Done { requests, complaint: has_failed.then(|| line.to_owned()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_of_a_turn() {
        let (fields, streams) = (&["A: b"][..], 8);
        let turn = TurnLoad { connections: 3, close: true, vary: true, streams, fields, body: "" };
        let words = of_turn(Path::new("weir"), &turn, 200, Path::new("list"), "http://h/");
        let (first, last) = (words[..10].join(" "), words[words.len() - 3..].join(" "));
        assert_eq!(first, "weir load -q -t1 -c3 -d200ms --close --h2 --streams 8");
        assert_eq!(words[10..12], ["-H", "A: b"]);
        assert_eq!(last, "--list list http://h/");
        assert!(varied("/a").starts_with("/a?i=0\n/a?i=1\n"));
    }

    #[test]
    fn wrk_s_summary_is_read() {
        let clean = "Running 2s test @ http://h/\n  84 requests in 2.00s, 13MB read\n";
        assert_eq!(done(clean), Some(Done { requests: 84.0, complaint: None }));
        let bad = "  84 requests in 2.00s, 1MB read\n\
                   \x20 Socket errors: connect 0, read 3, write 0, timeout 0\n\
                   \x20 Non-2xx or 3xx responses: 84\n";
        let complaint = done(bad).and_then(|done| done.complaint).unwrap_or_default();
        assert!(complaint.contains("read 3") && complaint.contains("responses: 84"), "{complaint}");
        assert_eq!(done("  0 requests in 2.00s\n"), None);
        assert_eq!(done("unable to connect\n"), None);
    }

    #[test]
    fn h2load_s_summary_is_read() {
        let said = |failed: u32| {
            format!(
                "finished in 2.00s, 4.50 req/s, 1.2MB/s\nrequests: 9 total, 9 started, 9 done, \
                 9 succeeded, {failed} failed, {failed} errored, 0 timeout\n"
            )
        };
        assert_eq!(done(&said(0)), Some(Done { requests: 9.0, complaint: None }));
        assert!(done(&said(1)).is_some_and(|done| done.complaint.is_some()));
        assert_eq!(done("requests: 0 total, 0 done, 0 succeeded, 0 failed\n"), None);
    }
}
