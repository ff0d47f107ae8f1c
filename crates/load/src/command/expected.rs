//! `--expect`: judges runs, shows the results, and sets the exit code.

use super::error::CommandError;
use crate::expect::Expectation;
use crate::results::{Judged, Results};

/// Judges a run by all of them.
pub(super) fn judge(expectations: &[Expectation], results: &Results) -> Vec<Judged> {
    expectations.iter().map(|expectation| expectation.judge(results)).collect()
}

/// A line for each expectation; empty without any.
pub(super) fn text(judged: &[Judged]) -> String {
    let width = judged.iter().map(|one| one.expectation.chars().count()).max();
    let Some(width) = width else { return String::new() };
    let line = |Judged { expectation, kept, shown, .. }: &Judged| {
        let verdict = if *kept { "kept" } else { "broken" };
        format!("  {verdict:<6}  {expectation:<width$}  measured {shown}\n")
    };
    format!("Expectations:\n{}", judged.iter().map(line).collect::<String>())
}

/// An error if any run has broken an expectation.
pub(super) fn verdict(runs: &[Results]) -> Result<(), CommandError> {
    let is_broken = |run: &&Results| run.judged.iter().any(|judged| !judged.kept);
    let broken = runs.iter().filter(is_broken).count();
    let kept = |judged: &&Judged| !judged.kept;
    match (runs, broken) {
        (_, 0) => Ok(()),
        ([run], _) => {
            let (broken, all) = (run.judged.iter().filter(kept).count(), run.judged.len());
            Err(CommandError::Broken(format!("{broken} of {all} expectations broken")))
        }
        _ => Err(CommandError::Broken(format!(
            "expectations broken in {broken} of {} runs",
            runs.len()
        ))),
    }
}

/// A run without a single reply has failed.
pub(super) fn answered(results: &Results) -> Result<(), String> {
    let failures = results.tally.failures();
    if results.tally.replies == 0 && failures > 0 {
        return Err(format!("no reply to any of {failures} requests"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::testing::results;

    fn run(expectations: &[&str]) -> Results {
        let expectations = expectations.iter().map(|text| Expectation::parse(text).unwrap());
        let mut run = results();
        run.tally.replies = 1000;
        run.judged = judge(&expectations.collect::<Vec<_>>(), &run);
        run
    }

    #[test]
    fn each_expectation_has_its_line() {
        let expected = "\
Expectations:
  kept    rate>50  measured 100.00 requests/s
  broken  p99<1s   measured nothing: no reply
";
        assert_eq!(text(&run(&["rate>50", "p99<1s"]).judged), expected);
        assert_eq!(text(&[]), "");
    }

    #[test]
    fn one_broken_expectation_is_an_error() {
        let (good, bad) = (run(&["rate>50"]), run(&["rate>50", "rate>200"]));
        assert_eq!(verdict(&[run(&[])]), Ok(()));
        assert_eq!(verdict(&[good.clone(), good.clone()]), Ok(()));
        let broken = |text: &str| Err(CommandError::Broken(text.into()));
        assert_eq!(verdict(std::slice::from_ref(&bad)), broken("1 of 2 expectations broken"));
        assert_eq!(verdict(&[good, bad]), broken("expectations broken in 1 of 2 runs"));
        assert_eq!(CommandError::Broken(String::new()).code(), 3);
    }
}
