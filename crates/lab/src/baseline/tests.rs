use statistics::SplitMix;

use super::*;
use crate::figures::{CPU, RATE};
use crate::gate::{self, GateRule, GateVerdict};
use crate::testing::record;

/// A record whose servers take `cpu_us`. The machine drifts by up to a fifth from block to block,
/// starts differ by 2 %, and turns by 4 %.
fn measured(cpu_us: f64, blocks: usize, seed: u64) -> StudyRecord {
    let mut random = SplitMix::new(seed);
    let mut normal =
        move |deviation: f64| (0..6).map(|_| random.unit() - 0.5).sum::<f64>() * deviation / 0.707;
    let mut record = record(blocks);
    let (mut start, mut drift) = ([1.0; 2], 1.0);
    for turn in &mut record.turns {
        if turn.row == 0 {
            drift = 1.0 + normal(0.1).clamp(-0.2, 0.2);
            if turn.block.is_multiple_of(BLOCKS_OF_A_START) {
                start = [1.0 + normal(0.02), 1.0 + normal(0.02)];
            }
        }
        turn.measured.cpu_us = cpu_us * drift * start[turn.row] * (1.0 + normal(0.04));
    }
    record
}

fn compared(old: &StudyRecord, new: &StudyRecord) -> BaselineRecord {
    BaselineRecord::of("old.json", old, new).expect("a comparison")
}

#[test]
fn intervals_contain_the_truth_in_94_of_100_comparisons_of_few_starts_and_more() {
    for blocks in [12, 24, 40] {
        let covered = |seed: &u64| {
            let (old, new) = (measured(5.0, blocks, *seed), measured(6.0, blocks, *seed + 5000));
            let starts = |record| starts(record, Subject { program: 0, row: 1 }, CPU);
            let effect = ratio_of_means(&starts(&old), &starts(&new));
            effect.is_some_and(|effect| !effect.excludes(1.2))
        };
        let covered = (0..1000).filter(covered).count();
        assert!(covered >= 940, "{blocks} blocks: {covered} of 1000");
    }
}

#[test]
fn starts_count_and_not_turns() {
    let turns = |blocks: usize| starts(&record(blocks), Subject { program: 0, row: 0 }, RATE).len();
    assert_eq!([8, 11, 12, 40].map(turns), [1, 1, 2, 5]);
    let one_start = compared(&record(8), &record(8));
    assert_eq!(one_start.effect(0, RATE.key), None);
}

#[test]
fn searches_are_compared_too() {
    let search =
        |repeat, rate| crate::record::SearchRecord { program: 0, row: 0, repeat, rate, steps: 9 };
    let mut old = record(8);
    old.searches = (0..6).map(|repeat| search(repeat, 1000.0)).collect();
    let mut new = old.clone();
    new.searches.iter_mut().for_each(|search| search.rate = 1500.0);
    let effect = compared(&old, &new).effect(0, CAPACITY).expect("an effect");
    assert!((effect.value - 1.5).abs() < 1e-9, "{effect:?}");
    assert_eq!(compared(&old, &new).effect(1, CAPACITY), None);
}

#[test]
fn limits_apply_to_each_row_compared_with_the_baseline() {
    let (old, mut new) = (measured(5.0, 40, 1), measured(10.0, 40, 2));
    new.baseline = Some(compared(&old, &new));
    let rules = [GateRule::parse("cpu>10%").unwrap(), GateRule::parse("rate<-3%").unwrap()];
    let verdicts: Vec<_> = gate::judge(&new, &rules).iter().map(|of| of.verdict).collect();
    let expected =
        [GateVerdict::Fails, GateVerdict::Fails, GateVerdict::Passes, GateVerdict::Passes];
    assert_eq!(verdicts, expected);
}

#[test]
fn another_study_or_machine_is_an_error() {
    let stored = |record: &StudyRecord| {
        StoredBaseline::parse("old.json", &serde_json::to_string(record).unwrap())
    };
    let new = record(8);
    assert!(stored(&new).unwrap().check(&new).is_ok());
    let message = |change: fn(&mut StudyRecord)| {
        let mut old = record(8);
        change(&mut old);
        stored(&old).and_then(|stored| stored.check(&new)).err().unwrap_or_default()
    };
    for (change, told) in [
        ((|old| old.study.template.push(' ')) as fn(&mut StudyRecord), "its study is not the same"),
        (|old| old.machine.processor.push('x'), "its processor: a processorx; now: a processor."),
        (|old| old.machine.processors = 64, "its number of processors: 64; now: 2."),
        (|old| old.machine.system.push('x'), "its system: Linux 6.1x; now: Linux 6.1."),
        (|old| old.hosts.push('x'), "its hosts: "),
        (|old| old.format = "weir lab 1".to_owned(), "it is no record with the format"),
        (|old| old.turns.clear(), "it has no turns"),
        (|old| old.turns[0].row = 9, "it has turns of a row or a program"),
    ] {
        let message = message(change);
        assert!(message.starts_with(&format!("--baseline old.json: {told}")), "{message}");
    }
    for text in ["", "[]", "{}", "{\"format\": \"weir lab 2\"}"] {
        assert!(StoredBaseline::parse("f", text).is_err(), "{text}");
    }
    assert!(StoredBaseline::read(std::path::Path::new("/none")).is_err());
}
