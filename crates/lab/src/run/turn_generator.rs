//! The generator of a row: `weir load`, which waits between turns, or another program.

use std::path::Path;

use processes::procfs;

use super::foreign::ForeignGenerator;
use super::generator::{GeneratorTurn, RunningGenerator};
use crate::figures::MeasuredRun;
use crate::study::StudyLoad;

pub(super) enum TurnGenerator {
    Own(RunningGenerator),
    Foreign(ForeignGenerator),
}

impl TurnGenerator {
    /// Starts the generator of a load, unless it is one that is started for each turn.
    pub(super) fn start(
        turn: &GeneratorTurn,
        load: &StudyLoad,
        weir: &Path,
    ) -> Result<Self, String> {
        Ok(match load.generator.is_foreign() {
            false => Self::Own(turn.start(weir)?),
            true => Self::Foreign(ForeignGenerator::new(load.generator, turn, load.close)),
        })
    }

    /// Runs a turn. The caller adds the figures of processes.
    pub(super) fn turn(&mut self) -> Result<MeasuredRun, String> {
        match self {
            Self::Own(own) => own.turn(),
            Self::Foreign(foreign) => foreign.turn(),
        }
    }

    /// Its CPU time so far in seconds. For one that is started for each turn, it includes that of
    /// other children that have ended, so only differences over a turn mean something.
    pub(super) fn cpu_s(&self) -> Result<f64, String> {
        match self {
            Self::Own(own) => procfs::cpu_s(own.pid()),
            Self::Foreign(_) => procfs::cpu_of_the_ended_s(),
        }
    }
}
