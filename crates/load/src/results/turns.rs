//! What was measured of two servers that took turns.

use std::time::Duration;

use super::{Moment, Results};

/// One of two servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComparedSide {
    /// The baseline.
    A,
    /// The one under test.
    B,
}

/// A turn of a server.
#[derive(Clone, Debug)]
pub struct MeasuredTurn {
    /// Whose.
    pub side: ComparedSide,
    /// Replies a second.
    pub rate: f64,
    /// Everything else; `at`: its end, in seconds since the run began.
    pub moment: Moment,
}

/// Four turns, two of each server: ABBA or BAAB.
#[derive(Clone, Debug)]
pub struct TurnBlock {
    /// In their order.
    pub turns: Vec<MeasuredTurn>,
}

/// A run of two servers, complete.
#[derive(Clone, Debug)]
pub struct Turns {
    /// How long a turn is.
    pub turn: Duration,
    /// All turns of A together, and all of B.
    pub sides: [Results; 2],
    /// Those that were completed.
    pub blocks: Vec<TurnBlock>,
}
