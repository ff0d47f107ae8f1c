//! `--against`: two servers take turns, and what B does differently is shown.

use super::{CommandError, DESCRIPTORS, answered, expected, is_file, is_output, show, write};
use crate::results::compare::turns;
use crate::results::{Results, amounts, json};
use crate::run::plan::RunPlan;
use crate::run::turns::run_in_turns;
use crate::settings::LoadSettings;
use crate::target::LoadTarget;
use crate::tell;

/// Runs both, and shows and keeps what was measured. Expectations are those of B.
pub(super) fn run(settings: &LoadSettings, against: &LoadTarget) -> Result<(), CommandError> {
    let (plans, blocks) = settings.plans_in_turns(against)?;
    let _ = net::process::reserve_descriptors(plans[0].connections * 2 + DESCRIPTORS);
    show(settings, &opening(&plans, blocks))?;
    let mut turns = run_in_turns(&plans, blocks, &mut |block| {
        if !settings.quiet {
            tell(&turns::line(block));
        }
    })?;
    let [_, b] = &mut turns.sides;
    b.judged = expected::judge(&settings.expectations, b);
    let text = json::write_turns(&turns);
    // Before all that can still go wrong.
    let saved =
        settings.json.as_deref().filter(|path| is_file(path)).map(|path| write(path, &text));
    let [a, b] = &turns.sides;
    show(settings, &format!("\n{}{}", turns::text(&turns), expected::text(&b.judged)))?;
    if !settings.quiet {
        tell(&turns::notes(&turns));
    }
    saved.transpose()?;
    settings
        .json
        .as_deref()
        .filter(|path| is_output(path))
        .map_or(Ok(()), |path| write(path, &text))?;
    answered_by("A", a)?;
    answered_by("B", b)?;
    expected::verdict(std::slice::from_ref(b))
}

fn answered_by(name: &str, results: &Results) -> Result<(), String> {
    answered(results).map_err(|what| format!("{name}: {what}"))
}

fn opening(plans: &[RunPlan; 2], blocks: u64) -> String {
    let [a, b] = plans;
    let turn = a.duration.unwrap_or_default().as_micros() as f64;
    let pace = match a.rate {
        Some(rate) => format!(", {} requests/s by the clock", rate.from),
        None => String::new(),
    };
    format!(
        "Two servers in {} turns of {}\n  A {}\n  B {}\n  \
         {} threads and {} connections for each{pace}\n",
        blocks * 4,
        amounts::time_us(turn),
        a.urls[0],
        b.urls[0],
        a.threads,
        a.connections,
    )
}
