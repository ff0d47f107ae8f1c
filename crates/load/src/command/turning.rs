//! Turns: `--against` has two servers take turns and shows what B does differently; with
//! `--on-demand` the caller says when a server has its turn.

use net::MailboxSender;

use super::descriptors;
use super::error::CommandError;
use super::expected::{self, answered};
use super::machine;
use super::output::{is_file, is_output, print, show, write};
use crate::results::{Results, amounts, compare, json};
use crate::run::plan::RunPlan;
use crate::run::turns;
use crate::settings::LoadSettings;
use crate::target::LoadTarget;
use crate::tell;

/// Runs both, shows and saves the results. Expectations apply to B.
pub(super) fn run(settings: &LoadSettings, against: &LoadTarget) -> Result<(), CommandError> {
    let (plans, blocks) = settings.plans_in_turns(against)?;
    descriptors::reserve(plans[0].connections * 2);
    let before = machine::before(settings, !settings.quiet)?;
    show(settings, &opening(&plans, blocks))?;
    let mut measured = turns::run_in_turns(&plans, blocks, &mut |block| {
        if !settings.quiet {
            tell(&compare::turns::line(block));
        }
    })?;
    let [_, b] = &mut measured.sides;
    b.judged = expected::judge(&settings.expectations, b);
    let text = json::write_turns(&measured);
    // Before all that can still go wrong.
    let saved =
        settings.json.as_deref().filter(|path| is_file(path)).map(|path| write(path, &text));
    before.into_iter().for_each(machine::tell_if_busy);
    let [a, b] = &measured.sides;
    show(settings, &format!("\n{}{}", compare::turns::text(&measured), expected::text(&b.judged)))?;
    if !settings.quiet {
        tell(&compare::turns::notes(&measured));
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

/// Runs one turn for each line of standard input, and answers each with a line of JSON: the rate
/// while every connection was at work, and all that was counted until the last reply.
pub(super) fn run_on_demand(settings: &LoadSettings) -> Result<(), CommandError> {
    let plan = settings.plan_on_demand()?;
    descriptors::reserve(plan.all_connections());
    let order = |orders: MailboxSender<()>| {
        std::io::stdin().lines().map_while(Result::ok).for_each(|_| orders.send(()));
    };
    turns::run_on_demand(&plan, order, &mut |rate, results| {
        print(&json::write_turn(rate, results))
    })?;
    Ok(())
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
