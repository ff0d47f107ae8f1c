use super::*;
use crate::tune::simulation::SimulatedMachine;

/// The turns of each simulated search: at 300 ms, with pauses as long between them, 10 minutes.
const TURNS: usize = 1000;
const SIMULATIONS: u64 = 100;

fn without_subjects(count: usize) -> Vec<&'static str> {
    const NAMES: [&str; 16] =
        ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p"];
    NAMES[..count].to_vec()
}

/// The candidates that a search of simulated gains keeps, in order.
fn found(machine: &mut SimulatedMachine, subjects: &[&str], turns: usize) -> Vec<usize> {
    let result = search(subjects, turns, machine).unwrap();
    assert!(machine.turns <= turns, "{}", machine.turns);
    let mut kept: Vec<usize> = result.kept.iter().map(|effect| effect.candidate).collect();
    kept.sort_unstable();
    kept
}

/// The candidates that each of 100 searches keeps, by seed. They run on two threads, because they
/// take long.
fn searches<const N: usize>(gains: [f64; N], turns: usize) -> Vec<Vec<usize>> {
    let search =
        move |seed| found(&mut SimulatedMachine::new(&gains, seed), &without_subjects(N), turns);
    let half = SIMULATIONS / 2;
    let first = std::thread::spawn(move || (0..half).map(search).collect::<Vec<_>>());
    let second: Vec<_> = (half..SIMULATIONS).map(search).collect();
    [first.join().unwrap(), second].concat()
}

/// 16 candidates, of which three gain 5, 10 and 40 %: exactly these are found.
#[test]
fn planted_effects_are_found() {
    const PLANTED: [usize; 3] = [3, 8, 13];
    let mut gains = [1.0; 16];
    [gains[3], gains[8], gains[13]] = [1.05, 1.10, 1.40];
    let searches = searches(gains, TURNS);
    let with_all = |kept: &&Vec<usize>| PLANTED.iter().all(|planted| kept.contains(planted));
    let with_no_other = |kept: &&Vec<usize>| kept.iter().all(|kept| PLANTED.contains(kept));
    let all = searches.iter().filter(with_all).count();
    let no_other = searches.iter().filter(with_no_other).count();
    assert!(all >= 90, "all three in {all} of 100 searches");
    assert!(no_other >= 90, "no other in {no_other} of 100 searches");
}

/// Candidates whose small gains cannot be confirmed do not hide one that is sure.
#[test]
fn a_large_gain_is_reported_beside_small_ones() {
    let mut gains = [1.02; 15];
    gains[0] = 1.40;
    gains[9..].fill(1.0);
    let found = searches(gains, 900);
    assert_eq!(found.iter().filter(|kept| kept.contains(&0)).count(), 100);
}

#[test]
fn candidates_without_effect_are_not_kept() {
    let nothing = searches([1.0; 16], TURNS).iter().filter(|kept| kept.is_empty()).count();
    assert!(nothing >= 95, "nothing in {nothing} of 100 searches");
}

/// The better one is kept if they can be told apart.
#[test]
fn of_two_with_the_same_effect_one_is_kept() {
    for seed in 0..10 {
        let gains = [1.0, 1.3, 1.3, 1.0];
        let mut machine = SimulatedMachine::of_substitutes(&gains, seed);
        let kept = found(&mut machine, &without_subjects(4), TURNS);
        assert!(kept == [1] || kept == [2], "{seed}: {kept:?}");
    }
}

#[test]
fn of_one_subject_the_best_is_kept() {
    let mut machine = SimulatedMachine::new(&[1.2, 1.5, 1.2], 1);
    let result = search(&["keepalive", "keepalive", "workers"], TURNS, &mut machine).unwrap();
    let kept: Vec<usize> = result.kept.iter().map(|effect| effect.candidate).collect();
    assert_eq!((kept, result.dropped), (vec![1, 2], vec![0]));
    let together = result.together.unwrap().gain;
    assert!(together.low > 1.7 && together.high < 1.9, "{together:?}");
}

#[test]
fn candidates_that_cannot_be_confirmed_are_dropped() {
    let mut machine = SimulatedMachine::new(&[2.0], 1);
    let result = confirm(&[0], 2 * BLOCKS_MIN - 1, &mut machine).unwrap();
    assert_eq!((result.kept, result.dropped, machine.turns), (vec![], vec![0], 0));
    let result = confirm(&[0], 2 * BLOCKS_MIN, &mut machine).unwrap();
    assert_eq!((result.kept.len(), machine.turns), (1, 2 * BLOCKS_MIN));
    assert_eq!(result.together, result.kept.first().copied());
}

#[test]
fn an_error_ends_the_search() {
    struct Failing;
    impl TuneBlocks for Failing {
        fn gains(&mut self, _: &[Vec<usize>]) -> Result<Vec<f64>, String> {
            Err("the server has stopped".to_owned())
        }
    }
    assert_eq!(search(&["a"], 100, &mut Failing), Err("the server has stopped".to_owned()));
}
