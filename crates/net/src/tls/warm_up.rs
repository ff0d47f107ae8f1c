//! Prepares threads for their first handshake.
//!
//! The cryptographic library seeds a random number generator in each thread that needs one, with
//! entropy from the processor's timing, which takes some 50 ms. A worker does it before it accepts
//! connections.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

use aws_lc_rs::rand;

/// Whether any configuration has used TLS.
static IS_USED: AtomicBool = AtomicBool::new(false);

thread_local! {
    static IS_WARM: Cell<bool> = const { Cell::new(false) };
}

pub(super) fn note_use() {
    IS_USED.store(true, Ordering::Relaxed);
}

/// Prepares this thread for handshakes, once, if a configuration uses TLS.
pub fn warm_up() {
    if IS_USED.load(Ordering::Relaxed) && !IS_WARM.replace(true) {
        // If there are no random numbers, handshakes fail with an error.
        let _ = rand::fill(&mut [0; 1]);
    }
}
