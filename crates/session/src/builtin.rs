//! The variables that sessions of all subsystems have.

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
        BuiltIn::fresh(
            "remote_addr",
            "The client's address; with `set_real_ip_from`, the one that a trusted proxy names.",
            |x, out| some(out, x.client().address()),
        ),
        BuiltIn::fresh(
            "remote_port",
            "The client's port; with `set_real_ip_from`, the one that a trusted proxy names.",
            |x, out| port(x.client().peer, out),
        ),
        BuiltIn::fresh(
            "binary_remote_addr",
            "The client's address as 4 or 16 bytes: a short key for zones.",
            binary_remote_addr,
        ),
        BuiltIn::fresh(
            "connection",
            "The serial number of the connection within the process.",
            |x, out| number(out, x.client().serial),
        ),
        BuiltIn::fresh(
            "server_addr",
            "The address that the client connected to.",
            |x, out| match x.client().local() {
                Some(local) => text(out, format_args!("{}", local.ip())),
                // A Unix socket: its file name, which getsockname(2) would return as well.
                None => {
                    let address = x.listen_address();
                    address.is_some_and(|address| text(out, format_args!("{address}")))
                }
            },
        ),
        BuiltIn::fresh("server_port", "The port that the client connected to.", |x, out| {
            x.server_port().is_none_or(|port| number(out, port.into()))
        }),
        BuiltIn::fresh(
            "proxy_protocol_addr",
            "The client's address in the PROXY protocol header (`listen ... proxy_protocol`).",
            |x, out| address(header(x).map(|h| &h.source), out),
        ),
        BuiltIn::fresh(
            "proxy_protocol_port",
            "The client's port in the PROXY protocol header.",
            |x, out| said(header(x).map(|h| &h.source), out),
        ),
        BuiltIn::fresh(
            "proxy_protocol_server_addr",
            "The server's address in the PROXY protocol header.",
            |x, out| address(header(x).map(|h| &h.destination), out),
        ),
        BuiltIn::fresh(
            "proxy_protocol_server_port",
            "The server's port in the PROXY protocol header.",
            |x, out| said(header(x).map(|h| &h.destination), out),
        ),
        BuiltIn::prefix(
            "proxy_protocol_tlv_",
            "A field (TLV) of the PROXY protocol header, version 2: by name, such as `authority`, \
             `alpn` or `ssl_cn`, or by number, such as `0x01`.",
            tlv,
        )
        .cached_each(),
        BuiltIn::fresh(
            "msec",
            "The current time in seconds, with milliseconds, since 1970.",
            |_, out| {
                decimal::write_seconds(net::clock::unix_ms(), out);
                true
            },
        ),
        BuiltIn::fresh(
            "time_local",
            "The current time in the form of the common log format.",
            |_, out| some(out, &now().log),
        ),
        BuiltIn::fresh("time_iso8601", "The current time in the form of ISO 8601.", |_, out| {
            some(out, &now().iso8601)
        }),
        BuiltIn::fresh("hostname", "The name of the machine.", |_, out| {
            some(out, observe::system().hostname.as_bytes())
        }),
        BuiltIn::fresh("pid", "The number of the process that serves.", |_, out| {
            number(out, std::process::id().into())
        }),
        BuiltIn::fresh(
            "nginx_version",
            "The version of nginx that this program is compatible with, or its own version when it \
             is called `weir`.",
            |_, out| some(out, identity::identity().version.as_bytes()),
        ),
    ];
}

/// The time on the worker's clock, in seconds.
pub fn now() -> Stamps {
    Stamps::of((net::clock::unix_ms() / 1000) as i64)
}

/// The client's port; empty if it has none, or it is unknown.
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
