//! What CI runs beside `cargo test`, and what a developer runs before handing a change over.
//!
//! A step is a line in [`STEPS`]. All of them run, so that one run tells everything that is wrong.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use crate::args::Args;
use crate::prove::{self, ProofVerdict};
use crate::{
    attacks, certbot, chains, compare, completions, deny, docs, downgrades, examples, h2spec, man,
    packages, project, protocols, service, several_machines, takeover, tidy, units,
};
use CheckTier::{Acceptance, Lint, Nightly, Quick};

pub(crate) const HELP: &str = "format, lints, tidy, docs, tests, side by side, proofs: what CI runs

Usage: cargo xtask check [TIER] [--skip STEP]...

  TIER         how much is checked; each tier includes the ones before it:
               lint: format, lints, tidy and licences
               quick: documentation and tests
               acceptance: comparisons with nginx and other programs (the default; CI runs it)
               nightly: slow checks that rarely find anything
  --skip STEP  leave out this one, may repeat

Each step is timed, all of them run, and any that fails makes the whole fail.
";

struct CheckStep {
    tier: CheckTier,
    name: &'static str,
    run: fn() -> Result<StepOutcome, String>,
}

/// How much is checked: a tier contains those before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum CheckTier {
    Lint,
    Quick,
    Acceptance,
    Nightly,
}

const TIERS: [(&str, CheckTier); 4] =
    [("lint", Lint), ("quick", Quick), ("acceptance", Acceptance), ("nightly", Nightly)];

enum StepOutcome {
    Done,
    Skipped(String),
}

