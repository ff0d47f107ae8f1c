//! Jobs of the control thread: what a process does once, however many workers serve.
//!
//! The control thread serves no clients and lives as long as the process, so a job outlives
//! configurations: it is created once and gets each configuration ([`ControlJob::adopt`]). A job
//! runs on the thread's event loop (`net::spawn`, `net::Timer`) and must not block it: long work
//! goes to other threads (`net::offload`). Its results reach the workers through shared state: a
//! zone, a group of servers. Deliberately absent: work for one client or one worker, and the jobs
//! themselves.
//!
//! The invariant: a job gets a configuration before any worker does.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use ::upstream::Group;
use zones::Zones;

use crate::steering::SteeringCall;

/// How long all jobs together may take to finish, before the process ends without them.
pub const JOBS_FINISH_MAX: Duration = Duration::from_millis(500);

/// A job of the control thread. `S` is what it is told of: the configuration of a subsystem
/// (`Arc<Site>`), or of the whole program.
pub trait ControlJob<S> {
    /// Continues with another configuration, the first included. What was begun for the one before
    /// and is no longer wanted ends here. Sessions of the one before may go on.
    ///
    /// `zones` is the state that the configurations share.
    fn adopt(&mut self, site: &S, zones: &Zones);

    /// The servers of a group were changed at run time.
    fn changed(&mut self, group: &Arc<Group>) {
        let _ = group;
    }

    /// A request at the control socket. The job that its path names takes it, and answers it now or
    /// later; others return it.
    fn called(&mut self, call: SteeringCall) -> Option<SteeringCall> {
        Some(call)
    }

    /// The workers have been told to end, and the process will end with their last sessions. Called
    /// once. Another process may serve already, and run the same jobs. A job that the last sessions
    /// need goes on.
    fn leave(&mut self);

    /// Called after the last session has ended, just before the process ends: what sessions have
    /// left to the job is brought to an end. Dropped after [`JOBS_FINISH_MAX`].
    fn finish(&mut self) -> Pin<Box<dyn Future<Output = ()> + '_>> {
        Box::pin(std::future::ready(()))
    }
}

/// Jobs in the order in which they are called.
pub type ControlJobs<S> = Vec<Box<dyn ControlJob<S>>>;
