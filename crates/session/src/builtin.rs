//! The variables that every session has, whatever its subsystem.

use std::fmt::Arguments;
use std::io::Write as _;
use std::marker::PhantomData;
use std::net::{IpAddr, SocketAddr};

use observe::{Level, Stamps};
use wire::proxy_protocol::{Header, ProxyEndpoint, TlvError, TlvName};

use crate::variables::{BuiltIn, Getter, number, some};
use crate::{Session, decimal, identity};

/// Their table, for sessions of type `X`.
pub struct Common<X>(PhantomData<X>);

impl<X: Session> Common<X> {
    /// The variables.
    pub const TABLE: &'static [BuiltIn<X>] = &[
        BuiltIn::fresh("remote_addr", |x, out| some(out, x.client().address())),
        BuiltIn::fresh("remote_port", |x, out| port(x.client().peer, out)),
        BuiltIn::fresh("binary_remote_addr", binary_remote_addr),
        BuiltIn::fresh("connection", |x, out| number(out, x.client().serial)),
        BuiltIn::fresh("server_addr", |x, out| match x.client().local() {
            Some(local) => text(out, format_args!("{}", local.ip())),
            // The socket file's own name, which the kernel would give, too.
            None => {
                let address = x.listen_address();
                address.is_some_and(|address| text(out, format_args!("{address}")))
            }
        }),
        BuiltIn::fresh("server_port", |x, out| {
            x.server_port().is_none_or(|port| number(out, port.into()))
        }),
        BuiltIn::fresh("proxy_protocol_addr", |x, out| address(header(x).map(|h| &h.source), out)),
        BuiltIn::fresh("proxy_protocol_port", |x, out| said(header(x).map(|h| &h.source), out)),
        BuiltIn::fresh("proxy_protocol_server_addr", |x, out| {
            address(header(x).map(|h| &h.destination), out)
        }),
        BuiltIn::fresh("proxy_protocol_server_port", |x, out| {
            said(header(x).map(|h| &h.destination), out)
        }),
        BuiltIn::prefix("proxy_protocol_tlv_", tlv).cached_each(),
        BuiltIn::fresh("msec", |_, out| {
            decimal::write_seconds(net::clock::unix_ms(), out);
            true
        }),
        BuiltIn::fresh("time_local", |_, out| some(out, &now().log)),
        BuiltIn::fresh("time_iso8601", |_, out| some(out, &now().iso8601)),
        BuiltIn::fresh("hostname", |_, out| some(out, observe::system().hostname.as_bytes())),
        BuiltIn::fresh("pid", |_, out| number(out, std::process::id().into())),
        BuiltIn::fresh("nginx_version", |_, out| {
            some(out, identity::identity().version.as_bytes())
        }),
    ];
}

/// The second that the worker's clock shows.
pub fn now() -> Stamps {
    Stamps::of((net::clock::unix_ms() / 1000) as i64)
}

/// The client's port; nothing where it has none, or nobody has said it.
pub fn port(peer: Option<SocketAddr>, out: &mut Vec<u8>) -> bool {
    peer.is_none_or(|peer| peer.port() == 0 || number(out, peer.port().into()))
}

/// The bytes as they are sent: 4 or 16 of them.
fn binary_remote_addr<X: Session>(x: &mut X, out: &mut Vec<u8>) -> bool {
    match x.client().peer.map(|peer| peer.ip()) {
        Some(IpAddr::V4(ip)) => some(out, &ip.octets()),
        Some(IpAddr::V6(ip)) => some(out, &ip.octets()),
        None => some(out, x.client().address()),
    }
}

fn text(out: &mut Vec<u8>, value: Arguments<'_>) -> bool {
    out.write_fmt(value).is_ok()
}

fn header<X: Session>(x: &X) -> Option<&Header> {
    x.client().proxy_protocol.get().map(|header| &**header)
}

fn address(end: Option<&ProxyEndpoint>, out: &mut Vec<u8>) -> bool {
    end.is_some_and(|end| some(out, &end.address))
}

/// 0 is no port, but there: nothing is written.
fn said(end: Option<&ProxyEndpoint>, out: &mut Vec<u8>) -> bool {
    end.is_some_and(|end| end.port == 0 || number(out, end.port.into()))
}

fn tlv<X: Session>(name: Box<[u8]>) -> Getter<X> {
    let wanted = TlvName::parse(&name);
    Box::new(move |x: &mut X, out: &mut Vec<u8>| {
        let found = header(x).map(|header| header.tlv(wanted, out));
        let wrong = match found {
            None => return false,
            Some(Ok(found)) => return found,
            Some(Err(TlvError::Broken)) => {
                x.log(Level::Error, format_args!("broken PROXY protocol TLV"));
                return false;
            }
            Some(Err(TlvError::UnknownName)) => "unknown",
            Some(Err(TlvError::InvalidName)) => "invalid",
        };
        let name = observe::Text(&name);
        x.log(Level::Error, format_args!("{wrong} PROXY protocol TLV \"{name}\""));
        false
    })
}
