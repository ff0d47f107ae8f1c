//! Facts about the system, such as the time zone. `net` can query them; the program does so once
//! and stores them here.

use std::sync::OnceLock;

/// Names and numbers that log lines carry.
pub struct System {
    /// The program's name: `weir`, or `nginx` when it is called so.
    pub name: &'static str,
    /// This machine, in lower case.
    pub hostname: String,
    /// How many minutes local time is ahead of UTC at a time in seconds since 1970.
    pub utc_offset_minutes: fn(i64) -> i32,
    /// The number of the present thread.
    pub thread_id: fn() -> u32,
}

static SYSTEM: OnceLock<System> = OnceLock::new();

/// Settles it; the first call holds.
pub fn settle(system: System) {
    SYSTEM.get_or_init(|| system);
}

/// What was settled; else UTC, and a thread that has its process's number.
pub fn system() -> &'static System {
    SYSTEM.get_or_init(|| System {
        name: "weir",
        hostname: String::from("localhost"),
        utc_offset_minutes: |_| 0,
        thread_id: std::process::id,
    })
}
