//! Blocks outlive their workers, and no two workers have the same.

use std::os::fd::AsFd;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use super::names::{BlockName, Ledger};
use super::{create, map};

/// Two processes that share memory.
fn two() -> (Ledger, Ledger) {
    let memory = create().unwrap();
    let join = || {
        let mut ledger = Ledger::default();
        ledger.join(map(memory.as_fd()).unwrap()).unwrap();
        ledger
    };
    (join(), join())
}

fn name(text: &str) -> BlockName {
    BlockName::new(7, text.as_bytes())
}

fn add(ledger: &mut Ledger, text: &str, thread: u32, count: u64) {
    let given = ledger.claim(&name(text), 3, thread).unwrap();
    given.counters[2].fetch_add(count, Relaxed);
}

fn sum(ledger: &mut Ledger, text: &str) -> u64 {
    let settle = |words: &[AtomicU64]| words[0].store(99, Relaxed);
    ledger.blocks(&name(text), settle).iter().map(|words| words[2].load(Relaxed)).sum()
}

#[test]
fn every_worker_of_every_process_has_a_block_of_its_own() {
    let (mut one, mut other) = two();
    add(&mut one, "a", 0, 1);
    add(&mut one, "a", 1, 10);
    add(&mut other, "a", 0, 100);
    add(&mut other, "b", 0, 1000);
    assert_eq!((sum(&mut one, "a"), sum(&mut other, "a")), (111, 111));
    assert_eq!((sum(&mut one, "b"), sum(&mut one, "c")), (1000, 0));
    assert_eq!(one.blocks(&name("a"), |_| ()).len(), 3);
}

#[test]
fn a_block_of_a_worker_that_has_ended_goes_on() {
    let (mut one, mut other) = two();
    let given = one.claim(&name("a"), 3, 0).unwrap();
    given.counters[2].store(5, Relaxed);
    assert_eq!(other.claim(&name("a"), 3, 0).unwrap().counters[2].load(Relaxed), 0);
    one.leave(0, &[given.at]);
    let again = one.claim(&name("a"), 3, 1).unwrap();
    assert_eq!((again.counters[2].load(Relaxed), again.was_killed), (5, false));
    assert_eq!(one.blocks(&name("a"), |_| ()).len(), 2);
}

#[test]
fn what_a_killed_process_had_under_way_is_settled_once() {
    let memory = create().unwrap();
    let mut killed = Ledger::default();
    let words = map(memory.as_fd()).unwrap();
    killed.join(words).unwrap();
    let mut other = Ledger::default();
    other.join(map(memory.as_fd()).unwrap()).unwrap();
    add(&mut killed, "a", 0, 5);
    add(&mut killed, "b", 0, 7);
    // Its lock goes as if the process had ended.
    killed.unlock_for_test();
    assert_eq!(sum(&mut other, "a"), 5);
    let settled = other.claim(&name("a"), 3, 0).unwrap();
    assert!(!settled.was_killed && settled.counters[0].load(Relaxed) == 99);
    let unsettled = other.claim(&name("b"), 3, 0).unwrap();
    assert!(unsettled.was_killed && unsettled.counters[2].load(Relaxed) == 7);
}

#[test]
fn blocks_that_nobody_names_are_freed() {
    let (mut one, _other) = two();
    // Far more names than there is memory for.
    for number in 0..200_000 {
        let given = one.claim(&name(&format!("server {number}")), 80, 0).unwrap();
        one.leave(0, &[given.at]);
    }
    assert_eq!(sum(&mut one, "server 1"), 0);
}

#[test]
fn a_full_memory_gives_no_block() {
    let (mut one, _other) = two();
    let most =
        (0..).take_while(|number| one.claim(&name(&number.to_string()), 100_000, 0).is_some());
    assert_eq!(most.count(), 83);
    assert!(one.claim(&name("small"), 3, 0).is_some());
}
