//! Where requests go: a URL taken apart, and the address behind its name.
//!
//! `http://host:port/path?query`, `http://unix:/path/to/socket:/path` in nginx's notation, and
//! `tcp://host:port`, `udp://host:port` for servers that send back what they get.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;

use net::Address;

/// A server, and what it is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The whole of it, as it was written.
    pub url: String,
    /// What is spoken.
    pub scheme: Scheme,
    /// The host's name or address without brackets; the path of a Unix socket.
    pub host: String,
    /// The port, as written; empty: none was.
    pub port: String,
    /// Path and query, which begin with a slash.
    pub path: String,
}

/// What is spoken with a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// HTTP over TCP.
    Http,
    /// HTTP over a Unix socket.
    Unix,
    /// Bytes that come back, over TCP.
    Tcp,
    /// Datagrams that come back.
    Udp,
}

/// How long a server may take to accept the connection that is only to see whether it is there.
const TRIAL_MAX: Duration = Duration::from_secs(5);

impl Target {
    /// Takes a URL apart.
    pub fn parse(url: &str) -> Result<Self, String> {
        let wrong = |what: &str| format!("\"{url}\" is not a URL that can be loaded: {what}");
        let (scheme, rest) = url.split_once("://").ok_or_else(|| wrong("it has no scheme"))?;
        let scheme = match scheme {
            "http" if rest.starts_with("unix:") => Scheme::Unix,
            "http" => Scheme::Http,
            "tcp" => Scheme::Tcp,
            "udp" => Scheme::Udp,
            "https" => return Err(wrong("TLS is not supported by this version")),
            other => return Err(wrong(&format!("\"{other}\" is not http, tcp or udp"))),
        };
        let rest = rest.split('#').next().unwrap_or_default();
        if url.bytes().any(|byte| byte <= b' ' || byte == 0x7f) {
            return Err(wrong("it has a space or a control character"));
        }
        if let Some(rest) = rest.strip_prefix("unix:").filter(|_| scheme == Scheme::Unix) {
            let (socket, path) = rest.split_once(':').unwrap_or((rest, ""));
            if socket.is_empty() {
                return Err(wrong("it has no socket"));
            }
            return Ok(Self {
                url: url.to_owned(),
                scheme,
                host: socket.to_owned(),
                port: String::new(),
                path: with_slash(path),
            });
        }
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let authority = authority.rsplit('@').next().unwrap_or_default();
        let (host, port) = split_port(authority).ok_or_else(|| wrong("its host or port"))?;
        if port.is_empty() && scheme != Scheme::Http {
            return Err(wrong("it has no port"));
        }
        Ok(Self {
            url: url.to_owned(),
            scheme,
            host: host.to_owned(),
            port: port.to_owned(),
            path: with_slash(path),
        })
    }

    /// Whether both are the same server, reached the same way.
    pub fn is_with(&self, other: &Self) -> bool {
        (self.scheme, &self.host, self.port()) == (other.scheme, &other.host, other.port())
    }

    /// The port's number.
    pub fn port(&self) -> u16 {
        // A number by construction.
        self.port.parse().unwrap_or(80)
    }

    /// What the field `Host` says of it.
    pub fn authority(&self) -> String {
        let host = match self.scheme {
            Scheme::Unix => "localhost",
            _ => &self.host,
        };
        let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        if self.port.is_empty() { host } else { format!("{host}:{}", self.port) }
    }

    /// The addresses it has.
    pub fn addresses(&self) -> Result<Vec<Address>, String> {
        if self.scheme == Scheme::Unix {
            return Ok(vec![Address::Unix(PathBuf::from(&self.host))]);
        }
        let found = (self.host.as_str(), self.port()).to_socket_addrs();
        let found = found.map_err(|error| format!("unable to resolve {}: {error}", self.host))?;
        let mut addresses: Vec<SocketAddr> = found.collect();
        addresses.dedup();
        Ok(addresses.into_iter().map(Address::Ip).collect())
    }

