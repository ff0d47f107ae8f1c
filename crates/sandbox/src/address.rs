//! The address in a `listen` line: a port or a Unix socket.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::ops::RangeInclusive;

use crate::tree::EditableDirective;

/// The address of a `listen` line. Different spellings of one address are equal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ListenAddress {
    /// A TCP port.
    Tcp(ListenPort),
    /// A UDP port, from `udp` or `quic`.
    Udp(ListenPort),
    /// The path of a Unix socket.
    Unix(Vec<u8>),
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListenPort {
    /// The address or name; `*`: every IPv4 address.
    pub host: String,
    pub port: u16,
}

/// As in a `listen` line.
impl fmt::Display for ListenAddress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(ListenPort { host, port }) => write!(out, "{host}:{port}"),
            Self::Udp(ListenPort { host, port }) => write!(out, "{host}:{port} udp"),
            Self::Unix(path) => write!(out, "unix:{}", String::from_utf8_lossy(path)),
        }
    }
}

impl ListenAddress {
    /// Parses a `listen` line; `default_port` is for an address without a port. An error names the
    /// line.
    pub fn of(listen: &EditableDirective, default_port: u16) -> Result<Self, String> {
        let word = listen.words.get(1).map(Vec::as_slice).unwrap_or_default();
        if let Some(path) = word.strip_prefix(b"unix:") {
            return Ok(Self::Unix(path.to_vec()));
        }
        let refused = |why: &str| format!("{}: \"{}\": {why}", listen.place, listen.shown());
        let word = std::str::from_utf8(word).map_err(|_| refused("cannot be read"))?;
        if range(word).is_some() {
            return Err(refused("a range of ports is no single address"));
        }
        let port = ListenPort::parse(word, default_port);
        let port = port.ok_or_else(|| refused("cannot be read"))?;
        let is_udp = listen.arguments().any(|word| ["udp", "quic"].contains(&word));
        Ok(if is_udp { Self::Udp(port) } else { Self::Tcp(port) })
    }

    /// The port; `None` for a Unix socket.
    pub fn port(&self) -> Option<u16> {
        match self {
            Self::Tcp(port) | Self::Udp(port) => Some(port.port),
            Self::Unix(_) => None,
        }
    }

    /// The TCP port; `None` for other addresses.
    pub fn tcp(&self) -> Option<&ListenPort> {
        match self {
            Self::Tcp(port) => Some(port),
            Self::Udp(_) | Self::Unix(_) => None,
        }
    }
}

/// The host and the ports of a word with a range of ports, such as `[::]:8000-8010`.
pub(crate) fn range(word: &str) -> Option<(&str, RangeInclusive<u16>)> {
    let (host, ports) = word.split_at(word.rfind(':').map_or(0, |colon| colon + 1));
    let (first, last) = ports.split_once('-')?;
    Some((host, first.parse().ok()?..=last.parse().ok()?))
}

impl ListenPort {
    /// Parses `ADDRESS:PORT`, `ADDRESS` or `PORT`.
    pub fn parse(word: &str, default_port: u16) -> Option<Self> {
        if let Ok(port) = word.parse() {
            return Some(Self { host: "*".to_owned(), port });
        }
        let has_port = word.rfind(':').is_some_and(|colon| !word[colon..].contains(']'));
        let (host, port) = match word.rsplit_once(':').filter(|_| has_port) {
            Some((host, port)) => (host, port.parse().ok()?),
            None => (word, default_port),
        };
        (!host.is_empty()).then(|| Self { host: host_name(host), port })
    }

    /// Parses the host of a URL, with or without a port. Unlike in a `listen` line, a number alone
    /// is not a port.
    pub fn parse_host(host: &str, default_port: u16) -> Option<Self> {
        if host.is_empty() || host.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        Self::parse(host, default_port)
    }

    /// The host as an IP address, if it is one; `*` is 0.0.0.0.
    pub fn ip(&self) -> Option<IpAddr> {
        match self.host.as_str() {
            "*" => Some(Ipv4Addr::UNSPECIFIED.into()),
            host => host.trim_start_matches('[').trim_end_matches(']').parse().ok(),
        }
    }

    /// Whether this address receives connections to `to`, as far as the names show.
    pub fn receives(&self, to: &Self) -> bool {
        if self.port != to.port {
            return false;
        }
        match (self.ip(), to.ip()) {
            (Some(own), Some(to)) if own.is_unspecified() => {
                to == own || (to.is_loopback() && to.is_ipv4() == own.is_ipv4())
            }
            _ => self.host == to.host,
        }
    }
}

/// The normalised spelling of a host.
fn host_name(host: &str) -> String {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    match (host, bare.parse::<IpAddr>()) {
        ("localhost", _) => Ipv4Addr::LOCALHOST.to_string(),
        ("*" | "0.0.0.0", _) => "*".to_owned(),
        (_, Ok(IpAddr::V6(address))) => format!("[{address}]"),
        _ => host.to_ascii_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::tree;

    fn address(listen: &str) -> Result<String, String> {
        let tree = tree(listen);
        ListenAddress::of(&tree.root[0], 80).map(|address| address.to_string())
    }

    #[test]
    fn spellings_of_one_address_are_equal() {
        for (listen, expected) in [
            ("listen 80;", "*:80"),
            ("listen *:80 ssl;", "*:80"),
            ("listen 0.0.0.0:8080;", "*:8080"),
            ("listen [::]:80 ipv6only=on;", "[::]:80"),
            ("listen [0:0::0]:443;", "[::]:443"),
            ("listen [::1];", "[::1]:80"),
            ("listen localhost:81;", "127.0.0.1:81"),
            ("listen 10.0.0.1;", "10.0.0.1:80"),
            ("listen Example.org:82;", "example.org:82"),
            ("listen 443 quic;", "*:443 udp"),
            ("listen 53 udp;", "*:53 udp"),
            ("listen unix:/run/a.sock;", "unix:/run/a.sock"),
        ] {
            assert_eq!(address(listen).as_deref(), Ok(expected), "{listen}");
        }
    }

    #[test]
    fn an_error_names_the_line_that_cannot_be_moved() {
        assert_eq!(
            address("listen 127.0.0.1:8000-8010;").unwrap_err(),
            "/etc/nginx/nginx.conf:1: \"listen 127.0.0.1:8000-8010;\": a range of ports is \
             no single address"
        );
        assert!(address("listen 8000-8010;").unwrap_err().contains("a range of ports"));
        assert!(address("listen a:b;").unwrap_err().contains("cannot be read"));
        assert_eq!(address("listen my-host:80;").as_deref(), Ok("my-host:80"));
    }

    #[test]
    fn addresses_receive_connections_to_themselves() {
        let port = |text: &str| ListenPort::parse(text, 80).unwrap();
        for (own, to) in [
            ("80", "127.0.0.1:80"),
            ("8080", "localhost:8080"),
            ("[::]:80", "[::1]:80"),
            ("10.0.0.1:80", "10.0.0.1:80"),
            ("80", "0.0.0.0:80"),
        ] {
            assert!(port(own).receives(&port(to)), "{own} {to}");
        }
        for (own, to) in [
            ("80", "127.0.0.1:81"),
            ("80", "10.0.0.1:80"),
            ("80", "[::1]:80"),
            ("10.0.0.1:80", "127.0.0.1:80"),
            ("80", "backend:80"),
        ] {
            assert!(!port(own).receives(&port(to)), "{own} {to}");
        }
    }
}
