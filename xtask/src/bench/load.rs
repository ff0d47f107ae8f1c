//! CPU time per request under a load generator.

use std::process::Command;
use std::time::Instant;

use super::answer::BenchAnswer;
use super::procfs::Cpu;
use super::server::BenchServer;
use super::{Sample, procfs};
use crate::project;

const WARM_UP_SECONDS: u64 = 1;

const MICROSECONDS: f64 = 1e6;

/// Runs the generator on its core and charges the server's CPU time to the requests answered.
pub(super) fn sample(
    server: &BenchServer,
    generator: &str,
    core: usize,
    seconds: u64,
    answer: BenchAnswer,
) -> Result<Sample, String> {
    run(server, generator, core, seconds, answer, |server, _| server)
}

/// The same, and charges the generator's own.
pub(super) fn sample_generator(
    server: &BenchServer,
    generator: &str,
    core: usize,
    seconds: u64,
    answer: BenchAnswer,
) -> Result<Sample, String> {
    run(server, generator, core, seconds, answer, |_, load| load)
}

fn run(
    server: &BenchServer,
    generator: &str,
    core: usize,
    seconds: u64,
    answer: BenchAnswer,
    charged: fn(Cpu, Cpu) -> Cpu,
) -> Result<Sample, String> {
    generate(generator, core, WARM_UP_SECONDS)?;
    let (before, load_before) = (procfs::cpu(server.pid())?, procfs::cpu_of_the_ended()?);
    let begin = Instant::now();
    let done = generate(generator, core, seconds)?;
    let wall = begin.elapsed().as_secs_f64();
    let used = procfs::cpu(server.pid())? - before;
    let load = procfs::cpu_of_the_ended()? - load_before;
    let each = charged(used, load) / (done.requests / MICROSECONDS);
    Ok(Sample {
        figure: each.total(),
        split: Some(each),
        busy: Some((used.total() / wall, load.total() / wall)),
        complaint: done.complaint,
        answer,
    })
}

/// What a load generator says it did.
#[derive(Debug, PartialEq)]
struct Done {
    requests: f64,
    /// Its line about errors, where it has one.
    complaint: Option<String>,
}

fn generate(generator: &str, core: usize, seconds: u64) -> Result<Done, String> {
    let command = generator.replace("{seconds}", &seconds.to_string());
    let mut taskset = Command::new("taskset");
    taskset.args(["-c", &core.to_string()]).args(command.split_whitespace());
    let output = project::output(&mut taskset)?;
    let text = String::from_utf8_lossy(&output);
    done(&text).ok_or_else(|| format!("no request was answered\n{command}\n{}", text.trim_end()))
}

/// wrk's summary: `N requests in 2.00s`, and a line for each kind of error it saw.
fn done(text: &str) -> Option<Done> {
    let lines = || text.lines().map(str::trim);
    let requests = lines().find_map(|line| line.split_once(" requests in "))?.0;
    let requests: f64 = requests.parse().ok().filter(|requests| *requests > 0.0)?;
    let errors = |line: &&str| line.starts_with("Socket errors:") || line.starts_with("Non-2xx");
    let complaints: Vec<&str> = lines().filter(errors).collect();
    Some(Done { requests, complaint: (!complaints.is_empty()).then(|| complaints.join("; ")) })
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
