//! How a location of `http`, or a server of `stream`, looks up host names.

use crate::resolver::{NameServers, Resolver};

#[derive(Clone, Default)]
pub struct ResolverPolicy {
    /// `resolver`
    pub servers: Option<NameServers>,
    /// `resolver_timeout`
    pub timeout_ms: u64,
}

impl ResolverPolicy {
    /// This worker's resolver; `None` where no name servers are set.
    pub fn resolver(&self) -> Option<Resolver> {
        self.servers.as_ref().map(|servers| servers.resolver(self.timeout_ms))
    }
}
