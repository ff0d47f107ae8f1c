//! The address of a server in the configuration: `host`, `host:port`, `[v6]:port`, `unix:path`.
//!
//! Only the notation, in which nginx's messages are given; names are looked up by
//! [`Endpoint::addresses`], and nowhere else in this crate.

use std::fmt;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

use net::Address;

/// Longest path of a Unix socket.
const UNIX_PATH_MAX: usize = 107;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Endpoint {
    At(Address),
    /// A name, which is to be looked up.
    Named {
        host: Box<[u8]>,
        port: u16,
    },
}

/// The result of parsing an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParsedAddress {
    pub place: Endpoint,
    /// Whether the text has a port.
    pub port_said: bool,
}

impl ParsedAddress {
    /// Whether a port is required and missing.
    pub fn lacks_port(&self) -> bool {
        !self.port_said && !matches!(self.place, Endpoint::At(Address::Unix(_)))
    }
}

/// Why a text is not an address, in nginx's words.
pub type AddressRefusal = &'static str;

/// Reads an address without a path.
pub fn parse(text: &[u8], default_port: u16) -> Result<ParsedAddress, AddressRefusal> {
    if text.get(..5).is_some_and(|start| start.eq_ignore_ascii_case(b"unix:")) {
        return unix(&text[5..]);
    }
    match text.strip_prefix(b"[") {
        Some(inside) => v6(inside, default_port),
        None => named_or_v4(text, default_port),
    }
}

/// The address that was probably meant by a text that is not one: a URL, or a path.
pub fn meant(text: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(text).ok()?;
    if let Some(path) = text.strip_prefix("unix/").or(text.strip_prefix('/')) {
        return Some(format!("unix:/{path}"));
    }
    let address = text.split_once("://").map_or(text, |(_, address)| address);
    let address = match address.starts_with("unix:") {
        true => address,
        false => address.split(['/', '?']).next()?,
    };
    (address != text && parse(address.as_bytes(), 1).is_ok()).then(|| address.into())
}

fn unix(path: &[u8]) -> Result<ParsedAddress, AddressRefusal> {
    match path.len() {
        0 => Err("no path in the unix domain socket"),
        length if length > UNIX_PATH_MAX => Err("too long path in the unix domain socket"),
        _ => {
            let path = PathBuf::from(conf::bytes_path(path));
            Ok(ParsedAddress { place: Endpoint::At(Address::Unix(path)), port_said: false })
        }
    }
}

fn v6(inside: &[u8], default_port: u16) -> Result<ParsedAddress, AddressRefusal> {
    let close = inside.iter().position(|&byte| byte == b']').ok_or("invalid host")?;
    let (host, rest) = (&inside[..close], &inside[close + 1..]);
    if rest.contains(&b'/') {
        return Err("invalid host");
    }
    let port = match rest {
        [] => None,
        [b':', digits @ ..] => Some(port(digits)?),
        _ => return Err("invalid host"),
    };
    if host.is_empty() {
        return Err("no host");
    }
    let ip: Option<std::net::Ipv6Addr> =
        std::str::from_utf8(host).ok().and_then(|text| text.parse().ok());
    let ip = ip.ok_or("invalid IPv6 address")?;
    let address = SocketAddr::new(ip.into(), port.unwrap_or(default_port));
    Ok(ParsedAddress { place: Endpoint::At(Address::Ip(address)), port_said: port.is_some() })
}

fn named_or_v4(text: &[u8], default_port: u16) -> Result<ParsedAddress, AddressRefusal> {
    if text.iter().any(|byte| matches!(byte, b'/' | b'?')) {
        return Err("invalid host");
    }
    let (host, said) = match text.iter().position(|&byte| byte == b':') {
        Some(colon) => (&text[..colon], Some(port(&text[colon + 1..])?)),
        None => (text, None),
    };
    if host.is_empty() {
        return Err("no host");
    }
    let port = said.unwrap_or(default_port);
    let place = match conf::address_v4(host) {
        Some(ip) => Endpoint::At(Address::Ip(SocketAddr::new(ip.into(), port))),
        None => Endpoint::Named { host: host.into(), port },
    };
    Ok(ParsedAddress { place, port_said: said.is_some() })
}

