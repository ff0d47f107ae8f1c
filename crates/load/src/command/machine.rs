//! The machine beside a run. Which processes are the server is unknown, so the machine is looked at
//! while there is no load: before the run, and after it.

use processes::machine::{MachineShares, wait_until_quiet};

use crate::settings::LoadSettings;
use crate::tell;

/// With `--wait-idle`, waits until the machine is idle. Then, for a run that prints notes, measures
/// how busy it is.
pub(super) fn before(
    settings: &LoadSettings,
    has_notes: bool,
) -> Result<Option<MachineShares>, String> {
    if let Some(limit) = settings.wait_idle {
        wait_until_quiet(limit, &mut |_| true)?;
    }
    Ok(has_notes.then(MachineShares::look))
}

/// Prints a note above the results of a run if the machine was busy before it or is so after it.
/// Processes that are busy after a run probably were during it.
pub(super) fn tell_if_busy(before: MachineShares) {
    let shares = if before.is_quiet() { MachineShares::look() } else { before };
    if let Some(note) = note(shares) {
        tell(&note);
    }
}

fn note(shares: MachineShares) -> Option<String> {
    let percent = |share: f64| (share * 100.0).round();
    (!shares.is_quiet()).then(|| {
        format!(
            "\nThis machine is busy without the load: processes use {} % of its time, other \
             machines on the same\nhardware {} %. The figures depend on them; --wait-idle waits.\n",
            percent(shares.others),
            percent(shares.stolen)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_machine_is_reported() {
        assert_eq!(note(MachineShares { others: 0.1, stolen: 0.01 }), None);
        let busy = note(MachineShares { others: 0.4, stolen: 0.0 }).unwrap();
        assert!(busy.contains("use 40 % of its time, other machines on the same\nhardware 0 %"));
    }
}
