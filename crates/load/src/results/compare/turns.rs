//! Two servers that took turns: how B differs from A, with confidence intervals.
//!
//! Each block of four turns gives one ratio per measure, B's two turns to A's two. Changes that are
//! linear over a block cancel out, and because the order within each block is random, the ratios of
//! blocks are practically independent. Their median and its interval are the result, as in `weir
//! lab`: a block in which the machine did something else hardly changes them.

use serde::Serialize;
use statistics::{Interval, geometric_mean, median, median_interval};

use super::super::{ComparedSide, LoadKind, MeasuredTurn, Results, TurnBlock, Turns, notes};
use super::kinds::doubts_of;
use super::measures::{MEAN, MEASURES, Measure, P50, P99, RATE};
use super::row::{ComparisonRow, failures, headline};

/// The least number of blocks for an interval.
pub const BLOCKS_MIN: usize = 6;

/// The seed of the bootstrap samples; fixed, so that the same turns have the same interval.
const SEED: u64 = 1;

/// A measure's value in a turn.
type TurnMeasure = fn(&MeasuredTurn) -> f64;

/// The compared measures: the index, and the value in a turn.
const COMPARED: [(usize, TurnMeasure); 4] = [
    (RATE, |turn| turn.rate),
    (MEAN, |turn| turn.moment.mean_us),
    (P50, |turn| turn.moment.p50_us as f64),
    (P99, |turn| turn.moment.p99_us as f64),
];

/// How B differs from A. A ratio is `None` if too few blocks had replies in all turns.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Effects {
    /// Replies per second.
    pub rate: Option<ValueRatio>,
    /// The mean latency.
    pub mean: Option<ValueRatio>,
    /// The median latency.
    pub p50: Option<ValueRatio>,
    /// The 99th percentile of latency.
    pub p99: Option<ValueRatio>,
}

/// The ratio of B's value to A's, with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ValueRatio {
    /// The ratio.
    pub ratio: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// How B differs from A.
pub fn effects(turns: &Turns) -> Effects {
    let [rate, mean, p50, p99] = COMPARED.map(|(_, value)| {
        let interval = ratio(&turns.blocks, value);
        interval.map(|Interval { value, low, high }| ValueRatio { ratio: value, low, high })
    });
    Effects { rate, mean, p50, p99 }
}

fn ratio(blocks: &[TurnBlock], value: TurnMeasure) -> Option<Interval> {
    let ratios: Vec<f64> = blocks.iter().filter_map(|block| block_ratio(block, value)).collect();
    (ratios.len() >= BLOCKS_MIN).then(|| median_interval(&ratios, SEED))?
}

fn block_ratio(block: &TurnBlock, value: TurnMeasure) -> Option<f64> {
    let mean = |side| geometric_mean(&values(std::slice::from_ref(block), side, value));
    Some(mean(ComparedSide::B)? / mean(ComparedSide::A)?)
}

fn values(blocks: &[TurnBlock], side: ComparedSide, value: TurnMeasure) -> Vec<f64> {
    let turns = blocks.iter().flat_map(|block| &block.turns);
    turns.filter(|turn| turn.side == side).map(value).collect()
}

/// The table and its headline.
pub fn text(turns: &Turns) -> String {
    let blocks = &turns.blocks;
    let rows = COMPARED.map(|(measure, value)| row(&MEASURES[measure], blocks, value));
    let [rate, .., p99] = &rows;
    let mut text = format!("{:<24}{:>12}{:>12}   B from A\n", "", "A", "B");
    rows.iter().for_each(|row| text += &row.line());
    let [a, b] = &turns.sides;
    text += &failures(std::slice::from_ref(a), std::slice::from_ref(b));
    let headline = match a.pace {
        LoadKind::Closed => headline(rate, "rate", "faster", "slower"),
        LoadKind::Open { .. } => headline(p99, "p99 latency", "higher", "lower"),
    };
    let count = blocks.len();
    text += &format!("\n{headline}\nThe noise is that between {count} blocks of four turns.\n");
    let is_whole = |block: &&TurnBlock| block_ratio(block, |turn| turn.rate).is_some();
    match count - blocks.iter().filter(is_whole).count() {
        0 => text,
        silent => {
            text + &format!("{silent} of them had a turn without replies and were left out.\n")
        }
    }
}

fn row(measure: &'static Measure, blocks: &[TurnBlock], value: TurnMeasure) -> ComparisonRow {
    let middle = |side| middle(&values(blocks, side, value));
    let interval = ratio(blocks, value);
    ComparisonRow {
        measure,
        a: middle(ComparedSide::A),
        b: middle(ComparedSide::B),
        ratio: interval.map(|ratio| ratio.value),
        interval,
    }
}

/// The median; 0 without turns.
fn middle(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { median(values) }
}

/// Notes on the table: errors and doubts.
pub fn notes(turns: &Turns) -> String {
    let of = |(name, side): (&str, &Results)| {
        let errors = match side.tally.failures() {
            0 => String::new(),
            _ => format!("\n{name}: {}", notes::errors(&side.tally)),
        };
        errors + &doubts_of(&format!("The figures of {name}"), side)
    };
    let interrupted = match turns.sides[0].interrupted {
        true => "\nInterrupted: a block that was not completed is not counted.\n",
        false => "",
    };
    let sides: String = ["A", "B"].into_iter().zip(&turns.sides).map(of).collect();
    interrupted.to_owned() + &sides
}

/// The line for a block that has ended.
pub fn line(block: &TurnBlock) -> String {
    let side = |name: &str, side| {
        let of = |(measure, value): (usize, TurnMeasure)| {
            (MEASURES[measure].show)(middle(&values(std::slice::from_ref(block), side, value)))
        };
        let [rate, _, p50, p99] = COMPARED.map(of);
        format!("{name} {rate:>10} requests/s  p50 {p50:>9}  p99 {p99:>9}")
    };
    let at = block.turns.last().map_or(0.0, |turn| turn.moment.at);
    format!("{at:6.1}s  {}   {}\n", side("A", ComparedSide::A), side("B", ComparedSide::B))
}

#[cfg(test)]
mod tests;
