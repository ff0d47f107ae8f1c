//! A worker process, as its master sees it.

use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Instant;

use net::channel::{self, Channel};
use net::process::Launch;
use net::{Mailbox, MailboxSender};
use observe::{Errno, LogFiles};

use super::event::MasterEvent;
use crate::ipc::{Message, MessageKind};
use crate::log::alert;
use crate::readiness::Readiness;

/// A worker process.
pub(super) struct Child {
    pub(super) pid: i32,
    pub(super) stage: ChildStage,
    pub(super) started: Instant,
    messages: MailboxSender<Message>,
}

/// The stage of a worker process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChildStage {
    /// It has received its first configuration.
    Starting,
    Serving,
    /// It has been told to end.
    Leaving,
}

impl Child {
    /// Starts one with a first configuration, before which it is told whether the server is ready.
    pub(super) fn start(
        launch: Launch,
        readiness: Message,
        first: Message,
        events: &MailboxSender<MasterEvent>,
    ) -> io::Result<Self> {
        let (near, far) = channel::pair()?;
        let channel = Rc::new(Channel::new(near)?);
        let pid = launch.stdin(far).start()?;
        let (messages, mailbox) = net::mailbox();
        messages.send(readiness);
        messages.send(first);
        net::spawn(deliver(channel.clone(), mailbox));
        net::spawn(listen(channel, pid, events.clone()));
        Ok(Self { pid, stage: ChildStage::Starting, started: Instant::now(), messages })
    }

    /// Sends a message, after those already queued.
    pub(super) fn send(&self, message: Message) {
        self.messages.send(message);
    }

    /// Where messages to it go.
    pub(super) fn outbox(&self) -> MailboxSender<Message> {
        self.messages.clone()
    }

    pub(super) fn signal(&self, number: i32) {
        if let Err(error) = net::signals::send(self.pid, number) {
            alert!("kill({}, {number}) failed{}", self.pid, Errno(&error));
        }
    }
}

/// A worker process may be slow to read; the master never waits for it.
async fn deliver(channel: Rc<Channel>, mut messages: Mailbox<Message>) {
    while let Some(message) = messages.next().await {
        // If it is gone, its end is reported by the system.
        if message.send(&channel).await.is_err() {
            return;
        }
    }
}

async fn listen(channel: Rc<Channel>, pid: i32, events: MailboxSender<MasterEvent>) {
    while let Ok(Some(message)) = Message::receive(&channel).await {
        events.send(MasterEvent::Report(pid, Some(message)));
    }
    events.send(MasterEvent::Report(pid, None));
}

/// The message that tells worker processes whether the server is ready.
pub(super) fn readiness(readiness: &Readiness) -> Message {
    Message::new(MessageKind::Readiness, u64::from(readiness.is_on()))
}

/// Copies of the open log files, in order.
pub(super) fn copies(log_files: &LogFiles) -> Vec<OwnedFd> {
    let open = log_files.iter().filter_map(|file| file.current());
    open.filter_map(|file| match file.try_clone() {
        Ok(copy) => Some(copy.into()),
        Err(error) => {
            alert!("dup() of a log file failed{}", Errno(&error));
            None
        }
    })
    .collect()
}
