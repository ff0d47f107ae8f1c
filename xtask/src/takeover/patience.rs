//! Waiting for a step.

use std::thread;
use std::time::{Duration, Instant};

/// How long a step may take.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(10);

/// Whether it came true in time.
pub(super) fn eventually(mut look: impl FnMut() -> bool) -> Option<()> {
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        if look() {
            return Some(());
        }
        thread::sleep(LOOK);
    }
    None
}
