//! The functions whose own CPU time differs most between a row and its baseline.

use std::collections::BTreeMap;

use super::{CostDifference, ProfileRecord, ProfileScale, ProfiledFunction};

/// The most functions of a table.
const SHOWN_MAX: usize = 15;

/// The own CPU time of a function per request, without that of the functions it calls.
pub(crate) struct FunctionCost<'r> {
    pub(crate) function: &'r ProfiledFunction,
    pub(crate) baseline_us: f64,
    pub(crate) row_us: f64,
    pub(crate) difference: CostDifference,
}

/// The functions that surely differ, the largest difference first.
pub(crate) fn differing<'r>(
    (row, row_scale): (&'r ProfileRecord, ProfileScale),
    (baseline, baseline_scale): (&'r ProfileRecord, ProfileScale),
) -> Vec<FunctionCost<'r>> {
    let mut samples = BTreeMap::<&ProfiledFunction, [u64; 2]>::new();
    for (side, profile) in [baseline, row].into_iter().enumerate() {
        for stack in &profile.stacks {
            if let Some(leaf) = profile.frames(stack).next_back() {
                let counts = samples.entry(leaf).or_default();
                counts[side] = counts[side].saturating_add(stack.samples);
            }
        }
    }
    let cost = |(function, [before, after]): (&'r ProfiledFunction, [u64; 2])| FunctionCost {
        function,
        baseline_us: baseline_scale.us(before),
        row_us: row_scale.us(after),
        difference: CostDifference::of((after, row_scale), (before, baseline_scale)),
    };
    let mut all: Vec<FunctionCost<'r>> =
        samples.into_iter().map(cost).filter(|of| of.difference.is_sure()).collect();
    all.sort_by(|a, b| b.difference.us.abs().total_cmp(&a.difference.us.abs()));
    all.truncate(SHOWN_MAX);
    all
}

#[cfg(test)]
mod tests {
    use super::super::parsers;
    use super::*;

    fn profile(counts: [(&str, usize); 3]) -> ProfileRecord {
        let sample = |(name, count): (&str, usize)| {
            format!("cycles:\n\t9 {name} (/weir)\n\t1 main (/weir)\n\n").repeat(count)
        };
        parsers::stacks(&counts.map(sample).concat())
    }

    #[test]
    fn functions_are_ranked_by_the_difference_of_their_own_time() {
        let baseline = profile([("copy", 500), ("parse", 400), ("main", 100)]);
        let row = profile([("send", 600), ("parse", 400), ("main", 100)]);
        // The row takes 11 us instead of 10 us, so a sample is 0.01 us of both.
        let scales = (ProfileScale::of(&row, 11.0), ProfileScale::of(&baseline, 10.0));
        let found = differing((&row, scales.0), (&baseline, scales.1));
        let told = |of: &FunctionCost<'_>| {
            let name = &of.function.name;
            format!("{name} {:.2} {:.2} {:+.2}", of.baseline_us, of.row_us, of.difference.us)
        };
        let told: Vec<String> = found.iter().map(told).collect();
        assert_eq!(told, ["send 0.00 6.00 +6.00", "copy 5.00 0.00 -5.00"]);
    }
}
