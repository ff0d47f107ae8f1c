//! How a location looks host names up.

use ::upstream::resolver::{NameServers, Resolver};

/// How a location looks names up.
#[derive(Default)]
pub struct ResolverPolicy {
    /// `resolver`
    pub(crate) servers: Option<NameServers>,
    /// `resolver_timeout`
    pub(crate) timeout_ms: u64,
}

impl ResolverPolicy {
    /// This worker's resolver; `None` where no name servers are set.
    pub fn resolver(&self) -> Option<Resolver> {
        self.servers.as_ref().map(|servers| servers.resolver(self.timeout_ms))
    }
}
