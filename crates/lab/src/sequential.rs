//! `--stop-early`: looks at the limits of `--fail-if` after each start of the servers, until all
//! are decided.
//!
//! Each look has another chance to be wrong, so the intervals of a study that may stop early are
//! wider: those of all looks together are right with 95 % (`statistics::error_of_a_look`). The
//! number of looks is fixed before the first, and the report has no other intervals.

use statistics::error_of_a_look;

use crate::gate::{self, GateRule, GateVerdict};
use crate::record::{BLOCKS_OF_A_START, StudyLooks, StudyRecord};

impl StudyLooks {
    pub(crate) fn new(blocks: usize) -> Self {
        let most = blocks.div_ceil(BLOCKS_OF_A_START);
        Self { most, error: error_of_a_look(most), taken: 0, decided: false }
    }

    /// The line in the report.
    pub(crate) fn told(&self, blocks: usize) -> String {
        let Self { most, taken, decided, .. } = self;
        let when = match decided {
            true if taken == most => format!("decided at the last of {most} looks"),
            true => format!("stopped early at look {taken} of {most}, after {blocks} blocks"),
            false => format!("not decided at any of {taken} looks"),
        };
        format!("{when}; intervals are 95 % for all looks together")
    }
}

/// Looks at the study after a block, if it is time to; whether all limits are decided.
pub(crate) fn is_decided(record: &mut StudyRecord, rules: &[GateRule]) -> bool {
    let blocks = record.complete_blocks();
    let is_due = blocks.is_multiple_of(BLOCKS_OF_A_START) || blocks == record.blocks;
    let Some(looks) = &record.looks else { return false };
    if looks.decided || !is_due || blocks == 0 {
        return looks.decided;
    }
    let results = gate::judge(record, rules);
    let is_open = |result: &gate::GateResult| result.verdict == GateVerdict::Inconclusive;
    let decided = !results.is_empty() && !results.iter().any(is_open);
    if let Some(looks) = &mut record.looks {
        looks.taken = blocks.div_ceil(BLOCKS_OF_A_START);
        looks.decided = decided;
    }
    decided
}

#[cfg(test)]
mod tests;
