//! A simulated machine with seeded noise and no clock.

use std::f64::consts::TAU;

use super::*;
use crate::results::Moment;
use crate::results::testing::results;

struct Random(u64);

impl Random {
    fn bits(&mut self) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn uniform(&mut self) -> f64 {
        self.bits() as f64 / (1_u64 << 31) as f64
    }

    /// Nearly normal: the sum of twelve uniform numbers, minus six.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }
}

/// The effect of a machine on the rates of turns, in addition to noise.
#[derive(Clone, Copy)]
enum Machine {
    /// None.
    Quiet,
    /// It becomes slower from turn to turn.
    Warms,
    /// Load of neighbours: consecutive turns are similar.
    Shared,
    /// Load in step with the turns: every second, or every fourth.
    InStep(usize),
    /// An effect of each connection, which lasts for a block.
    PerConnection,
    /// One of twenty turns takes three times as long.
    Stalls,
}

/// A run of `blocks` blocks, in which B is faster by the factor `effect`.
fn run(random: &mut Random, machine: Machine, blocks: usize, effect: f64) -> Turns {
    let (mut neighbour, mut number) = (0.0, 0);
    let blocks = (0..blocks).map(|_| {
        let luck = [random.normal() * 0.05, random.normal() * 0.05];
        let turns = order(random.bits()).map(|side| {
            neighbour = neighbour * 0.8 + random.normal() * 0.05;
            number += 1;
            let drift = match machine {
                Machine::Quiet => 0.0,
                Machine::Warms => -0.01 * number as f64,
                Machine::Shared => neighbour,
                Machine::InStep(turns) => (number as f64 * TAU / turns as f64).cos() * 0.05,
                Machine::PerConnection => luck[side as usize],
                Machine::Stalls if random.uniform() < 0.05 => -3f64.ln(),
                Machine::Stalls => 0.0,
            };
            let own = if side == ComparedSide::B { effect } else { 1.0 };
            let rate = 1000.0 * own * (drift + random.normal() * 0.02).exp();
            MeasuredTurn { side, rate, moment: moment(number as f64, 1e6 / rate) }
        });
        TurnBlock { turns: turns.into() }
    });
    let blocks = blocks.collect();
    Turns { turn: Default::default(), sides: [results(), results()], blocks }
}

/// The moment of a turn whose requests all had the same latency.
fn moment(at: f64, us: f64) -> Moment {
    let (p50_us, p99_us, max_us) = (us as u64, us as u64, us as u64);
    Moment { at, replies: 1, errors: 0, mean_us: us, p50_us, p99_us, max_us, packed: Vec::new() }
}

fn order(random: u64) -> [ComparedSide; 4] {
    crate::run::turns::order(random)
}

/// How many of 200 runs have an interval of the rate that contains the ratio.
fn hits(machine: Machine, blocks: usize, effect: f64) -> usize {
    let mut random = Random(7);
    let hit = |_: &usize| {
        let rate = ratio(&run(&mut random, machine, blocks, effect).blocks, |turn| turn.rate);
        rate.is_some_and(|rate| !rate.excludes(effect))
    };
    (0..200).filter(hit).count()
}

/// For equal servers, and for one that is a tenth faster, the interval is correct in at least 95 of
/// 100 runs, whatever the machine does. The number among 200 runs varies by 6 by chance.
#[test]
fn the_interval_contains_the_ratio_19_times_of_20() {
    use Machine::{InStep, PerConnection, Quiet, Shared, Stalls, Warms};
    for (name, machine) in [
        ("quiet", Quiet),
        ("warms", Warms),
        ("shared", Shared),
        ("every second turn", InStep(2)),
        ("every fourth turn", InStep(4)),
        ("per connection", PerConnection),
        ("stalls", Stalls),
    ] {
        for effect in [1.0, 1.1] {
            for blocks in [6, 10, 20] {
                let hits = hits(machine, blocks, effect);
                assert!(hits >= 184, "{name}, {blocks} blocks: {hits}");
            }
        }
    }
}

#[test]
fn a_difference_is_found() {
    let turns = run(&mut Random(1), Machine::Shared, 10, 1.1);
    let text = text(&turns);
    assert!(text.contains("\nB is ") && text.contains(" % faster ["), "{text}");
    assert!(
        text.ends_with(
            ", more than the noise.\nThe noise is that between 10 blocks of four turns.\n"
        )
    );
    let same = run(&mut Random(2), Machine::Shared, 10, 1.0);
    assert!(super::text(&same).contains("\nNo difference in rate that these runs can show: B "));
}

/// A mean would be carried away by the few turns that took three times as long.
#[test]
fn stalls_do_not_hide_a_difference() {
    let found = (1..=100).filter(|seed| {
        let turns = run(&mut Random(*seed), Machine::Stalls, 20, 1.1);
        effects(&turns).rate.is_some_and(|rate| rate.low > 1.0)
    });
    let found = found.count();
    assert!(found >= 80, "{found}");
}

#[test]
fn the_headline_of_open_loops_is_their_p99() {
    let mut turns = run(&mut Random(1), Machine::Quiet, 10, 0.5);
    turns.sides.iter_mut().for_each(|side| side.pace = LoadKind::Open { from: 10.0, to: 10.0 });
    assert!(text(&turns).contains("\nB's p99 latency is "), "{}", text(&turns));
}

/// Turns without replies have no latency; too few blocks have no interval.
#[test]
fn turns_without_replies_have_no_latency() {
    let mut turns = run(&mut Random(1), Machine::Quiet, 7, 1.0);
    for block in &mut turns.blocks[..2] {
        let nothing = moment(1.0, 0.0);
        block.turns[0] = MeasuredTurn { rate: 0.0, moment: nothing, ..block.turns[0].clone() };
    }
    assert_eq!(effects(&turns), Effects { rate: None, mean: None, p50: None, p99: None });
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
fn errors_and_doubts_name_their_side() {
    let mut turns = run(&mut Random(1), Machine::Quiet, 3, 1.0);
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
