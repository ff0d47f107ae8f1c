//! Who asks: `$remote_...`.

use std::net::{IpAddr, SocketAddr};

use crate::credentials;
use crate::exchange::Exchange;
use crate::variables::{BuiltIn, number, some};

pub(super) const TABLE: &[BuiltIn] = &[
    BuiltIn::fresh("remote_addr", |x, out| some(out, x.client.address())),
    BuiltIn::fresh("remote_port", |x, out| port(x.client.peer, out)),
    BuiltIn::fresh("binary_remote_addr", binary_remote_addr),
    BuiltIn::fresh("remote_user", |x, out| {
        let start = out.len();
        let user = credentials::append(x, out);
        out.truncate(start + user.unwrap_or(0));
        user.is_some()
    }),
];

/// The client's port; nothing where it has none, or nobody has said it.
pub(crate) fn port(peer: Option<SocketAddr>, out: &mut Vec<u8>) -> bool {
    peer.is_none_or(|peer| peer.port() == 0 || number(out, peer.port().into()))
}

/// The bytes as they are sent: 4 or 16 of them.
fn binary_remote_addr(x: &mut Exchange, out: &mut Vec<u8>) -> bool {
    match x.client.peer.map(|peer| peer.ip()) {
        Some(IpAddr::V4(ip)) => some(out, &ip.octets()),
        Some(IpAddr::V6(ip)) => some(out, &ip.octets()),
        None => some(out, x.client.address()),
    }
}
