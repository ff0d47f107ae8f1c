//! The events of a master.

use std::time::Duration;

use net::signals::Signal;

use crate::ipc::Message;

pub(super) enum MasterEvent {
    Signal(Signal),
    /// A report of a worker process; `None` if it has closed the channel.
    Report(i32, Option<Message>),
    /// Worker processes are to be signalled again to end.
    AskAgain,
    /// A worker process is to be started again.
    Respawn,
    /// The addresses of that generation are to be tried again.
    TryAgain(u64),
    /// A worker process has not switched to that generation for this time.
    StillPending(u64, Duration),
}
