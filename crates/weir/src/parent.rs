//! The process that started this one.

use std::sync::OnceLock;

static FIRST: OnceLock<i32> = OnceLock::new();

/// To be called before the program goes into the background, if it is to be a daemon.
pub fn remember_first(daemon: bool) {
    FIRST.get_or_init(|| if daemon { net::process::id() } else { net::process::parent() });
}

/// Whether the process that started this one still runs.
pub fn has_first() -> bool {
    FIRST.get() == Some(&net::process::parent())
}
