//! What a subsystem implements: how one server is asked.

use std::fmt;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

use net::Address;
use observe::Level;
use upstream::Server;

/// How the servers of a group are asked.
pub trait HealthProbe: Clone + 'static {
    /// A connection that serves another check of the same server.
    type Kept: 'static;

    /// Asks a server, if possible on the connection kept from the last time.
    fn ask(
        &self,
        server: &Arc<Server>,
        kept: Option<Self::Kept>,
    ) -> impl Future<Output = (Verdict, Option<Self::Kept>)>;

    /// The name of its `match` block; empty: it has none.
    fn match_name(&self) -> &[u8];

    /// The port that is asked, unless it is the server's own.
    fn port(&self) -> Option<u16>;

    /// Writes a line to the error log of the block that asks for the check.
    fn log(&self, level: Level, message: fmt::Arguments<'_>);
}

/// The result of a check: the test that was made last, or what failed.
pub type Verdict = Result<&'static str, CheckFailure>;

/// Why a check failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckFailure {
    /// What was being done, as log lines name it after `while`.
    pub action: &'static str,
    /// The error.
    pub cause: String,
}

impl CheckFailure {
    /// An error during an action.
    pub fn new(action: &'static str, cause: impl Into<String>) -> Self {
        Self { action, cause: cause.into() }
    }
}

/// The address to ask: the server's own, or another port of it.
pub fn probe_address(server: &Server, port: Option<u16>) -> Address {
    match (server.address(), port) {
        (Address::Ip(ip), Some(port)) => Address::Ip(SocketAddr::new(ip.ip(), port)),
        (own, _) => own.clone(),
    }
}
