//! `weir lab tune`, from its arguments to the patch.

use std::io::Write as _;
use std::path::Path;
use std::time::Instant;

use conf::Disk;
use sandbox::EditableTree;

use super::arguments::TuneArguments;
use super::candidates::{TuneCandidate, candidates};
use super::confirmation;
use super::copies::{FIGURES_BLOCKS, TuneCopies, TunedProgram};
use super::halving;
use super::patch::TunePatch;
use crate::progress;
use crate::run::program::ServerProgram;

/// Tunes, and returns the text to print. `weir` is this program, which is also the generator.
pub fn run(arguments: &TuneArguments, weir: &Path) -> Result<String, String> {
    let begun = Instant::now();
    // nginx inherits the limit.
    processes::server::raise_descriptors()?;
    let program = TunedProgram::of(ServerProgram::find(&arguments.server, weir)?.path)?;
    let tree = EditableTree::read(&arguments.file, &mut Disk)?;
    let all = candidates(&tree, program.server);
    let accepted = accepted(&tree, &all, &program, (arguments, weir))?;
    let budget_s = arguments.budget.as_secs_f64();
    let mut told = 0.0;
    let mut show_time = || {
        let passed = begun.elapsed().as_secs_f64();
        if passed - told >= 1.0 {
            told = passed;
            progress::show(&format!("{:.0} s left ", (budget_s - passed).max(0.0)));
        }
    };
    let mut copies =
        TuneCopies::new((&tree, &accepted), &program, (arguments, weir), &mut show_time)?;
    let turn_s = copies.try_baseline()?;
    let turns = ((budget_s - begun.elapsed().as_secs_f64()) / turn_s).max(0.0) as usize;
    // Those of the comparison at the end.
    let turns = turns.saturating_sub(2 * FIGURES_BLOCKS);
    let subjects: Vec<&str> = accepted.iter().map(TuneCandidate::subject).collect();
    enough(subjects.len(), turns, turn_s)?;
    let result = confirmation::search(&subjects, turns, &mut copies)?;
    let kept: Vec<usize> = result.kept.iter().map(|effect| effect.candidate).collect();
    let figures = if kept.is_empty() { Vec::new() } else { copies.all_figures(&kept)? };
    let disturbance = copies.machine.found();
    drop(copies);
    progress::show("");
    let patch = TunePatch::new(&tree, &accepted, &result, arguments.goal);
    shown(arguments, &TunePatch { disturbance, figures, ..patch })
}

/// The candidates that the server accepts. It must accept the user's own configuration.
fn accepted(
    tree: &EditableTree,
    all: &[TuneCandidate],
    program: &TunedProgram,
    given: (&TuneArguments, &Path),
) -> Result<Vec<TuneCandidate>, String> {
    let mut nothing = || {};
    let copies = TuneCopies::new((tree, all), program, given, &mut nothing)?;
    let load = "the backends of this configuration receive the full load".to_owned();
    let passes = tree.lines().iter().any(|line| line.directive.name().ends_with("_pass"));
    for note in copies.notes()?.into_iter().chain(passes.then_some(load)) {
        let _ = writeln!(std::io::stderr(), "note: {note}");
    }
    let mut accepted = Vec::new();
    for (number, candidate) in all.iter().enumerate() {
        if copies.refusal(&[number])?.is_none() {
            accepted.push(*candidate);
        }
    }
    Ok(accepted)
}

/// An error with the budget needed, if there are too few turns.
fn enough(count: usize, turns: usize, turn_s: f64) -> Result<(), String> {
    // Halving takes three fifths of all turns.
    let least = (halving::turns_min(count) * 5).div_ceil(3) + 1;
    if turns >= least {
        return Ok(());
    }
    let seconds = (least as f64 * turn_s * 1.2).ceil();
    Err(format!("{count} candidates need {least} turns: --budget {seconds:.0}s or more"))
}

fn shown(arguments: &TuneArguments, patch: &TunePatch) -> Result<String, String> {
    if !arguments.json {
        return Ok(patch.text());
    }
    let json = serde_json::to_string_pretty(patch).map_err(|error| error.to_string())?;
    Ok(json + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_for_a_short_budget_names_a_sufficient_one() {
        assert_eq!(enough(4, 10_000, 0.3), Ok(()));
        let told = enough(16, 10, 0.5).err().unwrap_or_default();
        assert!(told.contains("16 candidates need ") && told.contains(": --budget "), "{told}");
    }

    #[test]
    fn missing_arguments_and_files_are_reported() {
        let words = ["-c", "/none.conf", "http://127.0.0.1/", "--server", "/no/server"];
        let words: Vec<_> = words.iter().map(std::ffi::OsString::from).collect();
        let mut arguments = TuneArguments::parse(&words).expect("arguments");
        let told = run(&arguments, Path::new("weir")).err().unwrap_or_default();
        assert!(told.starts_with("/no/server: "), "{told}");
        arguments.server = "echo".to_owned();
        let told = run(&arguments, Path::new("weir")).err().unwrap_or_default();
        assert!(told.contains("/none.conf"), "{told}");
    }
}
