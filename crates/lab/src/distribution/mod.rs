//! Latencies as distributions: quantiles of all requests of all turns, and their effects.
//!
//! A turn of 300 ms has too few requests for its own p99.9. So each turn keeps its histogram
//! ([`LatencyCounts`]), and quantiles are those of all turns of a row together
//! ([`PooledLatencies`]). [`LatencyEffects`] compares them between rows.

mod counts;
mod effects;
mod pooled;

pub(crate) use counts::LatencyCounts;
pub(crate) use effects::{BEYOND_MIN, LatencyEffects, QUANTILES, UnknownLatency};
pub(crate) use pooled::PooledLatencies;

use crate::record::{StudyRecord, Subject};

/// The complete blocks whose turns have all kept their latencies; old records have none.
fn blocks(record: &StudyRecord) -> Vec<usize> {
    let keeps = |block: &usize| {
        let mut turns = record.turns.iter().filter(|turn| turn.block == *block);
        turns.all(|turn| turn.measured.requests == 0 || !turn.measured.latencies.is_empty())
    };
    (0..record.complete_blocks()).filter(keeps).collect()
}

/// The latencies of a subject, turn by turn in the order of the blocks; `None` if there are none.
pub(crate) fn pooled(record: &StudyRecord, subject: Subject) -> Option<PooledLatencies> {
    let turns = record.turns_of(subject.program, subject.row);
    let latencies = |block| Some(&turns.get(block)?.measured.latencies);
    let latencies: Option<Vec<_>> = blocks(record).iter().map(latencies).collect();
    latencies.filter(|turns| !turns.is_empty()).map(|turns| PooledLatencies::of(&turns))
}

#[cfg(test)]
mod tests;
