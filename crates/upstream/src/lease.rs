//! A request in progress on a server, from the choice to the end of the reply.

use std::fmt;
use std::sync::Arc;

use net::Address;

use crate::server::Server;

/// One request in progress; dropping it ends the request.
///
/// Whoever drops it without a verdict (the client went away) says nothing about the server.
#[derive(Debug)]
pub struct Lease {
    server: Arc<Server>,
    /// Whether its server is the only one: failures are not held against it.
    single: bool,
}

/// What is worth a line in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The server has failed too often. A warning.
    Disabled,
}

/// nginx's words.
impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Disabled => "upstream server temporarily disabled",
        })
    }
}

impl Lease {
    /// Takes a place on the server; `None`: it has none.
    pub(crate) fn take(server: &Arc<Server>, single: bool) -> Option<Self> {
        let taken = server.standing.take(server.terms.max_conns);
        taken.then(|| Self { server: server.clone(), single })
    }

    /// The server.
    pub fn server(&self) -> &Arc<Server> {
        &self.server
    }

    /// Where to connect to.
    pub fn address(&self) -> &Address {
        self.server.address()
    }

    /// The address as `$upstream_addr` and the log have it.
    pub fn name(&self) -> &[u8] {
        self.server.name()
    }

    /// The request failed for reasons that count for `max_fails`.
    #[must_use = "the event belongs into the log"]
    pub fn failed(&mut self, now_ms: u64) -> Option<Event> {
        let Server { standing, terms, .. } = &*self.server;
        if self.single {
            standing.forgive();
            return None;
        }
        standing.failed(terms.patience, terms.weight, now_ms).then_some(Event::Disabled)
    }

    /// The server did what it was asked for, or the next one is asked for reasons that do not
    /// count.
    pub fn succeeded(&mut self, now_ms: u64) {
        let Server { standing, terms, .. } = &*self.server;
        match self.single {
            true => standing.forgive(),
            false => standing.succeeded(terms.patience, now_ms),
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.server.standing.free();
    }
}
