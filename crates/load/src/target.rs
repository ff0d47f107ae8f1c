//! The target of requests: a parsed URL, and the addresses of its host.
//!
//! `http://host:port/path?query`, the same with `https`, `http://unix:/path/to/socket:/path` in
//! nginx's notation, and `tcp://host:port`, `udp://host:port` for echo servers.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;

use net::Address;

/// A server and the requested path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadTarget {
    /// The URL as it was written, without a password.
    pub url: String,
    /// `user:password`; empty without a user.
    pub credentials: Vec<u8>,
    pub scheme: TargetScheme,
    /// The host's name or address without brackets; the path of a Unix socket.
    pub host: String,
    /// The port, as written; empty if there is none.
    pub port: String,
    /// Path and query, which begin with a slash.
    pub path: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetScheme {
    Http,
    Https,
    /// HTTP over a Unix socket.
    Unix,
    /// An echo server over TCP.
    Tcp,
    /// An echo server over UDP.
    Udp,
}

impl TargetScheme {
    /// Whether it is an echo server.
    pub fn is_echo(self) -> bool {
        matches!(self, Self::Tcp | Self::Udp)
    }

    /// Whether both are HTTP, or both the same kind of echo.
    pub fn is_like(self, other: Self) -> bool {
        self == other || !self.is_echo() && !other.is_echo()
    }
}

/// The timeout of the connection that checks whether a server is reachable.
const TRIAL_MAX: Duration = Duration::from_secs(5);

impl LoadTarget {
    pub fn parse(url: &str) -> Result<Self, String> {
        let shown = without_password(url);
        let wrong = |what: &str| format!("\"{shown}\" is not a valid URL: {what}");
        let (scheme, rest) = url.split_once("://").ok_or_else(|| wrong("the scheme is missing"))?;
        let scheme = match scheme.to_ascii_lowercase().as_str() {
            "http" if rest.starts_with("unix:") => TargetScheme::Unix,
            "http" => TargetScheme::Http,
            "tcp" => TargetScheme::Tcp,
            "udp" => TargetScheme::Udp,
            "https" => TargetScheme::Https,
            other => return Err(wrong(&format!("\"{other}\" is not http, https, tcp or udp"))),
        };
        let rest = rest.split('#').next().unwrap_or_default();
        if url.bytes().any(|byte| byte <= b' ' || byte == 0x7f) {
            return Err(wrong("it contains a space or a control character"));
        }
        if let Some(rest) = rest.strip_prefix("unix:").filter(|_| scheme == TargetScheme::Unix) {
            let (socket, path) = rest.split_once(':').unwrap_or((rest, ""));
            if socket.is_empty() {
                return Err(wrong("the socket is missing"));
            }
            return Ok(Self {
                url: shown,
                credentials: Vec::new(),
                scheme,
                host: socket.to_owned(),
                port: String::new(),
                path: with_slash(path),
            });
        }
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let (user, authority) = authority.rsplit_once('@').unwrap_or(("", authority));
        let credentials = credentials(user).map_err(wrong)?;
        if !credentials.is_empty() && scheme.is_echo() {
            return Err(wrong("only http:// and https:// support a user"));
        }
        let (host, port) = split_port(authority).ok_or_else(|| wrong("invalid host or port"))?;
        if port.is_empty() && scheme.is_echo() {
            return Err(wrong("the port is missing"));
        }
        Ok(Self {
            url: shown,
            credentials,
            scheme,
            host: host.to_owned(),
            port: port.to_owned(),
            path: with_slash(path),
        })
    }

    /// Whether both are the same server with the same protocol.
    pub fn is_with(&self, other: &Self) -> bool {
        (self.scheme, &self.host, self.port()) == (other.scheme, &other.host, other.port())
    }

    pub fn port(&self) -> u16 {
        let default = if self.scheme == TargetScheme::Https { 443 } else { 80 };
        // A number by construction.
        self.port.parse().unwrap_or(default)
    }

    /// The value of the field `Host`.
    pub fn authority(&self) -> String {
        let host = match self.scheme {
            TargetScheme::Unix => "localhost",
            _ => &self.host,
        };
        let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        if self.port.is_empty() { host } else { format!("{host}:{}", self.port) }
    }

    pub fn addresses(&self) -> Result<Vec<Address>, String> {
        if self.scheme == TargetScheme::Unix {
            return Ok(vec![Address::Unix(PathBuf::from(&self.host))]);
        }
        let found = (self.host.as_str(), self.port()).to_socket_addrs();
        let found = found.map_err(|error| format!("unable to resolve {}: {error}", self.host))?;
        let mut addresses: Vec<SocketAddr> = found.collect();
        addresses.dedup();
        Ok(addresses.into_iter().map(Address::Ip).collect())
    }

