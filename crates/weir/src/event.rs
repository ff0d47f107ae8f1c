//! Events for the control thread of a serving process.

use std::time::Duration;

use net::MailboxSender;
use net::signals::{
    SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH, Signal, Signals,
};

use session::steering::SteeringCall;

use crate::ipc::Message;
use crate::log::{alert, notice};
use crate::steering::StoredState;

pub enum Event {
    Signal(Signal),
    /// A message of the master; `None` if it is gone.
    Message(Option<Message>),
    /// No worker has that generation any more.
    GenerationOver(u64),
    WorkerLeft,
    /// The timeout of connections accepted before that generation is over.
    CutBefore(u64),
    /// The addresses of a configuration are to be tried again.
    TryAgain,
    /// A request of the API, received by a worker.
    Asked(SteeringCall),
    /// A request at the control socket of a process without a master.
    Called(SteeringCall),
    /// The state files are written, or could not be.
    Stored(Vec<StoredState>),
    /// The service manager expects a sign of life, from a process without a master.
    ShowLife,
    /// Load balancers have had the time to notice that the server ends.
    DelayOver,
    /// The timeout of a graceful end is over.
    Stop,
}

/// Sends an event after a delay.
pub fn later<E: 'static>(events: &MailboxSender<E>, delay: Duration, event: E) {
    let events = events.clone();
    net::spawn(async move {
        net::sleep(delay).await;
        events.send(event);
    });
}

pub fn from_signals<E: 'static>(
    signals: Signals,
    events: &MailboxSender<E>,
    make: impl Fn(Signal) -> E + 'static,
) {
    let events = events.clone();
    net::spawn(async move {
        if let Err(error) = signals.each(|signal| events.send(make(signal))).await {
            alert!("read() of a signal failed{}", observe::Errno(&error));
        }
    });
}

/// nginx's line about a signal; `action` follows a comma, or is empty.
pub fn log_signal(signal: Signal, action: &str) {
    let Signal { number, sender } = signal;
    let name = match number {
        SIGHUP => "SIGHUP",
        SIGINT => "SIGINT",
        SIGQUIT => "SIGQUIT",
        SIGTERM => "SIGTERM",
        SIGUSR1 => "SIGUSR1",
        SIGUSR2 => "SIGUSR2",
        SIGWINCH => "SIGWINCH",
        SIGCHLD => "SIGCHLD",
        _ => "",
    };
    let comma = if action.is_empty() { "" } else { ", " };
    match sender {
        0 => notice!("signal {number} ({name}) received{comma}{action}"),
        _ => notice!("signal {number} ({name}) received from {sender}{comma}{action}"),
    }
}
