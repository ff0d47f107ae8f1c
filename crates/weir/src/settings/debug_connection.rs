//! `debug_connection`: clients whose connections are logged at level debug.

use std::net::{IpAddr, ToSocketAddrs};

use conf::{Directive, Load, Result, Value};

/// The clients that one line names.
#[derive(Clone)]
pub struct Clients(pub Vec<DebugClient>);

/// One client, or a network of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DebugClient {
    /// Clients of Unix sockets.
    Unix,
    Network {
        address: IpAddr,
        /// The length of the prefix.
        bits: u32,
    },
}

impl Value for Clients {
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let word = from.arg(0);
        let text = word.to_string();
        if text == "unix:" {
            return Ok(Self(vec![DebugClient::Unix]));
        }
        if let Some((client, exact)) = network(&text) {
            if !exact {
                let message = format!("low address bits of {text} are meaningless");
                load.warn(from.error_at(word, message));
            }
            return Ok(Self(vec![client]));
        }
        let found = (&*text, 0).to_socket_addrs().map_err(|_| {
            from.error_at(word, format!("host not found in debug_connection \"{text}\""))
        });
        let found = load.of_this_machine(found)?.into_iter().flatten();
        Ok(Self(found.map(|host| DebugClient::host(host.ip())).collect()))
    }
}

/// Parses `10.0.0.0/8`. Also returns whether the bits after the prefix are zero.
fn network(text: &str) -> Option<(DebugClient, bool)> {
    let (address, bits) = match text.split_once('/') {
        None => return Some((DebugClient::host(text.parse().ok()?), true)),
        Some((address, bits)) => (address.parse::<IpAddr>().ok()?, bits.parse().ok()?),
    };
    let most = if address.is_ipv4() { 32 } else { 128 };
    if bits > most {
        return None;
    }
    let first = first_bits(address, bits);
    Some((DebugClient::Network { address: first, bits }, first == address))
}

impl DebugClient {
    fn host(address: IpAddr) -> Self {
        Self::Network { address, bits: if address.is_ipv4() { 32 } else { 128 } }
    }

    /// Whether it contains a peer; `None` for a client of a Unix socket.
    pub fn is(self, peer: Option<IpAddr>) -> bool {
        match (self, peer) {
            (Self::Unix, None) => true,
            (Self::Network { address, bits }, Some(peer)) => {
                address.is_ipv4() == peer.is_ipv4() && first_bits(peer, bits) == address
            }
            _ => false,
        }
    }
}

fn first_bits(address: IpAddr, bits: u32) -> IpAddr {
    match address {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
            IpAddr::V4((v4.to_bits() & mask).into())
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
            IpAddr::V6((v6.to_bits() & mask).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_hold_their_hosts() {
        let (ten, exact) = network("10.0.0.0/8").unwrap();
        assert!(exact && ten.is("10.9.8.7".parse().ok()) && !ten.is("11.0.0.0".parse().ok()));
        assert!(!ten.is(None) && DebugClient::Unix.is(None));
        assert!(!network("10.1.0.0/8").unwrap().1);
        let (all, _) = network("::/0").unwrap();
        assert!(all.is("2001:db8::1".parse().ok()) && !all.is("1.2.3.4".parse().ok()));
        assert!(network("10.0.0.0/33").is_none() && network("host").is_none());
    }
}
