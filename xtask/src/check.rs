//! What CI runs beside `cargo test`, and what a developer runs before handing a change over.
//!
//! A step is a line in [`STEPS`]. All of them run, so that one run tells everything that is wrong.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::args::Args;
use crate::prove::{self, ProofVerdict};
use crate::{
    attacks, certbot, chains, compare, docs, downgrades, examples, h2spec, packages, project,
    protocols, takeover, tidy,
};

pub(crate) const HELP: &str = "format, lints, tidy, docs, tests, side by side, proofs: what CI runs

Usage: cargo xtask check [--quick] [--skip STEP]...

  --quick      leave out the steps that run programs
  --skip STEP  leave out this one, may repeat

Each step is timed, all of them run, and any that fails makes the whole fail.
";

struct CheckStep {
    name: &'static str,
    /// Left out by `--quick`.
    slow: bool,
    run: fn() -> Result<StepOutcome, String>,
}

enum StepOutcome {
    Done,
    Skipped(String),
}

const STEPS: &[CheckStep] = &[
    CheckStep { name: "format", slow: false, run: format },
    CheckStep { name: "lints", slow: false, run: lints },
    CheckStep { name: "tidy", slow: false, run: tidy },
    CheckStep { name: "docs", slow: true, run: fresh_docs },
    CheckStep { name: "tests", slow: true, run: tests },
    CheckStep { name: "seeds", slow: true, run: seeds },
    CheckStep { name: "models", slow: true, run: models },
    CheckStep { name: "feature", slow: true, run: new_feature },
    CheckStep { name: "compare", slow: true, run: side_by_side },
    CheckStep { name: "access", slow: true, run: access_table },
    CheckStep { name: "random", slow: true, run: generated_configs },
    CheckStep { name: "at-once", slow: true, run: general_sending },
    CheckStep { name: "examples", slow: true, run: shown },
    CheckStep { name: "takeover", slow: true, run: taken_over },
    CheckStep { name: "moving", slow: true, run: moved },
    CheckStep { name: "certbot", slow: true, run: certified },
    CheckStep { name: "chains", slow: true, run: chains_compared },
    CheckStep { name: "attacks", slow: true, run: attacked },
    CheckStep { name: "h2spec", slow: true, run: http2_cases },
    CheckStep { name: "downgrades", slow: true, run: downgraded },
    CheckStep { name: "generator", slow: true, run: generated },
    CheckStep { name: "transfers", slow: true, run: transferred },
    CheckStep { name: "stream", slow: true, run: streamed },
    CheckStep { name: "protocols", slow: true, run: through_stream },
    CheckStep { name: "latency", slow: true, run: latencies },
];

fn format() -> Result<StepOutcome, String> {
    cargo(&["fmt", "--all", "--check"])
}

fn lints() -> Result<StepOutcome, String> {
    cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])
}

fn tidy() -> Result<StepOutcome, String> {
    tidy::run(&[]).map(|()| StepOutcome::Done)
}

fn fresh_docs() -> Result<StepOutcome, String> {
    docs::check().map(|()| StepOutcome::Done)
}

fn tests() -> Result<StepOutcome, String> {
    cargo(&["test", "--workspace"])
}

/// The simulation of the limit and its queue, with as many seeds as it was promised.
fn seeds() -> Result<StepOutcome, String> {
    cargo(&["test", "--package", "upstream", "--lib", "limit::simulation", "--", "--ignored"])
}

/// The limit's models in every order of their threads. Their build has a folder of its own, since
/// other flags would have everything built anew.
fn models() -> Result<StepOutcome, String> {
    let args = [
        "test",
        "--package",
        "net",
        "--package",
        "upstream",
        "--lib",
        "loom::",
        "--target-dir",
        "target/loom",
    ];
    let mut command = project::cargo(&args);
    project::succeed(command.env("RUSTFLAGS", "--cfg weir_loom")).map(|()| StepOutcome::Done)
}

/// A new feature in a copy of the project, which is built in a folder of its own.
fn new_feature() -> Result<StepOutcome, String> {
    cargo(&["test", "--package", "xtask", "new_feature", "--", "--ignored"])
}

