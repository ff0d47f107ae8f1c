//! The servers of a group as pages show them.

use std::sync::Arc;

use crate::group::Group;
use crate::limit::SLOTS_MAX;
use crate::server::{Server, ServerStatus};

/// A server of a group.
pub struct GroupServer {
    pub server: Arc<Server>,
    pub is_backup: bool,
    /// Its number in the group.
    pub id: u64,
}

/// Whether a server is used, and if not, why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerCondition {
    Up,
    /// It has as many requests as it may have.
    Busy,
    /// The configuration says so.
    Down,
    /// Only requests bound to it get it.
    Draining,
    /// Too many requests have failed.
    Unavailable,
    /// It fails active checks.
    Unhealthy,
}

impl ServerCondition {
    /// The name that NGINX Plus gives it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Up | Self::Busy => "up",
            Self::Down => "down",
            Self::Draining => "draining",
            Self::Unavailable => "unavail",
            Self::Unhealthy => "unhealthy",
        }
    }

    /// The name that Angie gives it.
    pub fn angie(self) -> &'static str {
        match self {
            Self::Unavailable => "unavailable",
            Self::Busy => "busy",
            other => other.name(),
        }
    }
}

impl Group {
    /// Its servers at the moment, primaries first.
    pub fn overview(&self) -> Vec<GroupServer> {
        let peers = self.lock();
        let primaries = peers.primary.peers.len();
        let shown = |(at, server): (usize, &Arc<Server>)| GroupServer {
            server: server.clone(),
            is_backup: at >= primaries,
            id: server.id(),
        };
        peers.iter().enumerate().map(shown).collect()
    }
}

impl Server {
    pub fn weight(&self) -> u32 {
        self.terms.weight
    }

    /// `max_conns`; 0: any number.
    pub fn max_conns(&self) -> u32 {
        self.terms.max_conns
    }

    /// How many requests it may have in progress now, whatever limits them; `None`: any number.
    pub fn limit(&self) -> Option<u32> {
        let max = self.limited.as_ref()?.slots.max();
        (max < SLOTS_MAX).then_some(max)
    }

    pub fn condition(&self, now_ms: u64) -> ServerCondition {
        match self.terms.status {
            ServerStatus::Down => ServerCondition::Down,
            ServerStatus::Drain => ServerCondition::Draining,
            ServerStatus::Up if !self.state.is_healthy() => ServerCondition::Unhealthy,
            ServerStatus::Up if self.state.is_failed(self.terms.failure_policy, now_ms) => {
                ServerCondition::Unavailable
            }
            ServerStatus::Up if self.is_full() => ServerCondition::Busy,
            ServerStatus::Up => ServerCondition::Up,
        }
    }

    /// Why it is not used, in words.
    pub fn why(&self, condition: ServerCondition) -> Option<String> {
        match condition {
            ServerCondition::Up => None,
            ServerCondition::Busy => Some("it has as many requests as it may have".into()),
            ServerCondition::Down => Some("it is set to \"down\"".into()),
            ServerCondition::Draining => Some("it is set to \"drain\"".into()),
            ServerCondition::Unavailable => {
                let s = if self.fails() == 1 { "" } else { "s" };
                Some(format!("{} failed request{s} in a row", self.fails()))
            }
            ServerCondition::Unhealthy => Some("it fails active checks".into()),
        }
    }

    /// For how long it has been out of use, after failures or by checks.
    pub fn down_for_ms(&self, now_ms: u64) -> Option<u64> {
        self.state.down_for_ms(now_ms)
    }
}
