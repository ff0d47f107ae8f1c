//! A simulated machine, seeded: nothing here looks at a clock.

use std::f64::consts::TAU;

use super::*;
use crate::results::Moment;
use crate::results::testing::results;

/// Pseudo-random numbers.
struct Lot(u64);

impl Lot {
    fn bits(&mut self) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn uniform(&mut self) -> f64 {
        self.bits() as f64 / (1_u64 << 31) as f64
    }

    /// Twelve uniform ones, less six: nearly normal.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }
}

/// What a machine does to the rates of turns, beside chance.
#[derive(Clone, Copy)]
enum Machine {
    /// Nothing.
    Quiet,
    /// It becomes slower from turn to turn.
    Warms,
    /// Neighbours come and go: each turn is much like the one before.
    Shared,
    /// Something happens in step with the turns: every second, or every fourth.
    InStep(usize),
    /// Connections are lucky or not, for as long as they last: a block.
    Luck,
}

/// A run of so many blocks, in which B is faster by so much.
fn run(lot: &mut Lot, machine: Machine, blocks: usize, effect: f64) -> Turns {
    let (mut neighbour, mut number) = (0.0, 0);
    let blocks = (0..blocks).map(|_| {
        let luck = [lot.normal() * 0.05, lot.normal() * 0.05];
        let turns = order(lot.bits()).map(|side| {
            neighbour = neighbour * 0.8 + lot.normal() * 0.05;
            number += 1;
            let drift = match machine {
                Machine::Quiet => 0.0,
                Machine::Warms => -0.01 * number as f64,
                Machine::Shared => neighbour,
                Machine::InStep(turns) => (number as f64 * TAU / turns as f64).cos() * 0.05,
                Machine::Luck => luck[side as usize],
            };
            let own = if side == ComparedSide::B { effect } else { 1.0 };
            let rate = 1000.0 * own * (drift + lot.normal() * 0.02).exp();
            MeasuredTurn { side, rate, moment: moment(number as f64, 1e6 / rate) }
        });
        TurnBlock { turns: turns.into() }
    });
    let blocks = blocks.collect();
    Turns { turn: Default::default(), sides: [results(), results()], blocks }
}

/// What is kept of a turn whose requests all took as long.
fn moment(at: f64, us: f64) -> Moment {
    let (p50_us, p99_us, max_us) = (us as u64, us as u64, us as u64);
    Moment { at, replies: 1, errors: 0, mean_us: us, p50_us, p99_us, max_us, packed: Vec::new() }
}

fn order(lot: u64) -> [ComparedSide; 4] {
    crate::run::turns::order(lot)
}

/// Of a thousand runs, how many intervals of the rate hold that ratio.
fn hits(machine: Machine, blocks: usize, effect: f64) -> usize {
    let mut lot = Lot(7);
    let hit = |_: &usize| {
        let [rate, ..] = effects(&run(&mut lot, machine, blocks, effect));
        rate.ratio.is_some_and(|[_, low, high]| (low..=high).contains(&effect))
    };
    (0..1000).filter(hit).count()
}

/// A server against itself, or against one that is a tenth faster: the interval is right in 95 of
/// 100 runs, whatever the machine does meanwhile. Of 1000, 95 % differ by 14 by chance alone.
#[test]
fn the_interval_holds_the_truth_19_times_of_20() {
    use Machine::{InStep, Luck, Quiet, Shared, Warms};
    for (name, machine) in [
        ("quiet", Quiet),
        ("warms", Warms),
        ("shared", Shared),
        ("every second turn", InStep(2)),
        ("every fourth turn", InStep(4)),
        ("luck", Luck),
    ] {
        for effect in [1.0, 1.1] {
            for blocks in [5, 10, 30] {
                let hits = hits(machine, blocks, effect);
                assert!((930..=975).contains(&hits), "{name}, {blocks} blocks: {hits}");
            }
        }
    }
}

#[test]
fn a_difference_is_found() {
    let turns = run(&mut Lot(1), Machine::Shared, 10, 1.1);
    let text = text(&turns);
    assert!(text.contains("\nB is ") && text.contains(" % faster ["), "{text}");
    assert!(
        text.ends_with(
            ", more than the noise.\nThe noise is that between 10 blocks of four turns.\n"
        )
    );
    let same = run(&mut Lot(1), Machine::Shared, 10, 1.0);
    assert!(super::text(&same).contains("\nNo difference in rate that these runs can show: B "));
}

#[test]
fn open_loops_are_told_by_their_p99() {
    let mut turns = run(&mut Lot(1), Machine::Quiet, 10, 0.5);
    turns.sides.iter_mut().for_each(|side| side.pace = LoadKind::Open { from: 10.0, to: 10.0 });
    assert!(text(&turns).contains("\nB's p99 latency is "), "{}", text(&turns));
}

/// Turns without replies have no latency; too few blocks have no interval.
#[test]
fn turns_without_replies() {
    let mut turns = run(&mut Lot(1), Machine::Quiet, 4, 1.0);
    for block in &mut turns.blocks[..2] {
        let nothing = moment(1.0, 0.0);
        block.turns[0] = MeasuredTurn { rate: 0.0, moment: nothing, ..block.turns[0].clone() };
    }
    assert!(effects(&turns).iter().all(|effect| effect.ratio.is_none()));
    let text = text(&turns);
    assert!(text.contains("These runs cannot show whether "), "{text}");
    assert!(
        text.ends_with("\n2 of them had a turn without replies and were left out.\n"),
        "{text}"
    );
    turns.blocks.clear();
    assert!(
        super::text(&turns)
            .contains("\nrequests/s                      0.00        0.00        -\n")
    );
    assert!(line(&TurnBlock { turns: Vec::new() }).starts_with("   0.0s  A       0.00 requests/s"));
}

#[test]
fn errors_and_doubts_have_the_name_of_their_side() {
    let mut turns = run(&mut Lot(1), Machine::Quiet, 3, 1.0);
    assert_eq!(notes(&turns), "");
    turns.sides[1].tally.statuses.add(404, 5);
    turns.sides[0].busiest_thread = 0.95;
    let text = notes(&turns);
    assert!(text.contains("\nB: Errors, each counted once:\n  status 404 "), "{text}");
    assert!(
        text.starts_with("The figures of A are the generator's, not the server's:\n"),
        "{text}"
    );
}