const STEPS: &[CheckStep] = &[
    CheckStep { tier: Lint, name: "format", run: format },
    CheckStep { tier: Lint, name: "lints", run: lints },
    CheckStep { tier: Lint, name: "tidy", run: tidy },
    CheckStep { tier: Lint, name: "deny", run: crates_from_outside },
    CheckStep { tier: Quick, name: "docs", run: fresh_docs },
    CheckStep { tier: Quick, name: "tests", run: tests },
    CheckStep { tier: Nightly, name: "seeds", run: seeds },
    CheckStep { tier: Nightly, name: "models", run: models },
    CheckStep { tier: Quick, name: "man", run: man_pages },
    CheckStep { tier: Quick, name: "completion", run: completed },
    CheckStep { tier: Quick, name: "units", run: service_units },
    CheckStep { tier: Acceptance, name: "feature", run: new_feature },
    CheckStep { tier: Acceptance, name: "messages", run: messages },
    CheckStep { tier: Acceptance, name: "compare", run: side_by_side },
    CheckStep { tier: Acceptance, name: "access", run: access_table },
    CheckStep { tier: Acceptance, name: "random", run: generated_configs },
    CheckStep { tier: Nightly, name: "new-random", run: newly_generated_configs },
    CheckStep { tier: Nightly, name: "at-once", run: general_sending },
    CheckStep { tier: Acceptance, name: "examples", run: shown },
    CheckStep { tier: Acceptance, name: "takeover", run: taken_over },
    CheckStep { tier: Acceptance, name: "moving", run: moved },
    CheckStep { tier: Nightly, name: "service", run: served },
    CheckStep { tier: Nightly, name: "machines", run: several },
    CheckStep { tier: Acceptance, name: "certbot", run: certified },
    CheckStep { tier: Nightly, name: "chains", run: chains_compared },
    CheckStep { tier: Acceptance, name: "attacks", run: attacked },
    CheckStep { tier: Acceptance, name: "h2spec", run: http2_cases },
    CheckStep { tier: Acceptance, name: "downgrades", run: downgraded },
    CheckStep { tier: Acceptance, name: "generator", run: generated },
    CheckStep { tier: Acceptance, name: "transfers", run: transferred },
    CheckStep { tier: Acceptance, name: "stream", run: streamed },
    CheckStep { tier: Acceptance, name: "protocols", run: through_stream },
    CheckStep { tier: Acceptance, name: "latency", run: latencies },
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

fn crates_from_outside() -> Result<StepOutcome, String> {
    deny::run(&[]).map(|()| StepOutcome::Done)
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

/// The man pages, read by mandoc and groff.
fn man_pages() -> Result<StepOutcome, String> {
    Ok(without(&man::check(&project::debug("weir")?)?))
}

/// The completions, read and asked by the shells.
fn completed() -> Result<StepOutcome, String> {
    Ok(without(&completions::check(&project::debug("weir")?)?))
}

fn without(missing: &[&str]) -> StepOutcome {
    match missing {
        [] => StepOutcome::Done,
        _ => StepOutcome::Skipped(format!("in part: not installed: {}", missing.join(", "))),
    }
}

/// The units of systemd: correct, and as little exposed as promised.
fn service_units() -> Result<StepOutcome, String> {
    let skipped = units::check(&project::debug("weir")?)?;
    Ok(skipped.map_or(StepOutcome::Done, StepOutcome::Skipped))
}

/// A new feature in a copy of the project, which is built in a folder of its own.
fn new_feature() -> Result<StepOutcome, String> {
    cargo(&["test", "--package", "xtask", "new_feature", "--", "--ignored"])
}

/// The errors of invalid configurations that tests expect, beside an installed nginx.
fn messages() -> Result<StepOutcome, String> {
    if !Path::new(REFERENCE).exists() {
        return Ok(StepOutcome::Skipped(format!("{REFERENCE} is not there")));
    }
    let args =
        ["test", "--package", "conf", "--package", "http@0.1.0", "--lib", "--test", "fixtures"];
    let mut command = project::cargo(&args);
    project::succeed(command.env("WEIR_TEST_NGINX", REFERENCE)).map(|()| StepOutcome::Done)
}

/// The corpus against an installed nginx.
fn side_by_side() -> Result<StepOutcome, String> {
    if !Path::new(REFERENCE).exists() {
        return Ok(StepOutcome::Skipped(format!("{REFERENCE} is not there")));
    }
    let weir = project::release("weir")?;
    let words = ["--weir".to_owned(), weir.display().to_string()];
    compare::run(&words).map(|()| StepOutcome::Done)
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
    generated_from(0, 40)
}

/// The same with configurations that no run has had before.
fn newly_generated_configs() -> Result<StepOutcome, String> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let minutes = now.map_or(0, |since| since.as_secs() / 60);
    println!("seed {minutes}");
    generated_from(minutes, 400)
}

fn generated_from(seed: u64, count: u64) -> Result<StepOutcome, String> {
    let weir = project::release("weir")?.display().to_string();
    let (seed, count) = (seed.to_string(), count.to_string());
    for area in ["rewrite", "locations", "files", "tables", "fields"] {
        let words = ["--weir", &weir, "--random", &count, "--seed", &seed, "--area", area];
        compare::run(&words.map(str::to_owned))?;
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
    compare::run(&words).map(|()| StepOutcome::Done)
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

/// The units, in a systemd of their own.
fn served() -> Result<StepOutcome, String> {
    let skipped = service::check(&project::release("weir")?)?;
    Ok(skipped.map_or(StepOutcome::Done, StepOutcome::Skipped))
}

/// Several machines in namespaces.
fn several() -> Result<StepOutcome, String> {
    if let Some(missing) = several_machines::lacks() {
        return Ok(StepOutcome::Skipped(missing));
    }
    let weir = project::release("weir")?.display().to_string();
    several_machines::run(&["--weir".to_owned(), weir]).map(|()| StepOutcome::Done)
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
    attacks::run(&words).map(|()| StepOutcome::Done)
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

/// With less data than the command's default.
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

/// The tier that is named, if one is.
fn tier(words: &[String]) -> Result<CheckTier, String> {
    let [name] = words else {
        return if words.is_empty() { Ok(Acceptance) } else { Err("one tier at a time".into()) };
    };
    let tier = TIERS.iter().find(|(known, _)| known == name);
    tier.map(|(_, tier)| *tier).ok_or(format!("there is no tier \"{name}\""))
}

pub(crate) fn run(words: &[String]) -> Result<(), String> {
    let mut args = Args::new(words);
    let skipped = args.each("--skip")?;
    let tier = tier(&args.words()?)?;
    if let Some(unknown) = skipped.iter().find(|name| STEPS.iter().all(|step| step.name != **name))
    {
        return Err(format!("there is no step \"{unknown}\""));
    }
    let wanted =
        |step: &&CheckStep| step.tier <= tier && !skipped.iter().any(|name| name == step.name);
    report(STEPS.iter().filter(wanted).map(timed).collect())
}

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

    #[test]
    fn the_tier_is_the_one_that_is_named() {
        assert!(tier(&[]) == Ok(Acceptance) && tier(&["nightly".into()]) == Ok(Nightly));
        assert!(tier(&["fast".into()]).is_err());
        assert!(tier(&["lint".into(), "quick".into()]).is_err());
    }
}
