//! What is counted of a server and of a group, for the pages that show it.
//!
//! Deliberately absent: what choices and limits depend on, which is in [`crate::server_state`].

use metrics::{ByStatus, Newest, Reading, Tally, Times, UpDown};

metrics::counts! {
    /// What a server has done.
    pub struct ServerCounters of ServerCounts = 3 {
        /// How often it was chosen.
        chosen: Tally,
        /// When it was chosen last, in milliseconds since 1970.
        chosen_ms: Newest,
        /// Its replies by status.
        statuses: ByStatus,
        sent: Tally,
        received: Tally,
        /// Attempts that failed.
        fails: Tally,
        /// How often failures took it out of use.
        unavailable: Tally,
        /// For how long it was out of use, in milliseconds.
        downtime_ms: Tally,
        /// Attempts that followed a failed one.
        retries: Tally,
        /// Attempts with a new connection, and with one that was kept.
        opened: Tally,
        reused: Tally,
        connect: Times,
        header: Times,
        response: Times,
        /// How long sessions waited before they got it.
        queue: Times,
        /// Active checks, those that failed, and how often they took it out of use.
        checks: Tally,
        check_fails: Tally,
        unhealthy: Tally,
        /// When the last check ended, whether it passed, and how long it took.
        checked_ms: Newest,
        check_passed: Reading,
        check_us: Reading,
    }
}

metrics::counts! {
    /// What a group has done as a whole.
    pub struct GroupCounters of GroupCounts = 4 {
        /// Idle connections.
        idle: Reading,
        /// Requests in the queue.
        queued: UpDown,
        /// Requests that found the queue full.
        overflows: Tally,
        /// Requests whose time in the queue was over.
        timed_out: Tally,
        /// How long requests were in the queue.
        queue: Times,
    }
}
