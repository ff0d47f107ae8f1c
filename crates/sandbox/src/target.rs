//! The copy's URL for a URL of the real server.

use std::net::IpAddr;

use crate::address::{ListenAddress, ListenPort};
use crate::listens::MovedListen;

/// The copy's URL and names for a URL of the real server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxTarget {
    /// The real server's address for the URL.
    pub from: ListenAddress,
    /// The URL with the copy's address.
    pub url: String,
    /// The `Host` field that the real server would get.
    pub host: String,
    /// The URL's host without its port: the server name for TLS.
    pub name: String,
}

impl SandboxTarget {
    pub(super) fn of(url: &str, moved: &[MovedListen]) -> Result<Self, String> {
        let (scheme, is_tls, rest) = match url.split_once("://") {
            Some(("http", rest)) => ("http", false, rest),
            Some(("https", rest)) => ("https", true, rest),
            _ => return Err(format!("\"{url}\" does not begin with http:// or https://")),
        };
        let (host, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let meant = ListenPort::parse_host(host, if is_tls { 443 } else { 80 });
        let meant = meant.ok_or_else(|| format!("\"{url}\" names no host"))?;
        let listen = pick(&meant, moved)?;
        check(listen, is_tls)?;
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Ok(Self {
            from: listen.from.clone(),
            url: format!("{scheme}://{}{path}", listen.to),
            host: host.to_owned(),
            name: meant.host,
        })
    }
}

fn check(listen: &MovedListen, is_tls: bool) -> Result<(), String> {
    let from = &listen.from;
    if listen.has_proxy_protocol {
        return Err(format!("{from} expects the PROXY protocol, which the load does not speak"));
    }
    match (listen.is_tls, is_tls) {
        (true, false) => Err(format!("{from} expects TLS; the URL must begin with https://")),
        (false, true) => Err(format!("{from} expects no TLS; the URL must begin with http://")),
        _ => Ok(()),
    }
}

/// The address for a client: first the one with the URL's own IP address, then a wildcard address,
/// then one with a server of that name.
fn pick<'m>(meant: &ListenPort, moved: &'m [MovedListen]) -> Result<&'m MovedListen, String> {
    let here = |listen: &&MovedListen| {
        listen.is_http && listen.from.tcp().is_some_and(|port| port.port == meant.port)
    };
    let here: Vec<&MovedListen> = moved.iter().filter(here).collect();
    let find = |fits: &dyn Fn(&MovedListen, &ListenPort) -> bool| {
        let fits =
            |listen: &&&MovedListen| listen.from.tcp().is_some_and(|port| fits(listen, port));
        here.iter().find(fits).copied()
    };
    let is_literal = meant.ip().is_some();
    find(&|_, port| port.host == meant.host)
        .or_else(|| find(&|_, port| port.receives(meant)))
        .or_else(|| find(&|_, port| receives_any(port, meant)))
        .or_else(|| find(&|listen, _| !is_literal && listen.names.contains(&meant.host)))
        .or_else(|| here.first().copied().filter(|_| !is_literal && here.len() == 1))
        .ok_or_else(|| nowhere(meant, moved))
}

/// Whether it is a wildcard address of the same family as the URL's address.
fn receives_any(port: &ListenPort, meant: &ListenPort) -> bool {
    let is_any = port.ip().is_some_and(|own| own.is_unspecified());
    let is_v6 = matches!(port.ip(), Some(IpAddr::V6(_)));
    is_any && meant.ip().is_none_or(|meant| meant.is_ipv6() == is_v6)
}

fn nowhere(meant: &ListenPort, moved: &[MovedListen]) -> String {
    let there = moved.iter().filter(|listen| listen.is_http);
    let there: Vec<String> = there.map(|listen| listen.from.to_string()).collect();
    let there = if there.is_empty() { "nothing".to_owned() } else { there.join(", ") };
    format!("no server listens on {}:{}; there is {there}", meant.host, meant.port)
}
