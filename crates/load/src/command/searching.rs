//! `--search`: tries rates one after the other, and shows each step.

use std::time::Duration;

use super::expected::answered;
use super::output::{is_file, save, show};
use crate::results::{Results, amounts};
use crate::run;
use crate::run::plan::RunPlan;
use crate::run::schedule::RateSchedule;
use crate::search::{Search, StepVerdict};
use crate::settings::{Goal, LoadSettings};

/// The most steps to repeat because the generator disturbed them.
const DISTURBED_MAX: u32 = 5;

/// Searches for the highest rate.
pub(super) fn search(
    settings: &LoadSettings,
    plan: &RunPlan,
    goal: Goal,
    kept: &mut Vec<Results>,
) -> Result<(), String> {
    if let Some(time) = plan.duration {
        show(settings, &estimate(time))?;
    }
    let most = run::run(plan, &mut || Ok(()), &mut |_| {})?;
    answered(&most.results)?;
    let capacity = most.results.replies_per_second();
    show(settings, &heading(plan, goal, capacity))?;
    let mut search = Search::new((capacity / 2.0).max(1.0));
    let mut steps = Steps::default();
    let mut is_interrupted = most.results.interrupted;
    while let Some(rate) = search.next().filter(|_| !is_interrupted) {
        let plan = RunPlan { rate: Some(RateSchedule::constant(rate)), ..plan.clone() };
        let mut results = run::run(&plan, &mut || Ok(()), &mut |_| {})?.results;
        is_interrupted = results.interrupted;
        let verdict = goal.judge(&results, rate);
        results.judged = vec![goal.judged(&results, &verdict)];
        show(settings, &step(&results, rate, goal, &verdict))?;
        kept.push(results);
        save(settings, kept, is_file)?;
        if is_interrupted {
            break;
        }
        steps.count(&verdict);
        // A disturbed step is repeated, but not for ever.
        if verdict != StepVerdict::Disturbed || steps.disturbed > DISTURBED_MAX {
            search.record(verdict == StepVerdict::Holds);
        }
    }
    let percentile = goal.percentile;
    let found = match search.found() {
        Some(rate) => format!("p{percentile} stays below the bound up to {rate:.0} requests/s.\n"),
        None if is_interrupted => "Interrupted before a rate was found.\n".into(),
        None => format!("p{percentile} is above the bound at every rate tried.\n"),
    };
    show(settings, &(found + &steps.doubt()))
}

/// The number of steps of most searches: the interval of rates is halved until it is 5 % wide, and
/// a rate that fails is tried twice.
const STEPS: std::ops::RangeInclusive<u32> = 8..=15;

/// The estimated duration of a search, by that of a step.
fn estimate(step: Duration) -> String {
    // One more measures the closed loop.
    let time = |steps: u32| match (step * (steps + 1)).as_secs_f64() {
        short if short < 180.0 => format!("{short:.0}s"),
        long => format!("{:.0}m", long / 60.0),
    };
    let (least, most) = (*STEPS.start(), *STEPS.end());
    format!(
        "Usually {least} to {most} steps of {}s ({} to {}), more on a busy machine.\n",
        step.as_secs_f64(),
        time(least),
        time(most),
    )
}

fn heading(plan: &RunPlan, goal: Goal, capacity: f64) -> String {
    let percentile = format!("p{}", goal.percentile);
    format!(
        "Searching for the highest rate with {percentile} below {} @ {}\n\
         \x20 closed loop: {capacity:.0} requests/s\n\
         {:>10} {:>10} {:>10} {percentile:>10} {:>10}\n",
        amounts::time_us(goal.below.as_micros() as f64),
        plan.urls[0],
        "rate",
        "replies/s",
        "p50",
        "max",
    )
}

/// A step of a search, as a line.
fn step(results: &Results, rate: f64, goal: Goal, verdict: &StepVerdict) -> String {
    let latency = &results.tally.latency_us;
    let time = |us: u64| amounts::time_us(us as f64);
    format!(
        "{rate:>10.0} {:>10.0} {:>10} {:>10} {:>10}  {}\n",
        results.replies_per_second(),
        time(latency.value_at_quantile(0.5)),
        time(goal.reached(results).as_micros() as u64),
        time(latency.max()),
        match verdict {
            StepVerdict::Holds => "holds",
            StepVerdict::Fails(why) => why,
            StepVerdict::Interrupted => "interrupted",
            StepVerdict::Disturbed => "the generator was too slow, or disturbed",
        },
    )
}

/// The number of steps, and of those that were disturbed.
#[derive(Default)]
struct Steps {
    all: u32,
    disturbed: u32,
}

impl Steps {
    fn count(&mut self, verdict: &StepVerdict) {
        self.all += 1;
        self.disturbed += u32::from(*verdict == StepVerdict::Disturbed);
    }

    /// The warning if most steps were disturbed.
    fn doubt(&self) -> String {
        if self.disturbed * 2 <= self.all {
            return String::new();
        }
        format!(
            "Do not trust this result: in {} of {} steps the generator was too slow or \
             disturbed, so the\nserver may be able to do more. Repeat it on an idle machine or \
             with more threads (-t).\n",
            self.disturbed, self.all
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_duration_is_estimated() {
        let text = |seconds| estimate(Duration::from_secs_f64(seconds));
        let expected = "Usually 8 to 15 steps of 0.5s (4s to 8s), more on a busy machine.\n";
        assert_eq!(text(0.5), expected);
        assert!(text(30.0).contains(" of 30s (4m to 8m), "), "{}", text(30.0));
    }

    #[test]
    fn a_warning_is_printed_if_most_steps_were_disturbed() {
        let mut steps = Steps::default();
        steps.count(&StepVerdict::Disturbed);
        steps.count(&StepVerdict::Holds);
        assert_eq!(steps.doubt(), "");
        steps.count(&StepVerdict::Disturbed);
        let text = steps.doubt();
        assert!(
            text.starts_with("Do not trust this result: in 2 of 3 steps the generator "),
            "{text}"
        );
    }
}
