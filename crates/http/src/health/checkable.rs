//! What a check asks of a backend, and what comes of it.

use std::net::SocketAddr;
use std::sync::Arc;

use ::upstream::{Group, Server};
use net::Address;

use crate::backend::Conf as Family;
use crate::backend::check::{CheckFailure, CheckRequest};
use crate::backend::secured::SecuredBackend;
use crate::exchange::Exchange;

/// What came of a question: what was looked at last, or what is wrong.
pub(super) type Verdict = Result<&'static str, CheckFailure>;

/// A backend that can be asked by health checks.
pub(crate) trait Checkable: Send + Sync {
    /// The group of servers; `None`: it depends on the request.
    fn group(&self) -> Option<&Arc<Group>>;
    /// What all families of backends are told.
    fn family(&self) -> &Family;
    /// How connections are secured; `None`: they are not.
    fn tls(&self) -> Option<&SecuredBackend> {
        None
    }
    /// Makes a request; `None`, with a line in the log: it is none.
    fn request(&self, x: &mut Exchange, uri: &Arc<[u8]>) -> Option<CheckRequest>;
}

/// Where a server is asked: at its own address, or at another port of it.
pub(super) fn place(server: &Server, port: Option<u16>) -> Address {
    match (server.address(), port) {
        (Address::Ip(ip), Some(port)) => Address::Ip(SocketAddr::new(ip.ip(), port)),
        (own, _) => own.clone(),
    }
}
