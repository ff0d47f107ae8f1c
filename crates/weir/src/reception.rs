//! Where a worker's connections come in: from the kernel, and from other workers.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use net::{Accepted, Arrival, Full, Listener, Mailbox, Usher};
use observe::{Errno, Level};

use crate::log::alert;
use crate::settings::{Client, Settings};

/// What the settings say about connections of one worker.
#[derive(Clone, Default)]
pub struct Limits {
    /// How many it may have.
    pub worker_connections: usize,
    /// How long not to accept when there are no descriptors left.
    pub accept_pause: Duration,
    /// Whose connections are logged in all detail.
    pub debug: Arc<[Client]>,
}

impl Limits {
    /// As the settings have them.
    pub fn of(settings: &Settings) -> Self {
        Self {
            worker_connections: settings.worker_connections,
            accept_pause: Duration::from_millis(settings.accept_mutex_delay_ms),
            debug: settings.debug_connections.clone().into(),
        }
    }
}

/// A worker's reception.
pub struct Reception {
    usher: Rc<Usher>,
    http: Rc<http::Worker>,
    limits: RefCell<Limits>,
}

impl Reception {
    /// Passes connections on to `http`.
    pub fn new(usher: Rc<Usher>, http: Rc<http::Worker>) -> Rc<Self> {
        Rc::new(Self { usher, http, limits: RefCell::default() })
    }

    /// Holds from now on.
    pub fn set_limits(&self, limits: Limits) {
        self.usher.set_limit(limits.worker_connections);
        self.limits.replace(limits);
    }

    /// Accepts by a listening socket until the task is stopped.
    pub async fn accept(self: Rc<Self>, listener: Listener, slot: u32) {
        loop {
            match listener.accept().await {
                Ok((fd, peer)) => match self.usher.seat(Arrival { fd, peer, slot }) {
                    Ok(Some(accepted)) => self.start(accepted),
                    Ok(None) => {}
                    Err(Full { limit }) => alert!("{limit} worker_connections are not enough"),
                },
                Err(error) => {
                    let text = format_args!("accept4() failed{}", Errno(&error));
                    observe::log(level(&error), text);
                    let pause = self.limits.borrow().accept_pause;
                    net::sleep(pause).await;
                }
            }
        }
    }

    /// Takes in what other workers hand over.
    pub async fn welcome(self: Rc<Self>, mut handed: Mailbox<Arrival>) {
        while let Some(arrival) = handed.next().await {
            self.start(self.usher.welcome(arrival));
        }
    }

    fn start(&self, accepted: Accepted) {
        let peer = accepted.peer.map(|peer| peer.ip());
        let debug = self.limits.borrow().debug.iter().any(|client| client.is(peer));
        self.http.start(accepted, debug);
    }
}

/// Too many open files is the administrator's matter, everything else ours.
fn level(error: &io::Error) -> Level {
    match error.raw_os_error() {
        Some(net::listening::EMFILE | net::listening::ENFILE) => Level::Crit,
        _ => Level::Alert,
    }
}
