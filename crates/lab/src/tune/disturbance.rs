//! How far the machine was disturbed during a search.
//!
//! The configuration's own backends receive the load, and which processes they are is unknown. So
//! the machine is looked at between blocks, when the search itself is idle.

use std::time::{Duration, Instant};

use processes::machine::{self, MachineShares};
use serde::Serialize;

use crate::progress;

/// The time from one look to the next.
const PERIOD: Duration = Duration::from_secs(2);

/// What the looks at the machine found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct TuneDisturbance {
    pub looks: usize,
    /// The looks at a busy machine.
    pub disturbed: usize,
    /// The largest share of the machine's time that other processes used.
    pub others_max: f64,
    /// The largest share that other machines on the same hardware used.
    pub stolen_max: f64,
}

/// Looks at the machine from time to time.
pub(super) struct MachineWatch {
    found: TuneDisturbance,
    last: Option<Instant>,
    /// The time to wait for a busy machine, each time.
    wait_max: Option<Duration>,
}

impl MachineWatch {
    pub(super) fn new(wait_max: Option<Duration>) -> Self {
        Self { found: TuneDisturbance::default(), last: None, wait_max }
    }

    pub(super) fn found(&self) -> TuneDisturbance {
        self.found
    }

    /// Called between two blocks. With `--wait-idle`, waits until the machine is idle; otherwise
    /// notes how busy it is. Does nothing within [`PERIOD`] of the last look.
    pub(super) fn between_blocks(&mut self) -> Result<(), String> {
        if self.last.is_some_and(|last| last.elapsed() < PERIOD) {
            return Ok(());
        }
        match self.wait_max {
            Some(limit) => machine::wait_until_quiet(limit, &mut |shares| {
                progress::wait(shares);
                true
            })?,
            None => self.found.note(MachineShares::look()),
        }
        self.last = Some(Instant::now());
        Ok(())
    }
}

impl TuneDisturbance {
    fn note(&mut self, shares: MachineShares) {
        self.looks += 1;
        self.disturbed += usize::from(!shares.is_quiet());
        self.others_max = self.others_max.max(shares.others);
        self.stolen_max = self.stolen_max.max(shares.stolen);
    }

    /// A warning about a busy machine.
    pub(super) fn warning(&self) -> Option<String> {
        let Self { looks, disturbed, others_max, stolen_max } = *self;
        let percent = |share: f64| (share * 100.0).round();
        (disturbed > 0).then(|| {
            format!(
                "The machine was disturbed in {disturbed} of {looks} looks: other processes used \
                 up to {} % of its time, other machines {} %. Repeat this on a quiet machine, or \
                 with --wait-idle.",
                percent(others_max),
                percent(stolen_max)
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_machine_is_reported() {
        let mut found = TuneDisturbance::default();
        found.note(MachineShares { others: 0.1, stolen: 0.01 });
        assert_eq!(found.warning(), None);
        found.note(MachineShares { others: 0.456, stolen: 0.0 });
        let warning = found.warning().unwrap_or_default();
        assert!(warning.starts_with("The machine was disturbed in 1 of 2 looks: "), "{warning}");
        assert!(warning.contains("up to 46 % of its time, other machines 1 %."), "{warning}");
    }
}
