//! The events of a master.

use std::time::Duration;

use net::signals::Signal;
use session::steering::SteeringCall;

use crate::ipc::Message;
use crate::steering::StoredState;

pub(super) enum MasterEvent {
    Signal(Signal),
    /// A report of a worker process; `None` if it has closed the channel.
    Report(i32, Option<Message>),
    /// Load balancers have had the time to notice that the server ends.
    DelayOver,
    /// Worker processes are to be signalled again to end.
    AskAgain,
    /// A worker process is to be started again.
    Respawn,
    /// The addresses of that generation are to be tried again.
    TryAgain(u64),
    /// A request at the control socket.
    Asked(SteeringCall),
    /// State files are written, or could not be.
    Stored(Vec<StoredState>),
    /// A worker process has had the time to answer the request for a page of that number.
    PageOverdue(u64),
    /// Worker processes have had the time to make the changes up to that number.
    ChangeOverdue(u64),
    /// This master is the main process of a service from now on.
    MainProcess,
    /// The service manager expects a sign of life.
    ShowLife,
    /// A worker process has not switched to that generation for this time.
    StillPending(u64, Duration),
}
