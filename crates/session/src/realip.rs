//! `set_real_ip_from`: the client for which a trusted proxy speaks, taken from the PROXY protocol
//! header; and the variables of the proxy itself.

use std::iter::once;
use std::marker::PhantomData;
use std::net::SocketAddr;

use crate::builtin::port;
use crate::forwarded::{Proxies, forwarded};
use crate::variables::{BuiltIn, some};
use crate::{Client, Session};

/// The variables of realip, for sessions of type `X`.
pub struct RealIpVariables<X>(PhantomData<X>);

impl<X: Session> RealIpVariables<X> {
    /// `$realip_...`: the client of the connection itself, which may be a proxy.
    pub const TABLE: &'static [BuiltIn<X>] = &[
        BuiltIn::fresh(
            "realip_remote_addr",
            "The address at the other end of the connection, which `set_real_ip_from` does not \
             replace.",
            |x, out| some(out, x.client().nearest().address()),
        ),
        BuiltIn::fresh(
            "realip_remote_port",
            "The port at the other end of the connection, which `set_real_ip_from` does not \
             replace.",
            |x, out| port(x.client().nearest().peer, out),
        ),
    ];
}

/// The address for which a client speaks, if it is a trusted proxy that sent a PROXY protocol
/// header.
pub fn proxied(client: &Client, proxies: &Proxies) -> Option<SocketAddr> {
    let source = &client.proxy_protocol.get()?.source;
    let from = client.peer.map(|peer| peer.ip());
    let (ip, _) = forwarded(from, once(&*source.address), proxies, false)?;
    Some(SocketAddr::new(ip, source.port))
}
