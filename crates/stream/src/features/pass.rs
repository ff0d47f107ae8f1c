//! `pass`: passes connections to another listening socket of this program, of `http {}` or
//! `stream {}`. The session is logged only if that fails.

use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::sync::Arc;

use ::session::Session as _;
use conf::{Directive, Inherited, Load, Result, Template, Value};
use net::Address;
use observe::{Level, Text};

use crate::serve::OK;
use crate::session::StreamSession;
use crate::site::ServerBuilder;

conf::directives! {
    in SERVER;

    /// Hands connections to another listening socket of this program, as if it had accepted them:
    /// one of `http {}` or `stream {}` that listens on this address, or on every address of its
    /// port. Its `$server_addr` and `$server_port` are then those of this address. A connection
    /// over TLS stays one, and can only be passed to a socket without `ssl`. With `ssl_preread`,
    /// the name in the handshake decides which server's `pass` is followed.
    ///
    /// Syntax: ADDRESS
    ///
    /// ```nginx
    /// server {
    ///     listen 127.0.0.1:9443 ssl;
    ///     ssl_reject_handshake on;
    ///     pass 127.0.0.1:9000;
    /// }
    /// ```
    pass: Option<PassAddress>,
}

#[derive(Clone)]
pub enum PassAddress {
    Fixed(Address),
    Computed(Template),
}

/// How often a connection may be passed.
const PASSES_MAX: u32 = 10;

const INTERNAL_SERVER_ERROR: u16 = 500;

impl Value for PassAddress {
    const ARGS: RangeInclusive<usize> = 1..=1;
    const INHERITED: Inherited = Inherited::Never;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let word = from.arg(0);
        let template = Template::compile(word, from, load)?;
        let Some(text) = template.as_fixed() else { return Ok(Self::Computed(template)) };
        match address(text) {
            Ok(address) => Ok(Self::Fixed(address)),
            Err(NoTarget::NoAddresses) => Err(from.refuse("has no addresses")),
            Err(NoTarget::NoPort) => Err(from.refuse("has no port")),
            Err(NoTarget::Invalid(why)) => {
                let message = format!("{why} in \"{word}\" of the \"pass\" directive");
                Err(from.error_at(word, message))
            }
        }
    }
}

/// Why a text is not an address.
#[derive(Debug, PartialEq, Eq)]
enum NoTarget {
    Invalid(&'static str),
    NoAddresses,
    NoPort,
}

/// The address of a listening socket. Names are not looked up.
fn address(text: &[u8]) -> std::result::Result<Address, NoTarget> {
    if let Some(path) = text.strip_prefix(b"unix:") {
        return match path {
            [] => Err(NoTarget::Invalid("no path in the unix domain socket")),
            path => Ok(Address::Unix(conf::bytes_path(path).into())),
        };
    }
    let text = std::str::from_utf8(text).map_err(|_| NoTarget::Invalid("invalid host"))?;
    if let Ok(address) = text.parse::<SocketAddr>() {
        return match address.port() {
            0 => Err(NoTarget::Invalid("invalid port")),
            _ => Ok(Address::Ip(address)),
        };
    }
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    if bare.parse::<IpAddr>().is_ok() {
        return Err(NoTarget::NoPort);
    }
    match text.rsplit_once(':') {
        Some(("", _)) => Err(NoTarget::Invalid("no host")),
        Some((_, port)) if !port.parse::<u16>().is_ok_and(|port| port > 0) => {
            Err(NoTarget::Invalid("invalid port"))
        }
        _ if text.is_empty() => Err(NoTarget::Invalid("no host")),
        _ => Err(NoTarget::NoAddresses),
    }
}

/// Sets the server's content handler.
pub fn install(conf: &Arc<Conf>, place: &mut ServerBuilder<'_, '_>) -> Result<()> {
    let Some(line) = conf.pass.clone() else { return Ok(()) };
    place.server.content = Some(place.hook(Box::new(move |x, _| {
        let status = pass(&line, x);
        Box::pin(async move { status })
    })));
    place.server.datagrams_max = 1;
    place.server.datagram_content = Some(place.hook(Box::new(|x, _| {
        x.log(Level::Error, format_args!("cannot pass udp connection"));
        Box::pin(async { INTERNAL_SERVER_ERROR })
    })));
    Ok(())
}

/// Sets the target of the connection, to which `serve` passes it.
fn pass(line: &PassAddress, x: &mut StreamSession) -> u16 {
    x.action = "passing connection to port";
    if x.client.is_secure.get() && !x.preread.is_empty() {
        x.log(Level::Error, format_args!("cannot pass connection with preread data"));
        return INTERNAL_SERVER_ERROR;
    }
    let Some(to) = target(line, x) else { return INTERNAL_SERVER_ERROR };
    if x.client.passes >= PASSES_MAX {
        x.log(Level::Error, format_args!("stream pass cycle"));
        return INTERNAL_SERVER_ERROR;
    }
    x.passed_to = Some(Box::new(to));
    OK
}

fn target(line: &PassAddress, x: &mut StreamSession) -> Option<Address> {
    let template = match line {
        PassAddress::Fixed(address) => return Some(address.clone()),
        PassAddress::Computed(template) => template,
    };
    let mut text = Vec::new();
    template.render(x, &mut text);
    let why = match address(&text) {
        Ok(address) => return Some(address),
        Err(NoTarget::Invalid(why)) => why,
        Err(NoTarget::NoAddresses) => "no addresses",
        Err(NoTarget::NoPort) => "no port",
    };
    x.log(Level::Error, format_args!("{why} in pass \"{}\"", Text(&text)));
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_port_and_no_name() {
        let ip = |text: &str| Ok(Address::Ip(text.parse().unwrap()));
        assert_eq!(address(b"127.0.0.1:80"), ip("127.0.0.1:80"));
        assert_eq!(address(b"[::1]:80"), ip("[::1]:80"));
        assert_eq!(address(b"unix:/a"), Ok(Address::Unix("/a".into())));
        let refused: [(&[u8], NoTarget); 10] = [
            (b"", NoTarget::Invalid("no host")),
            (b":80", NoTarget::Invalid("no host")),
            (b"unix:", NoTarget::Invalid("no path in the unix domain socket")),
            (b"127.0.0.1:0", NoTarget::Invalid("invalid port")),
            (b"127.0.0.1:x", NoTarget::Invalid("invalid port")),
            (b"\xff:80", NoTarget::Invalid("invalid host")),
            (b"127.0.0.1", NoTarget::NoPort),
            (b"[::1]", NoTarget::NoPort),
            (b"localhost:80", NoTarget::NoAddresses),
            (b"localhost", NoTarget::NoAddresses),
        ];
        for (text, why) in refused {
            assert_eq!(address(text), Err(why), "{}", Text(text));
        }
    }
}
