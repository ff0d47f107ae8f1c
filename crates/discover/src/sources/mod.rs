//! Where lists of servers come from.

pub mod consul;
pub mod docker;
pub mod etcd;
pub mod files;
pub mod kubernetes;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tls_tests;
pub mod xds;

use std::convert::Infallible;

use crate::wanted::WantedGroups;

/// Takes all lists that a source has now. An error ends the source, whose owner has gone.
pub type Report<'a> = &'a mut dyn FnMut(WantedGroups) -> Result<(), String>;

/// A part of a source, which has a thread of its own.
///
/// It never waits without a deadline. Data that is wrong in one place is an error as a whole.
pub trait Source: Send {
    /// Looks until something fails, and reports the lists whenever they may have changed. Called
    /// again after a while, it goes on from what it knows, if it can.
    fn watch(&mut self, report: Report<'_>) -> Result<Infallible, String>;
}

/// An address with its port.
fn host_port(host: &str, port: u64) -> String {
    match host.contains(':') {
        true => format!("[{host}]:{port}"),
        false => format!("{host}:{port}"),
    }
}