/// The corpus against an installed nginx. Its cases have deadlines, so on a machine that was busy
/// with something else for seconds it is asked once more.
fn side_by_side() -> Result<StepOutcome, String> {
    if !Path::new(REFERENCE).exists() {
        return Ok(StepOutcome::Skipped(format!("{REFERENCE} is not there")));
    }
    let weir = project::release("weir")?;
    let words = ["--weir".to_owned(), weir.display().to_string()];
    compare::run(&words).or_else(|_| compare::run(&words)).map(|()| StepOutcome::Done)
}

/// Who may come, by every way into a location, beside an installed nginx.
fn access_table() -> Result<StepOutcome, String> {
    if !Path::new(REFERENCE).exists() {
        return Ok(StepOutcome::Skipped(format!("{REFERENCE} is not there")));
    }
    let weir = project::release("weir")?.display().to_string();
    let words = ["--weir".to_owned(), weir, "--access".to_owned()];
    compare::run(&words).map(|()| StepOutcome::Done)
}

/// Configurations that are generated, beside an installed nginx: the areas in which Debian's
/// version behaves as the newest one does.
fn generated_configs() -> Result<StepOutcome, String> {
    if !Path::new(REFERENCE).exists() {
        return Ok(StepOutcome::Skipped(format!("{REFERENCE} is not there")));
    }
    let weir = project::release("weir")?.display().to_string();
    for area in ["rewrite", "locations", "files", "tables", "fields"] {
        compare::run(&["--weir", &weir, "--random", "40", "--area", area].map(str::to_owned))?;
    }
    Ok(StepOutcome::Done)
}

/// Requests of HTTP/2 to a backend of HTTP/1, beside an installed nginx.
fn downgraded() -> Result<StepOutcome, String> {
    if !Path::new(REFERENCE).exists() {
        return Ok(StepOutcome::Skipped(format!("{REFERENCE} is not there")));
    }
    let weir = project::release("weir")?.display().to_string();
    downgrades::run(&["--weir".to_owned(), weir]).map(|()| StepOutcome::Done)
}

/// The corpus against Weir itself, built so that it sends no reply at once: the same bytes.
fn general_sending() -> Result<StepOutcome, String> {
    let weir = project::release("weir")?;
    cargo(&["build", "--package", "weir", "--features", "never-at-once"])?;
    let folder = project::root().join("target/never-at-once");
    let general = folder.join("nginx"); // By that name it answers as nginx does.
    std::fs::create_dir_all(&folder)
        .and_then(|()| std::fs::copy(project::root().join("target/debug/weir"), &general))
        .map_err(|error| format!("{}: {error}", general.display()))?;
    let (weir, general) = (weir.display().to_string(), general.display().to_string());
    let words = ["--weir".to_owned(), weir, "--nginx".to_owned(), general];
    compare::run(&words).or_else(|_| compare::run(&words)).map(|()| StepOutcome::Done)
}

/// What is not installed is skipped there.
fn shown() -> Result<StepOutcome, String> {
    let weir = project::release("weir")?.display().to_string();
    examples::run(&["--weir".to_owned(), weir]).map(|()| StepOutcome::Done)
}

/// Once there and back, with the nginx that is installed.
fn taken_over() -> Result<StepOutcome, String> {
    if !Path::new(REFERENCE).exists() {
        return Ok(StepOutcome::Skipped(format!("{REFERENCE} is not there")));
    }
    let weir = project::release("weir")?.display().to_string();
    let words = ["--weir", &weir, "--times", "1", "--only", "load"].map(str::to_owned);
    takeover::run(&words).map(|()| StepOutcome::Done)
}

/// Every command of docs/moving-from-nginx.md, in a Debian root of its own.
fn moved() -> Result<StepOutcome, String> {
    let skipped = takeover::follow_page(&project::release("weir")?)?;
    Ok(skipped.map_or(StepOutcome::Done, StepOutcome::Skipped))
}

/// What is not installed is skipped there.
fn certified() -> Result<StepOutcome, String> {
    let weir = project::release("weir")?.display().to_string();
    certbot::run(&["--weir".to_owned(), weir]).map(|()| StepOutcome::Done)
}

fn chains_compared() -> Result<StepOutcome, String> {
    if !chains::is_possible() {
        return Ok(StepOutcome::Skipped("openssl is not installed".to_owned()));
    }
    chains::run(&[]).map(|()| StepOutcome::Done)
}

/// An attacker that the machine keeps from sending fast enough is none, so they are asked twice.
fn attacked() -> Result<StepOutcome, String> {
    let weir = project::release("weir")?.display().to_string();
    let words = ["--weir".to_owned(), weir];
    attacks::run(&words).or_else(|_| attacks::run(&words)).map(|()| StepOutcome::Done)
}

