//! What CI runs beside `cargo test`, and what a developer runs before handing a change over.
//!
//! A step is a line in [`STEPS`]. All of them run, so that one run tells everything that is wrong.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::args::Args;
use crate::{compare, docs, examples, generator, latency, project, takeover, tidy};

pub(crate) const HELP: &str = "format, lints, tidy, docs, tests, side by side, proofs: what CI runs

Usage: cargo xtask check [--quick] [--skip STEP]...

  --quick      leave out the steps that run programs
  --skip STEP  leave out this one, may repeat

Each step is timed, all of them run, and any that fails makes the whole fail.
";

struct Step {
    name: &'static str,
    /// Left out by `--quick`.
    slow: bool,
    run: fn() -> Result<Outcome, String>,
}

enum Outcome {
    Done,
    Skipped(String),
}

const STEPS: &[Step] = &[
    Step { name: "format", slow: false, run: format },
    Step { name: "lints", slow: false, run: lints },
    Step { name: "tidy", slow: false, run: tidy },
    Step { name: "docs", slow: true, run: fresh_docs },
    Step { name: "tests", slow: true, run: tests },
    Step { name: "seeds", slow: true, run: seeds },
    Step { name: "models", slow: true, run: models },
    Step { name: "feature", slow: true, run: new_feature },
    Step { name: "compare", slow: true, run: side_by_side },
    Step { name: "examples", slow: true, run: shown },
    Step { name: "takeover", slow: true, run: taken_over },
    Step { name: "generator", slow: true, run: generated },
    Step { name: "latency", slow: true, run: latencies },
];

fn format() -> Result<Outcome, String> {
    cargo(&["fmt", "--all", "--check"])
}

fn lints() -> Result<Outcome, String> {
    cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])
}

fn tidy() -> Result<Outcome, String> {
    tidy::run(&[]).map(|()| Outcome::Done)
}

fn fresh_docs() -> Result<Outcome, String> {
    docs::check().map(|()| Outcome::Done)
}

fn tests() -> Result<Outcome, String> {
    cargo(&["test", "--workspace"])
}

/// The simulation of the limit and its queue, with as many seeds as it was promised.
fn seeds() -> Result<Outcome, String> {
    cargo(&["test", "--package", "upstream", "--lib", "limit::simulation", "--", "--ignored"])
}

/// The limit's models in every order of their threads. Their build has a folder of its own, since
/// other flags would have everything built anew.
fn models() -> Result<Outcome, String> {
    let args =
        ["test", "--package", "upstream", "--lib", "limit::loom", "--target-dir", "target/loom"];
    let mut command = project::cargo(&args);
    project::succeed(command.env("RUSTFLAGS", "--cfg weir_loom")).map(|()| Outcome::Done)
}

/// A new feature in a copy of the project, which is built in a folder of its own.
fn new_feature() -> Result<Outcome, String> {
    cargo(&["test", "--package", "xtask", "new_feature", "--", "--ignored"])
}

/// The corpus against an installed nginx. Its cases have deadlines, so on a machine that was busy
/// with something else for seconds it is asked once more.
fn side_by_side() -> Result<Outcome, String> {
    if !Path::new(REFERENCE).exists() {
        return Ok(Outcome::Skipped(format!("{REFERENCE} is not there")));
    }
    let weir = project::release("weir")?;
    let words = ["--weir".to_owned(), weir.display().to_string()];
    compare::run(&words).or_else(|_| compare::run(&words)).map(|()| Outcome::Done)
}

/// What is not installed is skipped there.
fn shown() -> Result<Outcome, String> {
    let weir = project::release("weir")?.display().to_string();
    examples::run(&["--weir".to_owned(), weir]).map(|()| Outcome::Done)
}

/// Once there and back, with the nginx that is installed.
fn taken_over() -> Result<Outcome, String> {
    if !Path::new(REFERENCE).exists() {
        return Ok(Outcome::Skipped(format!("{REFERENCE} is not there")));
    }
    takeover::run(&proof("--times", "1")?).map(|()| Outcome::Done)
}

/// What is not installed is skipped there.
fn generated() -> Result<Outcome, String> {
    generator::run(&proof("--requests", "10000")?).map(|()| Outcome::Done)
}

/// One pause of the schedule. A machine that is busy with something else proves nothing.
fn latencies() -> Result<Outcome, String> {
    Ok(match latency::prove(project::release("weir")?, 12, 3, true)? {
        latency::Verdict::Right => Outcome::Done,
        latency::Verdict::Disturbed(why) => Outcome::Skipped(why),
    })
}

fn proof(option: &str, value: &str) -> Result<Vec<String>, String> {
    let weir = project::release("weir")?.display().to_string();
    Ok(vec!["--weir".to_owned(), weir, option.to_owned(), value.to_owned()])
}

/// The nginx that `compare` asks.
const REFERENCE: &str = "/usr/sbin/nginx";

fn cargo(args: &[&str]) -> Result<Outcome, String> {
    project::succeed(&mut project::cargo(args)).map(|()| Outcome::Done)
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
    let wanted = |step: &&Step| !(quick && step.slow || skipped.iter().any(|n| n == step.name));
    report(STEPS.iter().filter(wanted).map(timed).collect())
}

/// A step that has run.
struct Ran {
    name: &'static str,
    took: Duration,
    result: Result<Outcome, String>,
}

fn timed(step: &Step) -> Ran {
    println!("\n== {}", step.name);
    let begin = Instant::now();
    let result = (step.run)();
    Ran { name: step.name, took: begin.elapsed(), result }
}

fn report(ran: Vec<Ran>) -> Result<(), String> {
    println!();
    let mut failed = Vec::new();
    for Ran { name, took, result } in ran {
        let (word, why) = match result {
            Ok(Outcome::Done) => ("ok", String::new()),
            Ok(Outcome::Skipped(why)) => ("skipped", why),
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

    fn ran(name: &'static str, result: Result<Outcome, String>) -> Ran {
        Ran { name, took: Duration::ZERO, result }
    }

    #[test]
    fn one_failure_fails_the_whole_and_a_skip_does_not() {
        let skipped = || ran("docs", Ok(Outcome::Skipped("not yet".into())));
        assert_eq!(report(vec![ran("tidy", Ok(Outcome::Done)), skipped()]), Ok(()));
        let failed = report(vec![ran("tidy", Err("why".into())), skipped()]);
        assert_eq!(failed, Err("check failed: tidy".into()));
    }

    #[test]
    fn a_step_that_does_not_exist_cannot_be_skipped() {
        assert!(run(&["--skip".into(), "testz".into()]).is_err());
    }
}
