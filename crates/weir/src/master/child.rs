//! One worker process, as its master sees it.

use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Instant;

use net::channel::{self, Channel};
use net::process::Launch;
use net::{Mailbox, Sender};
use observe::{Errno, LogFiles};

use super::Event;
use crate::log::alert;
use crate::parcel::Parcel;

/// A worker process.
pub(super) struct Child {
    /// Its number.
    pub(super) pid: i32,
    /// How far it is.
    pub(super) stage: Stage,
    /// When it was started.
    pub(super) started: Instant,
    parcels: Sender<Parcel>,
}

/// How far a worker process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// It was handed its first configuration.
    Starting,
    /// It serves.
    Serving,
    /// It has been told to end.
    Leaving,
}

impl Child {
    /// Starts one with a first configuration.
    pub(super) fn start(launch: Launch, first: Parcel, events: &Sender<Event>) -> io::Result<Self> {
        let (near, far) = channel::pair()?;
        let channel = Rc::new(Channel::new(near)?);
        let pid = launch.stdin(far).start()?;
        let (parcels, mailbox) = net::mailbox();
        parcels.send(first);
        net::spawn(deliver(channel.clone(), mailbox));
        net::spawn(listen(channel, pid, events.clone()));
        Ok(Self { pid, stage: Stage::Starting, started: Instant::now(), parcels })
    }

    /// Sends a message, after those already queued.
    pub(super) fn send(&self, parcel: Parcel) {
        self.parcels.send(parcel);
    }

    /// Sends a signal.
    pub(super) fn signal(&self, number: i32) {
        if let Err(error) = net::signals::send(self.pid, number) {
            alert!("kill({}, {number}) failed{}", self.pid, Errno(&error));
        }
    }
}

/// A worker process may be slow to read; the master never waits for it.
async fn deliver(channel: Rc<Channel>, mut parcels: Mailbox<Parcel>) {
    while let Some(parcel) = parcels.next().await {
        // If it is gone, its end is reported by the system.
        if parcel.send(&channel).await.is_err() {
            return;
        }
    }
}

async fn listen(channel: Rc<Channel>, pid: i32, events: Sender<Event>) {
    while let Ok(Some(parcel)) = Parcel::receive(&channel).await {
        events.send(Event::Report(pid, Some(parcel)));
    }
    events.send(Event::Report(pid, None));
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
