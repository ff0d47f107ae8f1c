//! The `upstream` block: its lines, and the groups that they make.
//!
//! HTTP mounts it at its own `upstream {}`, streams will at theirs. Blocks are kept as they were
//! read until the whole configuration is; then [`Groups::build`] makes the groups.

mod check;
mod groups;
mod keepalive;
mod limit;
mod method;
mod server;
mod sticky;
#[cfg(test)]
mod tests;
mod zone;

use std::sync::Arc;

use conf::{Bounded, Directive, Error, Load, Milliseconds, Number, Result, Size, Value};

use crate::balance::{Balance, RoundRobin};
use crate::resolver::NameServers;
use crate::sticky::Sticky;

use check::HttpSend;
pub use check::{Alive, CheckLine, Kind, ServerCheck};
pub use groups::Groups;
pub use keepalive::{Idle, Keepalive};
pub use limit::{LimitConn, LogLevel, Queue};
pub use method::Method;
pub use server::ServerLine;
pub use zone::Zone;

conf::directives! {
    declare {
        /// Names a zone: groups that name one share the count of requests in progress by server.
        /// The size is checked and has no effect.
        limit_upstream_zone(2..=2) in MAIN => limit::declare_zone;
        /// Refused: connections are not bound to clients.
        ntlm(0..=0) in UPSTREAM => refuse_ntlm;
        /// Refused: the servers of a group stand in the configuration.
        state(1..=1) in UPSTREAM => refuse_state;
        /// Read and checked; has no effect: what is known of servers takes the memory it needs.
        check_shm_size(1..=1) in MAIN => read_size;
    }
    also {
        /// Prefers the server with the fewest requests in progress.
        least_conn(0..=0) in UPSTREAM => method;
        /// Chooses by the client's address.
        ip_hash(0..=0) in UPSTREAM => method;
        /// Chooses by a text: by its checksum, or with `consistent` on a ring, so that few texts
        /// move when servers come or go.
        hash(1..=2) in UPSTREAM => method;
        /// Chooses by chance; with `two`, the better of two: by `least_conn`, `least_time=header`
        /// or `least_time=last_byte`.
        random(0..=2) in UPSTREAM => method;
        /// Prefers the server that replies fastest, by the time until the `header` or the
        /// `last_byte`; with `inflight`, unfinished requests count, too.
        least_time(1..=2) in UPSTREAM => method;
    }
    slots {
        /// How servers are chosen.
        method: Option<Method>,
    }

    in UPSTREAM;

    /// Adds a server: its address, and `weight=`, `max_conns=`, `max_fails=`, `fail_timeout=`,
    /// `slow_start=`, `route=`, `backup`, `down`, `drain`, `resolve`, `service=`.
    server: Vec<ServerLine>,
    /// Limits the requests in progress at each server, exactly over all workers: `zone=`, `limit=`,
    /// and for those that wait, first come first served, `backlog=` (by server) and `timeout=`, or
    /// `nodelay`. `instant_hook` has no effect.
    limit_upstream_conn: Option<LimitConn>,
    /// The level of what is said about requests that wait.
    limit_upstream_log_level + MAIN: LogLevel = "notice",
    /// Lets so many requests wait while every server has its `max_conns`; `timeout=` is how long.
    queue: Option<Queue>,
    /// Sets the name servers that names of servers with `resolve` are looked up at.
    resolver: Option<NameServers>,
    /// Sets the time for looking up a name.
    resolver_timeout: Option<Milliseconds>,
    /// Binds requests to their server: by a `cookie`, a `route`, or sessions that it `learn`s.
    sticky: Option<Sticky>,
    /// Read and checked; has no effect: all workers share the state of every group.
    zone: Option<Zone>,
    /// How many idle connections each worker keeps open to the servers of the group.
    keepalive: Idle = "32 local",
    /// Requests made through one kept connection.
    keepalive_requests: Number = "1000",
    /// How long requests are made through one kept connection.
    keepalive_time: Milliseconds = "1h",
    /// How long an idle connection is kept.
    keepalive_timeout: Milliseconds = "60s",
    /// Asks every server of the group again and again, and does not use those that fail:
    /// `interval=`, `timeout=` (milliseconds), `rise=`, `fall=`, `default_down=`, `type=tcp|http`,
    /// `port=`.
    check: Option<CheckLine>,
    /// The request of a check of the type `http`.
    check_http_send: Option<HttpSend>,
    /// The statuses that a server passes with: `http_2xx`, `http_3xx`, `http_4xx`, `http_5xx`.
    check_http_expect_alive: Alive = "http_2xx http_3xx",
    /// Requests made through one connection of a check.
    check_keepalive_requests: Bounded<1, { u32::MAX as u64 }> = "1",
    /// What is made of a server whose name is not found at start: `down` until it is, with a
    /// warning, or `refuse` to start, as nginx does.
    upstream_host_not_found + MAIN: HostNotFound = "down",
}

conf::words! {
    /// What is made of a server whose name is not found.
    pub enum HostNotFound {
        /// A warning.
        Down = "down",
        /// An error.
        Refuse = "refuse",
    }
}

impl Conf {
    fn keepalive(&self) -> Keepalive {
        Keepalive {
            connections: self.keepalive.connections,
            local: self.keepalive.local,
            requests: self.keepalive_requests.0,
            time_ms: self.keepalive_time.0,
            timeout_ms: self.keepalive_timeout.0,
        }
    }

    fn balance(&self) -> Arc<dyn Balance> {
        match &self.method {
            Some(method) => method.balance.clone(),
            None => Arc::new(RoundRobin),
        }
    }
}

impl Layer {
    /// Refuses a block without servers, at its end as nginx does. Where the text breaks off before
    /// that end, it is not known to be one.
    fn check(&self, from: &Directive) -> Result<()> {
        match (&self.server, from.close) {
            (None, Some(end)) => Err(Error::at(end, "no servers are inside upstream")),
            _ => Ok(()),
        }
    }
}

fn refuse_ntlm(from: &Directive, _: &mut Load<'_>) -> Result<()> {
    Err(from.refuse("is not supported: connections to servers are not bound to clients"))
}

fn refuse_state(from: &Directive, _: &mut Load<'_>) -> Result<()> {
    Err(from.refuse("is not supported: the servers of a group stand in the configuration"))
}

fn read_size(from: &Directive, load: &mut Load<'_>) -> Result<()> {
    Size::parse(from, load).map(|_| ())
}
