//! What a thread's first handshake would wait for.
//!
//! The cryptographic library seeds a generator of random numbers in each thread that asks for one.
//! It gathers entropy from the processor's timing for that, which takes some 50 ms. A worker does
//! it before it accepts.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

use aws_lc_rs::rand;

/// Whether any configuration has had TLS.
static IS_USED: AtomicBool = AtomicBool::new(false);

thread_local! {
    static IS_WARM: Cell<bool> = const { Cell::new(false) };
}

pub(super) fn note_use() {
    IS_USED.store(true, Ordering::Relaxed);
}

/// Makes this thread ready for handshakes, once, if a configuration has TLS.
pub fn warm_up() {
    if IS_USED.load(Ordering::Relaxed) && !IS_WARM.replace(true) {
        // If there are no random numbers, handshakes say so.
        let _ = rand::fill(&mut [0; 1]);
    }
}
