//! What was done with a server.

use std::time::Instant;

/// Each thing that was done, with its time.
pub(super) struct Notes {
    pub(super) done: Vec<String>,
    begun: Instant,
}

impl Notes {
    pub(super) fn new() -> Self {
        Self { done: Vec::new(), begun: Instant::now() }
    }

    /// `result` is of the time since the last.
    pub(super) fn note(&mut self, what: &str, result: Result<(), String>) -> Result<(), String> {
        self.done.push(format!("{what} {:.1} s", self.begun.elapsed().as_secs_f64()));
        self.begun = Instant::now();
        result.map_err(|why| format!("{what}: {why}"))
    }
}
