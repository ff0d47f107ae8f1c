//! The results of two servers that took turns.

use std::time::Duration;

use serde::Serialize;

use super::{Moment, Results};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ComparedSide {
    /// The baseline.
    A,
    /// The one under test.
    B,
}

#[derive(Clone, Debug)]
pub struct MeasuredTurn {
    pub side: ComparedSide,
    /// Replies per second.
    pub rate: f64,
    /// Its other figures; `at` is its end, in seconds since the run began.
    pub moment: Moment,
}

/// Four turns, two of each server: ABBA or BAAB.
#[derive(Clone, Debug)]
pub struct TurnBlock {
    pub turns: Vec<MeasuredTurn>,
}

/// The results of a run of two servers.
#[derive(Clone, Debug)]
pub struct Turns {
    /// The length of a turn.
    pub turn: Duration,
    /// The sums of A's turns and of B's.
    pub sides: [Results; 2],
    /// The completed blocks.
    pub blocks: Vec<TurnBlock>,
}
