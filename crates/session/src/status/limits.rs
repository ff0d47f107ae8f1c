//! What limits have done, by zone.

use metrics::{Counter, Tally};

metrics::counts! {
    /// What the limits of a zone have done with sessions.
    pub struct LimitCounters of LimitCounts = 6 {
        passed: Tally,
        delayed: Tally,
        rejected: Tally,
        delayed_dry_run: Tally,
        rejected_dry_run: Tally,
        /// Without a key.
        skipped: Tally,
        /// Rejected because the zone had no room for the key.
        exhausted: Tally,
    }
}

impl<'a> LimitCounters<'a> {
    pub fn delayed_or(self, is_dry_run: bool) -> Counter<'a> {
        if is_dry_run { self.delayed_dry_run() } else { self.delayed() }
    }

    pub fn rejected_or(self, is_dry_run: bool) -> Counter<'a> {
        if is_dry_run { self.rejected_dry_run() } else { self.rejected() }
    }
}
