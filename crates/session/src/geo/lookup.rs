//! The lookup of an address' value.

use std::net::IpAddr;

use conf::VariableId;

use super::stretches::Stretches;
use crate::Session;
use crate::forwarded::Proxies;

/// A compiled `geo` block.
pub(super) struct Geo {
    /// The variable with the address; `None` for the client's address.
    pub(super) source: Option<VariableId>,
    pub(super) proxies: Proxies,
    pub(super) proxy_recursive: bool,
    pub(super) v4: Stretches<u32>,
    pub(super) v6: Stretches<u128>,
    pub(super) values: Vec<Box<[u8]>>,
}

impl Geo {
    pub(super) fn get<X: Session>(&self, x: &mut X, out: &mut Vec<u8>) -> bool {
        let value = match self.address(x, out).map(|ip| ip.to_canonical()) {
            Some(IpAddr::V4(ip)) => self.v4.find(ip.to_bits()),
            Some(IpAddr::V6(ip)) => self.v6.find(ip.to_bits()),
            // Anything other than an address is looked up as 255.255.255.255.
            None => self.v4.find(u32::MAX),
        };
        out.extend_from_slice(&self.values[value as usize]);
        true
    }

    /// The address to look up; `out` is left unchanged.
    fn address<X: Session>(&self, x: &mut X, out: &mut Vec<u8>) -> Option<IpAddr> {
        let ip = match self.source {
            None => x.client().peer?.ip(),
            Some(variable) => {
                let start = out.len();
                x.variable(variable, out);
                let ip = conf::address(&out[start..]);
                out.truncate(start);
                ip?
            }
        };
        if self.proxies.networks.is_empty() {
            return Some(ip);
        }
        Some(x.forwarded(ip, &self.proxies, self.proxy_recursive))
    }
}
