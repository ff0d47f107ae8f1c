//! Where servers listen: for clients, and for connections that one subsystem hands to the other.

use std::net::IpAddr;

use crate::plan::outcome::{PlannedListen, Settings};

/// Each has a network of its own within 127.87.0.0/16.
pub(crate) const GATEWAY_ADDRESSES_MAX: usize = 64;

/// Which server of a port gets connections from another one of this machine.
#[derive(Clone, Copy, Debug)]
pub(super) enum InnerServer {
    /// That of `http {}`, from `stream {}`, which has the port.
    Http = 69,
    /// The one that terminates TLS, from the one that reads the name in the handshake.
    Terminating = 70,
}

impl PlannedListen {
    /// The words of `listen`. IPv6 as well, if clients reach the servers by it.
    pub(super) fn words(self, settings: &Settings) -> Vec<String> {
        let Self { address, port } = self;
        if let Some(address) = address {
            return vec![std::net::SocketAddr::new(address, port).to_string()];
        }
        let mut words = vec![port.to_string()];
        if settings.addresses.iter().any(|one| one.parse::<std::net::Ipv6Addr>().is_ok()) {
            words.push(format!("[::]:{port}"));
        }
        words
    }

    /// The beginning of the names of its files.
    pub(super) fn file_name(self) -> String {
        match self.address {
            None => self.port.to_string(),
            Some(address) => format!("{address}/{}", self.port),
        }
    }

    /// An address for each, which only this machine reaches: ports at which nobody else listens,
    /// and which need no rights.
    pub(super) fn inner(self, server: InnerServer, settings: &Settings) -> String {
        const PORTS: u16 = 20_000;
        let is_own = |one: &IpAddr| Some(*one) == self.address;
        let number = settings.gateway_addresses.iter().position(is_own).map_or(0, |at| at + 1);
        let network = server as usize + 2 * number;
        format!("127.87.{network}.{}:{}", 74 + self.port / PORTS, 40_000 + self.port % PORTS)
    }
}
