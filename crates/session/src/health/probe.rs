//! The subsystem's part: the check of one server.

use std::fmt;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

use net::Address;
use observe::Level;
use upstream::Server;

/// How the servers of a group are checked.
pub trait HealthProbe: Clone + 'static {
    /// A connection that serves another check of the same server.
    type Kept: 'static;

    /// Checks a server, if possible on the connection kept from the last time.
    fn ask(
        &self,
        server: &Arc<Server>,
        kept: Option<Self::Kept>,
    ) -> impl Future<Output = (Verdict, Option<Self::Kept>)>;

    /// The name of its `match` block; empty if it has none.
    fn match_name(&self) -> &[u8];

    /// The port to check, unless it is the server's own.
    fn port(&self) -> Option<u16>;

    /// Writes a line to the error log of the block with the check.
    fn log(&self, level: Level, message: fmt::Arguments<'_>);
}

/// The result of a check: the last test that was made, or the failure.
pub type Verdict = Result<&'static str, CheckFailure>;

/// Why a check failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckFailure {
    /// The action, as log lines name it after `while`.
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

/// The address to check: the server's own, or another port of it.
pub fn probe_address(server: &Server, port: Option<u16>) -> Address {
    match (server.address(), port) {
        (Address::Ip(ip), Some(port)) => Address::Ip(SocketAddr::new(ip.ip(), port)),
        (own, _) => own.clone(),
    }
}
