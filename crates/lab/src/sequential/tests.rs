use statistics::SplitMix;

use super::*;
use crate::testing::record;

const BLOCKS: usize = 40;

/// A record whose second row has `factor` of the first's CPU time. As in the simulations of
/// effects, the machine drifts by up to a fifth from block to block, and turns differ by 4 %.
fn measured(factor: f64, seed: u64) -> StudyRecord {
    let mut random = SplitMix::new(seed);
    let mut record = record(BLOCKS);
    let mut drift = 1.0;
    for (at, turn) in record.turns.iter_mut().enumerate() {
        if at % 2 == 0 {
            drift = 0.8 + 0.4 * random.unit();
        }
        let noise: f64 = (0..6).map(|_| random.unit() - 0.5).sum::<f64>() * 0.06;
        let own = if turn.row == 1 { factor } else { 1.0 };
        turn.measured.cpu_us = 5.0 * drift * own * (1.0 + noise);
    }
    record
}

/// Simulated studies: those that fail and pass, and their blocks on average.
struct Simulated {
    fails: usize,
    passes: usize,
    blocks: f64,
}

/// Runs 100 studies that stop early.
fn simulated(factor: f64, limit: &str) -> Simulated {
    let rules = [GateRule::parse(limit).unwrap()];
    let mut all = Simulated { fails: 0, passes: 0, blocks: 0.0 };
    for seed in 0..100 {
        let whole = measured(factor, seed);
        let mut record = StudyRecord { turns: Vec::new(), ..whole.clone() };
        record.looks = Some(StudyLooks::new(BLOCKS));
        for block in 0..BLOCKS {
            record.turns.extend(whole.turns.iter().filter(|turn| turn.block == block).cloned());
            if is_decided(&mut record, &rules) {
                break;
            }
        }
        all.blocks += record.complete_blocks() as f64 / 100.0;
        match gate::judge(&record, &rules)[0].verdict {
            GateVerdict::Fails => all.fails += 1,
            GateVerdict::Passes => all.passes += 1,
            GateVerdict::Inconclusive => {}
        }
    }
    all
}

#[test]
fn five_looks_at_an_effect_on_its_limit_are_wrong_in_5_of_100_studies_at_most() {
    let Simulated { fails, passes, .. } = simulated(1.0, "cpu>0%");
    assert!(fails + passes <= 5, "{fails} fail, {passes} pass");
}

#[test]
fn clear_cases_save_most_blocks() {
    let none = simulated(1.0, "cpu>10%");
    assert!(none.passes == 100 && none.blocks < 16.0, "{} in {}", none.passes, none.blocks);
    let slow = simulated(1.2, "cpu>3%");
    assert!(slow.fails == 100 && slow.blocks < 12.0, "{} in {}", slow.fails, slow.blocks);
}

#[test]
fn intervals_of_looks_are_wider() {
    let mut record = measured(1.0, 1);
    let rules = [GateRule::parse("cpu>0%").unwrap()];
    let plain = gate::text(&gate::judge(&record, &rules));
    record.looks = Some(StudyLooks::new(BLOCKS));
    let wider = gate::text(&gate::judge(&record, &rules));
    let width = |text: &str| -> f64 {
        let inside = text.split(['[', ']']).nth(1).expect("an interval");
        let (low, high) = inside.split_once(' ').expect("two ends");
        high.parse::<f64>().unwrap() - low.parse::<f64>().unwrap()
    };
    assert!(width(&wider) > width(&plain), "{wider}{plain}");
}

#[test]
fn looks_are_taken_after_starts_and_at_the_end() {
    let rules = [GateRule::parse("cpu>10%").unwrap()];
    let taken = |blocks: usize, complete: usize| {
        let mut record = record(blocks);
        record.turns.retain(|turn| turn.block < complete);
        record.looks = Some(StudyLooks::new(blocks));
        is_decided(&mut record, &rules);
        record.looks.map(|looks| (looks.most, looks.taken, looks.decided))
    };
    assert_eq!(taken(12, 7), Some((2, 0, false)));
    assert_eq!(taken(12, 8), Some((2, 1, true)));
    assert_eq!(taken(12, 12), Some((2, 2, true)));
    let looks = StudyLooks { most: 5, error: 0.01, taken: 2, decided: true };
    assert!(looks.told(16).starts_with("stopped early at look 2 of 5, after 16 blocks; "));
    let last = StudyLooks { taken: 5, ..looks };
    assert!(last.told(40).starts_with("decided at the last of 5 looks; "));
}
