//! Facts about the system, such as the time zone. `net` can query them; the program does so once
//! and stores them here.

use std::sync::OnceLock;

/// Names and numbers in log lines.
pub struct System {
    /// The program's name: `weir`, or `nginx` if it was started under that name.
    pub name: &'static str,
    /// The host name, in lower case.
    pub hostname: String,
    /// Local time's offset from UTC in minutes, at a time in seconds since 1970.
    pub utc_offset_minutes: fn(i64) -> i32,
    /// The id of the calling thread.
    pub thread_id: fn() -> u32,
}

static SYSTEM: OnceLock<System> = OnceLock::new();

/// Stores the facts; only the first call has an effect.
pub fn settle(system: System) {
    SYSTEM.get_or_init(|| system);
}

/// The stored facts; without them UTC, and the process's id as the thread id.
pub fn system() -> &'static System {
    SYSTEM.get_or_init(|| System {
        name: "weir",
        hostname: String::from("localhost"),
        utc_offset_minutes: |_| 0,
        thread_id: std::process::id,
    })
}
