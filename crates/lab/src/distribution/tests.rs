use statistics::{Interval, SplitMix};

use super::*;
use crate::testing::record;

const BASELINE: Subject = Subject { program: 0, row: 0 };
const ROW: Subject = Subject { program: 0, row: 1 };

/// The places of p50, p90, p99 and p99.9.
const ENOUGH: [usize; 4] = [0, 1, 2, 3];
/// Latencies from here on are those that an effect changes; they are about 3 % of all.
const SLOW_US: f64 = 3000.0;

/// A record of 40 blocks. The machine's speed drifts by a fifth from block to block, and turns
/// differ by 4 %. One request in 20 is much slower than the others. The second row takes `factor`
/// as long for slow requests, so that its effect on p99 and p99.9 is known.
fn measured(factor: f64, seed: u64) -> StudyRecord {
    let mut random = SplitMix::new(seed);
    let mut record = record(40);
    let mut drift = 1.0;
    for (at, turn) in record.turns.iter_mut().enumerate() {
        if at % 2 == 0 {
            drift = 0.8 + 0.4 * random.unit();
        }
        let noise: f64 = (0..6).map(|_| random.unit() - 0.5).sum::<f64>() * 0.06;
        let mut latency = |_| {
            let usual = (0..4).map(|_| random.unit() - 0.5).sum::<f64>() * 0.5;
            let is_slow = random.unit() < 0.05;
            let slow = if is_slow { -4.0 * (1.0 - random.unit()).ln() } else { 0.0 };
            let us = 1000.0 * (usual.exp() + slow) * drift * (1.0 + noise);
            let own = if turn.row == 1 && us >= SLOW_US { factor } else { 1.0 };
            ((us * own) as u64, 1)
        };
        turn.measured.latencies = LatencyCounts::of((0..600).map(&mut latency));
    }
    record
}

/// Of 100 studies, the numbers of intervals at each quantile for which `holds`.
fn count(factor: f64, holds: impl Fn(usize, Interval) -> bool) -> [usize; 4] {
    let mut counts = [0; 4];
    for seed in 1..=100 {
        let effects = LatencyEffects::drawn(&measured(factor, seed), &[BASELINE, ROW], 400);
        for quantile in ENOUGH {
            let ratio = effects.ratio(ROW, BASELINE, quantile).expect("enough requests");
            counts[quantile] += usize::from(holds(quantile, ratio));
        }
    }
    counts
}

#[test]
fn two_equal_rows_have_equal_quantiles() {
    let seen = count(1.0, |_, ratio| ratio.excludes(1.0));
    assert!(seen.iter().all(|seen| *seen <= 7), "{seen:?}");
}

#[test]
fn an_effect_on_slow_requests_is_found_at_high_quantiles_only() {
    let seen = count(1.2, |_, ratio| ratio.excludes(1.0));
    assert!(seen[2] >= 90 && seen[0] <= 7 && seen[1] <= 7, "{seen:?}");
    let covered =
        count(1.2, |quantile, ratio| !ratio.excludes(if quantile < 2 { 1.0 } else { 1.2 }));
    assert!(covered.iter().all(|covered| *covered >= 93), "{covered:?}");
}

#[test]
fn a_quantile_needs_requests_and_turns() {
    let mut record = measured(1.0, 1);
    let effects = |record: &StudyRecord| LatencyEffects::drawn(record, &[BASELINE, ROW], 50);
    let p9999 = effects(&record).level(ROW, 4);
    assert_eq!(p9999, Err(UnknownLatency::FewRequests(2)), "of 24,000");
    // Five of 40 turns of the second row had a pause.
    for turn in record.turns.iter_mut().filter(|turn| turn.row == 1 && turn.block < 5) {
        turn.measured.latencies = LatencyCounts::of([(1000, 500), (90_000, 100)]);
    }
    let paused = effects(&record);
    assert_eq!(paused.ratio(ROW, BASELINE, 3), Err(UnknownLatency::FewTurns));
    assert!(paused.level(ROW, 3).is_ok_and(|us| us > 89_000.0));
    assert!(paused.ratio(ROW, BASELINE, 0).is_ok());
}

#[test]
fn records_without_latencies_have_no_quantiles() {
    let mut record = measured(1.0, 1);
    record.turns[7].measured.latencies = LatencyCounts::default();
    let mut effects = LatencyEffects::drawn(&record, &[BASELINE, ROW], 50);
    assert!(effects.ratio(ROW, BASELINE, 0).is_ok(), "the block is left out");
    record.turns.iter_mut().for_each(|turn| turn.measured.latencies = LatencyCounts::default());
    effects = LatencyEffects::drawn(&record, &[BASELINE, ROW], 50);
    assert_eq!(effects.level(ROW, 0), Err(UnknownLatency::NotKept));
    assert!(effects.is_empty());
}

#[test]
fn turns_without_replies_have_no_latencies_but_count() {
    let mut record = measured(1.0, 1);
    for turn in record.turns.iter_mut().filter(|turn| turn.row == 1 && turn.block >= 20) {
        turn.measured.requests = 0;
        turn.measured.latencies = LatencyCounts::default();
    }
    assert_eq!(blocks(&record).len(), 40);
    let effects = LatencyEffects::drawn(&record, &[BASELINE, ROW], 50);
    assert!(effects.ratio(ROW, BASELINE, 0).is_ok_and(|ratio| ratio.low > 0.0));
}
