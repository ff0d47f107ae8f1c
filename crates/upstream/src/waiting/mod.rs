//! Requests that wait for a server: what joins a group to the [limit](crate::limit).
//!
//! A request waits only when every server that it may use is full, and then for all of them.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::task::{Context, Poll, ready};

use observe::Level;

use crate::attempt::Attempt;
use crate::group::Group;
use crate::lease::Lease;
use crate::limit::{Answer, Backlog, Grant, Line, SLOTS_MAX, Slots, Tally, Waiter};
use crate::server::Terms;

/// The limit of a group.
#[derive(Clone)]
pub struct Limit {
    pub(crate) line: Arc<Line<()>>,
    pub(crate) rule: Rule,
    pub(crate) backlog: Backlog,
    pub(crate) timeout_ms: Option<u64>,
    pub(crate) level: Level,
}

/// What is counted, and how many there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// `limit_upstream_conn`: by address, with all groups of the zone.
    Zone { limit: u32 },
    /// `queue`: by server, up to its `max_conns`.
    Group,
}

impl Limit {
    /// How long a request may wait; `None`: as long as reading may take.
    pub fn timeout_ms(&self) -> Option<u64> {
        self.timeout_ms
    }

    /// The status of a request that has waited too long.
    pub fn timeout_status(&self) -> u16 {
        match self.rule {
            Rule::Zone { .. } => 408,
            Rule::Group => 502,
        }
    }

    /// The level of what is said about waiting.
    pub fn level(&self) -> Level {
        self.level
    }

    /// The counters of all that share the limit.
    pub fn tally(&self) -> Tally {
        self.line.tally()
    }

    /// The slots of a server. `twin`: how many servers of the group before it have its address.
    pub(crate) fn slots(&self, name: &[u8], terms: &Terms, twin: u32) -> Limited {
        let of_server = if terms.max_conns == 0 { SLOTS_MAX } else { terms.max_conns };
        let (max, name) = match self.rule {
            Rule::Zone { limit } => (limit.min(of_server), name.to_vec()),
            Rule::Group => (of_server, [name, b"#", twin.to_string().as_bytes()].concat()),
        };
        Limited { slots: self.line.slots(&name, max), max }
    }
}

impl std::fmt::Debug for Limit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}, {:?}, {:?} ms", self.rule, self.backlog, self.timeout_ms)
    }
}

/// A server's part of a limit.
#[derive(Clone)]
pub(crate) struct Limited {
    pub slots: Arc<Slots<()>>,
    /// What the configuration says, which holds once it is in use.
    pub max: u32,
}

impl std::fmt::Debug for Limited {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "at most {}", self.max)
    }
}

/// A request that waits. Dropping it gives its place up.
pub struct Waiting {
    pub(crate) waiter: Waiter<()>,
    pub(crate) group: Arc<Group>,
}

/// What waiting came to.
#[derive(Debug)]
pub enum Waited {
    /// This server, after so many milliseconds.
    Server(Lease, u64),
    /// There is none any more that it could wait for: choose again.
    None,
}

impl Waiting {
    /// Its place when it joined; 0: it need not wait.
    pub fn place(&self) -> u32 {
        self.waiter.place()
    }

    /// What came of it, once.
    pub fn poll(
        &mut self,
        cx: &mut Context<'_>,
        attempt: &mut Attempt,
        now_ms: u64,
    ) -> Poll<Waited> {
        Poll::Ready(match ready!(self.waiter.poll(cx, now_ms)) {
            Answer::Granted(grant) => self.group.take_grant(grant, attempt, now_ms),
            Answer::NoServer => Waited::None,
        })
    }

    /// Its time is over. A server that came in the last moment is not lost.
    pub fn give_up(self, attempt: &mut Attempt, now_ms: u64) -> Option<(Lease, u64)> {
        let Self { waiter, group } = self;
        let grant: Grant<()> = waiter.give_up(now_ms)?;
        match group.take_grant(grant, attempt, now_ms) {
            Waited::Server(lease, waited_ms) => Some((lease, waited_ms)),
            Waited::None => None,
        }
    }
}
