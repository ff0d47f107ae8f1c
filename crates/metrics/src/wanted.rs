//! Whether anybody reads what is counted.

use std::sync::atomic::{AtomicBool, Ordering};

static ARE_WANTED: AtomicBool = AtomicBool::new(false);

/// Whether metrics that no line of the configuration names, such as those of servers, are counted:
/// only if a page shows them.
#[inline]
pub fn are_wanted() -> bool {
    ARE_WANTED.load(Ordering::Relaxed)
}

/// Sets whether a page shows them.
pub fn want(are_wanted: bool) {
    ARE_WANTED.store(are_wanted, Ordering::Relaxed);
}