fn http2_cases() -> Result<StepOutcome, String> {
    let Some(program) = h2spec::find() else {
        return Ok(StepOutcome::Skipped("h2spec is not installed".to_owned()));
    };
    h2spec::compare_with_list(&project::release("weir")?, &program).map(|()| StepOutcome::Done)
}

/// What is not installed is skipped there.
fn generated() -> Result<StepOutcome, String> {
    proof("generator", &["--requests", "10000"])
}

/// Shorter than on its own.
fn transferred() -> Result<StepOutcome, String> {
    proof("transfers", &["--megabytes", "20"])
}

fn streamed() -> Result<StepOutcome, String> {
    proof("stream", &[])
}

/// Servers and clients come from Debian's packages, which takes root.
fn through_stream() -> Result<StepOutcome, String> {
    if !packages::is_root() {
        return Ok(StepOutcome::Skipped("installing packages takes root".to_owned()));
    }
    let weir = project::release("weir")?.display().to_string();
    protocols::run(&["--weir".to_owned(), weir]).map(|()| StepOutcome::Done)
}

/// One pause of the schedule. A machine that is busy with something else proves nothing.
fn latencies() -> Result<StepOutcome, String> {
    proof("latency", &["--seconds", "12", "--runs", "3", "--alone"])
}

fn proof(name: &str, options: &[&str]) -> Result<StepOutcome, String> {
    Ok(match prove::one(name, options)? {
        ProofVerdict::Right => StepOutcome::Done,
        ProofVerdict::Skipped(why) | ProofVerdict::Disturbed(why) => StepOutcome::Skipped(why),
    })
}

/// The nginx that `compare` asks.
const REFERENCE: &str = "/usr/sbin/nginx";

fn cargo(args: &[&str]) -> Result<StepOutcome, String> {
    project::succeed(&mut project::cargo(args)).map(|()| StepOutcome::Done)
}

pub(crate) fn run(words: &[String]) -> Result<(), String> {
    let mut args = Args::new(words);
    let quick = args.flag("--quick");
    let skipped = args.each("--skip")?;
    args.end()?;
    if let Some(unknown) = skipped.iter().find(|name| STEPS.iter().all(|step| step.name != **name))
    {
        return Err(format!("there is no step \"{unknown}\""));
    }
    let wanted =
        |step: &&CheckStep| !(quick && step.slow || skipped.iter().any(|n| n == step.name));
    report(STEPS.iter().filter(wanted).map(timed).collect())
}

/// A step that has run.
struct FinishedStep {
    name: &'static str,
    took: Duration,
    result: Result<StepOutcome, String>,
}

fn timed(step: &CheckStep) -> FinishedStep {
    println!("\n== {}", step.name);
    let begin = Instant::now();
    let result = (step.run)();
    FinishedStep { name: step.name, took: begin.elapsed(), result }
}

fn report(ran: Vec<FinishedStep>) -> Result<(), String> {
    println!();
    let mut failed = Vec::new();
    for FinishedStep { name, took, result } in ran {
        let (word, why) = match result {
            Ok(StepOutcome::Done) => ("ok", String::new()),
            Ok(StepOutcome::Skipped(why)) => ("skipped", why),
            Err(why) => {
                failed.push(name);
                ("FAILED", why)
            }
        };
        let line = format!("{name:10} {word:8} {:7.1} s  {why}", took.as_secs_f64());
        println!("{}", line.trim_end());
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("check failed: {}", failed.join(", "))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(name: &'static str, result: Result<StepOutcome, String>) -> FinishedStep {
        FinishedStep { name, took: Duration::ZERO, result }
    }

    #[test]
    fn one_failure_fails_the_whole_and_a_skip_does_not() {
        let skipped = || ran("docs", Ok(StepOutcome::Skipped("not yet".into())));
        assert_eq!(report(vec![ran("tidy", Ok(StepOutcome::Done)), skipped()]), Ok(()));
        let failed = report(vec![ran("tidy", Err("why".into())), skipped()]);
        assert_eq!(failed, Err("check failed: tidy".into()));
    }

    #[test]
    fn a_step_that_does_not_exist_cannot_be_skipped() {
        assert!(run(&["--skip".into(), "testz".into()]).is_err());
    }
}