fn port(digits: &[u8]) -> Result<u16, AddressRefusal> {
    let number = conf::units::number(digits).and_then(|number| u16::try_from(number).ok());
    number.filter(|port| *port > 0).ok_or("invalid port")
}

impl Endpoint {
    /// The addresses, each once; none if a name was not found. A name is looked up by the system,
    /// which may block.
    pub fn addresses(&self) -> Vec<Address> {
        match self {
            Self::At(address) => vec![address.clone()],
            Self::Named { host, port } => look_up(host, *port),
        }
    }
}

/// As in the configuration, always with the port.
impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(address) => address.fmt(f),
            Self::Named { host, port } => write!(f, "{}:{port}", String::from_utf8_lossy(host)),
        }
    }
}

fn look_up(host: &[u8], port: u16) -> Vec<Address> {
    let Ok(host) = std::str::from_utf8(host) else { return Vec::new() };
    let mut once: Vec<IpAddr> = Vec::new();
    for found in (host, port).to_socket_addrs().into_iter().flatten() {
        if !once.contains(&found.ip()) {
            once.push(found.ip());
        }
    }
    once.into_iter().map(|ip| Address::Ip(SocketAddr::new(ip, port))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_and_paths_lead_to_addresses() {
        for (text, address) in [
            ("http://127.0.0.1:9000", Some("127.0.0.1:9000")),
            ("http://a.test:9000/b?c", Some("a.test:9000")),
            ("127.0.0.1:9000/", Some("127.0.0.1:9000")),
            ("fcgi://unix:/run/a.sock", Some("unix:/run/a.sock")),
            ("unix/run/php.sock", Some("unix:/run/php.sock")),
            ("/run/php.sock", Some("unix:/run/php.sock")),
            ("a.test:x", None),
            ("a.test:x/b", None),
            ("://", None),
        ] {
            assert_eq!(meant(text.as_bytes()).as_deref(), address, "{text}");
        }
    }

    fn shown(text: &str) -> String {
        match parse(text.as_bytes(), 80) {
            Err(refusal) => refusal.into(),
            Ok(ParsedAddress { place: Endpoint::At(address), port_said }) => {
                format!("{address} {port_said}")
            }
            Ok(ParsedAddress { place: Endpoint::Named { host, port }, port_said }) => {
                format!("name {}:{port} {port_said}", String::from_utf8_lossy(&host))
            }
        }
    }

    #[test]
    fn every_form_and_every_refusal() {
        let table = [
            ("127.0.0.1", "127.0.0.1:80 false"),
            ("127.0.0.1:8080", "127.0.0.1:8080 true"),
            ("[::1]", "[::1]:80 false"),
            ("[::1]:8080", "[::1]:8080 true"),
            ("unix:/run/x.sock", "unix:/run/x.sock false"),
            ("UNIX:x", "unix:x false"),
            ("backend", "name backend:80 false"),
            ("backend:81", "name backend:81 true"),
            ("1.2.3:81", "name 1.2.3:81 true"),
            ("", "no host"),
            (":80", "no host"),
            ("[]:80", "no host"),
            ("[::1", "invalid host"),
            ("[::1]x", "invalid host"),
            ("[::1]:80/", "invalid host"),
            ("[::x]", "invalid IPv6 address"),
            ("a/b", "invalid host"),
            ("a?b", "invalid host"),
            ("a:", "invalid port"),
            ("a:0", "invalid port"),
            ("a:65536", "invalid port"),
            ("a:8x", "invalid port"),
            ("unix:", "no path in the unix domain socket"),
        ];
        for (text, expected) in table {
            assert_eq!(shown(text), expected, "{text}");
        }
        let long = format!("unix:{}", "x".repeat(UNIX_PATH_MAX + 1));
        assert_eq!(shown(&long), "too long path in the unix domain socket");
    }
}