    /// The first address that accepts a connection.
    pub fn reachable(&self) -> Result<Address, String> {
        let mut failed = format!("unable to resolve {}: no address", self.host);
        for address in self.addresses()? {
            let tried = match &address {
                _ if self.scheme == TargetScheme::Udp => Ok(()),
                Address::Ip(ip) | Address::Udp(ip) => {
                    std::net::TcpStream::connect_timeout(ip, TRIAL_MAX).map(|_| ())
                }
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

/// Whether the error implies that a connection was established: only a server can reset it.
fn has_stood(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::ConnectionReset
}

/// The URL without its password, for output and files.
fn without_password(url: &str) -> String {
    let parts = || {
        let (scheme, rest) = url.split_once("://")?;
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (user, host) = rest[..end].rsplit_once('@')?;
        let (user, _) = user.split_once(':')?;
        Some(format!("{scheme}://{user}:***@{host}{}", &rest[end..]))
    };
    parts().unwrap_or_else(|| url.to_owned())
}

/// The decoded user and password of a URL (RFC 3986, section 3.2.1; RFC 7617, section 2).
fn credentials(text: &str) -> Result<Vec<u8>, &'static str> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let (user, password) = text.split_once(':').unwrap_or((text, ""));
    let user = decoded(user).ok_or("invalid escape in the user")?;
    let password = decoded(password).ok_or("invalid escape in the password")?;
    if user.contains(&b':') {
        return Err("colon in the user");
    }
    if user.iter().chain(&password).any(u8::is_ascii_control) {
        return Err("control character in the user or password");
    }
    Ok([&user[..], b":", &password].concat())
}

fn decoded(text: &str) -> Option<Vec<u8>> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::new();
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'%' => {
                let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
                (digit(bytes.next())? * 16 + digit(bytes.next())?) as u8
            }
            plain => plain,
        });
    }
    Some(decoded)
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

    fn parts(url: &str) -> (TargetScheme, String, String, String) {
        let target = LoadTarget::parse(url).expect(url);
        (target.scheme, target.host.clone(), target.authority(), target.path)
    }

    #[test]
    fn urls() {
        let table = [
            ("http://h", TargetScheme::Http, "h", "h", "/"),
            (
                "http://127.0.0.1:8080/a/b?c=d#e",
                TargetScheme::Http,
                "127.0.0.1",
                "127.0.0.1:8080",
                "/a/b?c=d",
            ),
            ("http://h?q", TargetScheme::Http, "h", "h", "/?q"),
            ("http://u:p@h/", TargetScheme::Http, "h", "h", "/"),
            ("http://[::1]:81/", TargetScheme::Http, "::1", "[::1]:81", "/"),
            ("http://unix:/tmp/s.sock:/x", TargetScheme::Unix, "/tmp/s.sock", "localhost", "/x"),
            ("http://unix:/tmp/s.sock:x", TargetScheme::Unix, "/tmp/s.sock", "localhost", "/x"),
            ("http://unix:/tmp/s.sock", TargetScheme::Unix, "/tmp/s.sock", "localhost", "/"),
            ("https://h/a", TargetScheme::Https, "h", "h", "/a"),
            ("https://h:8443", TargetScheme::Https, "h", "h:8443", "/"),
            ("udp://h:53", TargetScheme::Udp, "h", "h:53", "/"),
        ];
        for (url, scheme, host, authority, path) in table {
            let expected = (scheme, host.into(), authority.into(), path.into());
            assert_eq!(parts(url), expected, "{url}");
        }
    }

    #[test]
    fn users_and_passwords() {
        for (url, credentials, shown) in [
            ("http://h/", "", "http://h/"),
            ("http://@h/", "", "http://@h/"),
            ("http://me@h/", "me:", "http://me@h/"),
            ("http://me:p@h/", "me:p", "http://me:***@h/"),
            ("http://me:p:q@h:81", "me:p:q", "http://me:***@h:81"),
            ("http://:p@h?a:b@c", ":p", "http://:***@h?a:b@c"),
            ("http://m%65:a%40b%3a%C3%A9@h/", "me:a@b:\u{e9}", "http://m%65:***@h/"),
            ("http://h/a:b@c", "", "http://h/a:b@c"),
        ] {
            let target = LoadTarget::parse(url).expect(url);
            assert_eq!(target.credentials, credentials.as_bytes(), "{url}");
            assert_eq!((target.url.as_str(), target.host.as_str()), (shown, "h"), "{url}");
        }
        for (url, what) in [
            ("http://a%3ab:c@h/", "colon in the user"),
            ("http://a:%0d%0aX@h/", "control character in the user or password"),
            ("http://a%:c@h/", "invalid escape in the user"),
            ("http://a:%4@h/", "invalid escape in the password"),
            ("tcp://a:secret@h:1", "only http:// and https:// support a user"),
        ] {
            let error = LoadTarget::parse(url).expect_err(url);
            assert!(error.ends_with(what) && !error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn capitals_in_a_scheme() {
        let target = LoadTarget::parse("HTTP://h/A").expect("a URL");
        assert_eq!((target.scheme, target.path.as_str()), (TargetScheme::Http, "/A"));
        assert_eq!(parts("Http://unix:/s:/").0, TargetScheme::Unix);
        assert_eq!(parts("HTTPS://h/").0, TargetScheme::Https);
    }

    #[test]
    fn invalid_urls_are_refused() {
        for url in [
            "h",
            "http://",
            "ftp://h/",
            "https://:443/",
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
            assert!(LoadTarget::parse(url).is_err(), "{url}");
        }
    }

    #[test]
    fn urls_of_one_server_are_recognised() {
        let target = |url| LoadTarget::parse(url).expect("a URL");
        assert!(target("http://h/a").is_with(&target("http://h:80/b")));
        assert!(!target("http://h/a").is_with(&target("http://h:81/a")));
        assert!(target("https://h/a").is_with(&target("https://h:443/b")));
        assert!(!target("https://h:80/").is_with(&target("http://h/")));
    }

    #[test]
    fn a_server_that_resets_is_reachable() {
        assert!(has_stood(&io::ErrorKind::ConnectionReset.into()));
        assert!(!has_stood(&io::ErrorKind::ConnectionRefused.into()));
    }

    #[test]
    fn connection_refused() {
        let error = LoadTarget::parse("http://127.0.0.1:1/").expect("a URL").reachable();
        let error = error.expect_err("nobody listens there");
        assert!(error.starts_with("unable to connect to 127.0.0.1:1: "), "{error}");
    }
}
