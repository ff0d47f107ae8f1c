//! Events for the control thread of a serving process.

use std::time::Duration;

use net::MailboxSender;
use net::signals::{
    SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH, Signal, Signals,
};

use crate::ipc::Message;
use crate::log::{alert, notice};

/// Something that happened.
pub enum Event {
    /// A signal came.
    Signal(Signal),
    /// The master says something; `None`: it is gone.
    Message(Option<Message>),
    /// No worker holds that generation any more.
    GenerationOver(u64),
    /// A worker has ended.
    WorkerLeft,
    /// The time of connections accepted before that generation is over.
    CutBefore(u64),
    /// It is time to try again to get the addresses of a configuration.
    TryAgain,
    /// The time to end in good order is over.
    Stop,
}

/// Sends an event some time from now.
pub fn later<E: 'static>(events: &MailboxSender<E>, delay: Duration, event: E) {
    let events = events.clone();
    net::spawn(async move {
        net::sleep(delay).await;
        events.send(event);
    });
}

/// Makes events of signals.
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