    /// The first of its addresses where somebody answers.
    pub fn reachable(&self) -> Result<Address, String> {
        let mut failed = format!("unable to resolve {}: no address", self.host);
        for address in self.addresses()? {
            let tried = match &address {
                _ if self.scheme == Scheme::Udp => Ok(()),
                Address::Ip(ip) => std::net::TcpStream::connect_timeout(ip, TRIAL_MAX).map(|_| ()),
                Address::Unix(path) => std::os::unix::net::UnixStream::connect(path).map(|_| ()),
            };
            match tried {
                Ok(()) => return Ok(address),
                Err(error) if has_stood(&error) => return Ok(address),
                Err(error) => failed = format!("unable to connect to {address}: {error}"),
            }
        }
        Err(failed)
    }
}

/// Whether there was a connection: nobody else could have reset it at once.
fn has_stood(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::ConnectionReset
}

fn with_slash(path: &str) -> String {
    if path.starts_with('/') { path.to_owned() } else { format!("/{path}") }
}

/// Host and port; the port may be missing, a host may not.
fn split_port(authority: &str) -> Option<(&str, &str)> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']')?;
            (host, rest.strip_prefix(':').or(rest.is_empty().then_some(""))?)
        }
        None => authority.split_once(':').unwrap_or((authority, "")),
    };
    let is_number = port.bytes().all(|byte| byte.is_ascii_digit());
    let is_port = port.is_empty() || is_number && port.parse::<u16>().is_ok_and(|port| port > 0);
    let is_host = !host.is_empty() && !host.contains(['[', ']']);
    (is_host && is_port).then_some((host, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(url: &str) -> (Scheme, String, String, String) {
        let target = Target::parse(url).expect(url);
        (target.scheme, target.host.clone(), target.authority(), target.path)
    }

    #[test]
    fn urls() {
        let table = [
            ("http://h", Scheme::Http, "h", "h", "/"),
            (
                "http://127.0.0.1:8080/a/b?c=d#e",
                Scheme::Http,
                "127.0.0.1",
                "127.0.0.1:8080",
                "/a/b?c=d",
            ),
            ("http://h?q", Scheme::Http, "h", "h", "/?q"),
            ("http://u:p@h/", Scheme::Http, "h", "h", "/"),
            ("http://[::1]:81/", Scheme::Http, "::1", "[::1]:81", "/"),
            ("http://unix:/tmp/s.sock:/x", Scheme::Unix, "/tmp/s.sock", "localhost", "/x"),
            ("http://unix:/tmp/s.sock:x", Scheme::Unix, "/tmp/s.sock", "localhost", "/x"),
            ("http://unix:/tmp/s.sock", Scheme::Unix, "/tmp/s.sock", "localhost", "/"),
            ("udp://h:53", Scheme::Udp, "h", "h:53", "/"),
        ];
        for (url, scheme, host, authority, path) in table {
            let expected = (scheme, host.into(), authority.into(), path.into());
            assert_eq!(parts(url), expected, "{url}");
        }
    }

    #[test]
    fn what_is_no_url() {
        for url in [
            "h",
            "http://",
            "ftp://h/",
            "https://h/",
            "http://:80/",
            "http://h:x/",
            "http://h:0/",
            "http://h:+80/",
            "http://unix:",
            "http://unix::/x",
            "http://h:65536/",
            "http://[::1",
            "http://[::1]x/",
            "http://[[::1]/",
            "tcp://h",
            "http://h/a b",
        ] {
            assert!(Target::parse(url).is_err(), "{url}");
        }
    }

    #[test]
    fn one_server_two_pages() {
        let target = |url| Target::parse(url).expect("a URL");
        assert!(target("http://h/a").is_with(&target("http://h:80/b")));
        assert!(!target("http://h/a").is_with(&target("http://h:81/a")));
    }

    #[test]
    fn who_resets_at_once_is_there() {
        assert!(has_stood(&io::ErrorKind::ConnectionReset.into()));
        assert!(!has_stood(&io::ErrorKind::ConnectionRefused.into()));
    }

    #[test]
    fn nobody_there() {
        let error = Target::parse("http://127.0.0.1:1/").expect("a URL").reachable();
        let error = error.expect_err("nobody listens there");
        assert!(error.starts_with("unable to connect to 127.0.0.1:1: "), "{error}");
    }
}
