//! `weir load` from its command line to its last line of output.
//!
//! Results go to standard output: wrk's text, percentiles, expectations. Notes and progress go to
//! standard error. Called as `wrk`, it prints only what wrk prints.

mod descriptors;
mod error;
mod expected;
mod machine;
mod output;
mod searching;
mod turning;

use std::ffi::OsString;

use crate::called_as::CalledAs;
use crate::choices::{ABOUT, CHOICES, USAGE};
use crate::options;
use crate::results::live::Live;
use crate::results::{Results, Second, compare, notes, wrk};
use crate::run::plan::RunPlan;
use crate::run::{self, FinishedRun};
use crate::settings::{LoadSettings, RequestedRun};
use crate::tell;
pub use error::CommandError;
use expected::answered;
use output::{is_file, is_output, print, save, show, try_file};

/// Runs the command with these arguments. The caller prints errors.
pub fn command(words: &[OsString], called: CalledAs) -> Result<(), CommandError> {
    if let Some((_, rest)) = words.split_first().filter(|(first, _)| *first == "compare") {
        return Ok(print(&compare::run(rest)?)?);
    }
    match LoadSettings::read(words, called) {
        Ok(RequestedRun::Load(settings)) => load(&settings, called),
        Ok(RequestedRun::Help) => Ok(print(&usage())?),
        Ok(RequestedRun::Version) => {
            let version = env!("CARGO_PKG_VERSION");
            Ok(print(&format!("weir load {version} with the options of wrk 4.2.0\n"))?)
        }
        Err(what) => Err(CommandError::Error(format!("{what}\n(see weir load --help)"))),
    }
}

fn usage() -> String {
    format!("{USAGE}{}{ABOUT}", options::help(CHOICES))
}

fn load(settings: &LoadSettings, called: CalledAs) -> Result<(), CommandError> {
    // May fail; the limit is checked next.
    let _ = net::process::raise_open_files_limit();
    settings.check_descriptors(net::process::open_files_limit().0.unwrap_or(u64::MAX))?;
    if let Some(against) = &settings.against {
        settings.files().try_for_each(try_file)?;
        return turning::run(settings, against);
    }
    if settings.on_demand {
        machine::before(settings, false)?;
        return turning::run_on_demand(settings);
    }
    let plan = settings.plan()?;
    settings.files().try_for_each(try_file)?;
    descriptors::reserve(plan.all_connections());
    let mut kept = Vec::new();
    let done = match settings.search {
        Some(goal) => {
            machine::before(settings, false)?;
            searching::search(settings, &plan, goal, &mut kept).map_err(CommandError::from)
        }
        None => measure(settings, &plan, called, &mut kept),
    };
    save(settings, &kept, is_output)?;
    done
}

/// Runs `--repeat` times, and shows each run.
fn measure(
    settings: &LoadSettings,
    plan: &RunPlan,
    called: CalledAs,
    kept: &mut Vec<Results>,
) -> Result<(), CommandError> {
    let report = settings.report(called);
    for number in 1..=settings.repeat {
        if settings.repeat > 1 {
            show(settings, &format!("Run {number} of {}\n", settings.repeat))?;
        }
        let has_notes = called == CalledAs::Load && !settings.quiet;
        let before = machine::before(settings, has_notes)?;
        let mut finished = watched(settings, plan, called)?;
        finished.results.judged = expected::judge(&settings.expectations, &finished.results);
        let results = &finished.results;
        kept.push(results.clone());
        // First, because later steps may fail.
        let saved = save(settings, kept, is_file);
        if let Some(before) = before.filter(|_| results.tally.replies > 0) {
            machine::tell_if_busy(before);
        }
        if !is_brief(settings, called) || results.tally.replies > 0 {
            show(settings, &wrk::closing(results, &report.percentiles))?;
        }
        show(settings, &expected::text(&results.judged))?;
        let said = finished.say_done();
        if has_notes {
            // Not on standard output: programs expect wrk's last line to be the last.
            tell(&format!("\n{}", notes::notes(results, report.further)));
        }
        saved.and(said)?;
        let is_interrupted = results.interrupted;
        let answered = answered(results);
        finished.failed.map_or(answered, Err)?;
        if is_interrupted {
            break;
        }
    }
    expected::verdict(kept)
}

/// Whether only results are shown. Called as wrk, the program prints as much as wrk.
fn is_brief(settings: &LoadSettings, called: CalledAs) -> bool {
    settings.quiet && called == CalledAs::Load
}

/// Runs, with a line for each second on standard error, or a live view on a terminal.
fn watched(
    settings: &LoadSettings,
    plan: &RunPlan,
    called: CalledAs,
) -> Result<FinishedRun, String> {
    let is_quiet = settings.quiet || called == CalledAs::Wrk;
    let mut live = Live::new(plan.duration);
    let columns = net::system::terminal_columns();
    let opening = match is_brief(settings, called) {
        true => String::new(),
        false => wrk::opening(&plan.urls, plan.threads, plan.connections, plan.duration),
    };
    let finished = run::run(plan, &mut || show(settings, &opening), &mut |second: &Second| {
        if !is_quiet {
            tell(&match columns {
                Some(columns) => live.view(second, columns),
                None => live.line(second),
            });
        }
    });
    tell(&live.clear());
    finished
}
