//! `listen`: the address of a socket, how it is opened, and which servers are behind it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;

use conf::lacking::Class;
use conf::{Directive, Error, Inherited, Load, Result, Value, Word, units};
use net::accept::Transport;
use net::{Address, KeepaliveProbes, SocketOptions};

use super::{Protocols, ServerNames};
use crate::wildcards::Refused;

/// Longest path of a Unix socket.
const UNIX_PATH_MAX: usize = 107;

/// A listening socket and the servers behind it.
pub struct Listen {
    /// Where it listens.
    pub address: Address,
    /// How it is opened.
    pub options: SocketOptions,
    /// What is spoken there besides HTTP/1.
    pub protocols: Protocols,
    /// What secures its connections. No directive says so yet.
    pub transport: Option<Arc<dyn Transport>>,
    /// Its servers.
    pub names: ServerNames,
}

impl Listen {
    /// Tells of names that could not be added.
    pub(crate) fn check_names(&mut self, load: &mut Load<'_>) -> Result<()> {
        let address = &self.address;
        for (name, refused) in self.names.refused() {
            let shown = String::from_utf8_lossy(&name.text);
            let error = Error::bare(match refused {
                Refused::Conflicting => {
                    format!("conflicting server name \"{shown}\" on {address}, ignored")
                }
                Refused::Invalid => {
                    format!("invalid server name or wildcard \"{shown}\" on {address}")
                }
            });
            let error = Error { mark: name.named, ..error };
            match refused {
                Refused::Conflicting => load.warn(error),
                Refused::Invalid => return Err(error),
            }
        }
        Ok(())
    }
}

/// One `listen` line.
#[derive(Clone)]
pub struct ListenLine {
    /// Where: one address, or those of a range of ports or a host name.
    pub addresses: Vec<Address>,
    /// Whether its server is the default of the socket.
    pub default_server: bool,
    /// How the socket is opened, where the line says anything about it.
    pub options: Option<SocketOptions>,
    /// What it names to be spoken there.
    pub protocols: Protocols,
    /// The line, for messages about sockets.
    pub from: Directive,
}

impl Value for ListenLine {
    const ARGS: RangeInclusive<usize> = 1..=usize::MAX;
    const INHERITED: Inherited = Inherited::Never;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let mut line = Self {
            addresses: addresses(from.arg(0), from)?,
            default_server: false,
            options: None,
            protocols: Protocols::default(),
            from: from.clone(),
        };
        for word in &from.args[1..] {
            let read = line.parameter(word, from);
            load.tolerate(read)?;
        }
        Ok(line)
    }
}

/// How a socket is opened that no line says anything about.
///
/// `deferred` is on, unlike in nginx: in HTTP the client speaks first, so there is nothing to do
/// for a connection before its first bytes, and accepting it with them saves a wake-up and the
/// whole registration of short connections. One that stays silent is accepted after a second.
/// Called `nginx`, the program does as nginx: tools made for it count silent connections.
pub fn unsaid() -> SocketOptions {
    let deferred = crate::identity::identity().name != "nginx";
    SocketOptions { deferred, ..SocketOptions::default() }
}

impl ListenLine {
    /// What a server without a `listen` line has.
    pub fn implicit(from: &Directive, privileged: bool) -> Self {
        let port = if privileged { 80 } else { 8000 };
        let address = Address::Ip(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port));
        let addresses = vec![address];
        let protocols = Protocols::default();
        Self { addresses, default_server: false, options: None, protocols, from: from.clone() }
    }

    fn parameter(&mut self, word: &Word, from: &Directive) -> Result<()> {
        let (name, value) = match memchr::memchr(b'=', &word.text) {
            Some(at) => (&word.text[..at], Some(&word.text[at + 1..])),
            None => (&word.text[..], None),
        };
        match (name, value) {
            (b"default_server" | b"default", None) => {
                self.default_server = true;
                return Ok(());
            }
            (b"proxy_protocol", None) => {
                self.protocols = self.protocols | Protocols::PROXY_PROTOCOL;
                return Ok(());
            }
            (b"ssl", None) => return Err(requires(from, "ssl", "ngx_http_ssl_module")),
            (b"http2", None) => return Err(requires(from, "http2", "ngx_http_v2_module")),
            (b"quic", None) => return Err(requires(from, "quic", "ngx_http_v3_module")),
            _ => {}
        }
        let v6 = matches!(self.addresses.first(), Some(Address::Ip(SocketAddr::V6(_))));
        let options = self.options.get_or_insert_with(unsaid);
        match (name, value) {
            (b"bind" | b"reuseport", None) => {}
            (b"deferred", None) => options.deferred = true,
            (b"deferred", Some(b"off")) => options.deferred = false,
            (b"multipath", None) => options.multipath = true,
            (b"backlog", Some(text)) => options.backlog = positive(text, "backlog", word, from)?,
            (b"fastopen", Some(text)) => {
                options.fastopen = Some(positive(text, "fastopen", word, from)?);
            }
            (b"rcvbuf", Some(text)) => options.rcvbuf = Some(buffer(text, "rcvbuf", word, from)?),
            (b"sndbuf", Some(text)) => options.sndbuf = Some(buffer(text, "sndbuf", word, from)?),
            (b"ipv6only", Some(text)) => options.ipv6only = ipv6only(text, v6, word, from)?,
            (b"so_keepalive", Some(text)) => options.so_keepalive = Some(probes(text, word, from)?),
            _ => {
                let error = from.error_at(word, format!("invalid parameter \"{word}\""));
                return Err(error.meant(name, PARAMETERS));
            }
        }
        Ok(())
    }
}

/// What may follow the address.
const PARAMETERS: [&str; 15] = [
    "default_server",
    "proxy_protocol",
    "ssl",
    "http2",
    "quic",
    "bind",
    "reuseport",
    "deferred",
    "multipath",
    "backlog",
    "fastopen",
    "rcvbuf",
    "sndbuf",
    "ipv6only",
    "so_keepalive",
];

fn ipv6only(text: &[u8], v6: bool, word: &Word, from: &Directive) -> Result<bool> {
    match text {
        b"on" | b"off" if !v6 => {
            let address = from.arg(0);
            let message = format!("ipv6only is not supported on addr \"{address}\", ignored");
            Err(from.error_at(word, message))
        }
        b"on" => Ok(true),
        b"off" => Ok(false),
        other => {
            let text = String::from_utf8_lossy(other);
            Err(from.error_at(word, format!("invalid ipv6only flags \"{text}\"")))
        }
    }
}

fn requires(from: &Directive, parameter: &str, module: &str) -> Error {
    from.error(format!("the \"{parameter}\" parameter requires {module}"))
        .help("this version of weir does not support TLS, HTTP/2 or HTTP/3")
        .lacks(Class::Block)
}

fn positive(text: &[u8], name: &str, word: &Word, from: &Directive) -> Result<i32> {
    units::number(text)
        .filter(|number| *number > 0)
        .and_then(|number| i32::try_from(number).ok())
        .ok_or_else(|| from.error_at(word, format!("invalid {name} \"{word}\"")))
}

fn buffer(text: &[u8], name: &str, word: &Word, from: &Directive) -> Result<usize> {
    units::size(text)
        .map(|size| size as usize)
        .ok_or_else(|| from.error_at(word, format!("invalid {name} \"{word}\"")))
}

/// `on`, `off`, or `[idle]:[interval]:[count]`.
fn probes(text: &[u8], word: &Word, from: &Directive) -> Result<KeepaliveProbes> {
    let plain = |on| KeepaliveProbes { on, idle_s: None, interval_s: None, count: None };
    let invalid = || from.error_at(word, format!("invalid so_keepalive value: \"{word}\""));
    match text {
        b"on" => return Ok(plain(true)),
        b"off" => return Ok(plain(false)),
        _ => {}
    }
    let mut parts = text.splitn(3, |b| *b == b':');
    let mut next = |seconds: bool| match parts.next() {
        None | Some(b"") => Ok(None),
        Some(part) if seconds => units::seconds(part).map(Some).ok_or_else(invalid),
        Some(part) => units::number(part).map(Some).ok_or_else(invalid),
    };
    let small = |number: Option<u64>| number.and_then(|number| u32::try_from(number).ok());
    let (idle, interval, count) = (small(next(true)?), small(next(true)?), small(next(false)?));
    if idle.is_none() && interval.is_none() && count.is_none() {
        return Err(invalid());
    }
    Ok(KeepaliveProbes { on: true, idle_s: idle, interval_s: interval, count })
}

/// `80`, `*:80`, `127.0.0.1`, `[::1]:80`, `host:80`, `unix:/path`, and ranges `8000-8010`.
fn addresses(word: &Word, from: &Directive) -> Result<Vec<Address>> {
    let refuse =
        |why: &str| from.error_at(word, format!("{why} in \"{word}\" of the \"listen\" directive"));
    if let Some(path) = word.text.strip_prefix(b"unix:") {
        return match path.len() {
            0 => Err(refuse("no path in the unix domain socket")),
            length if length > UNIX_PATH_MAX => {
                Err(refuse("too long path in the unix domain socket"))
            }
            _ => Ok(vec![Address::Unix(PathBuf::from(conf::bytes_path(path)))]),
        };
    }
    let text = std::str::from_utf8(&word.text).map_err(|_| refuse("invalid host"))?;
    let (host, ports) = split(text).ok_or_else(|| refuse("invalid host"))?;
    if host.is_empty() {
        return Err(refuse("no host").guess(ports));
    }
    let ports = ports.map_or(Some(80..=80), ports_of).ok_or_else(|| refuse("invalid port"))?;
    let hosts = hosts_of(host).ok_or_else(|| refuse("host not found"))?;
    let address = |port| hosts.iter().map(move |ip| Address::Ip(SocketAddr::new(*ip, port)));
    Ok(ports.flat_map(address).collect())
}

/// The host, empty if there is only a colon, and the port, if any is named.
fn split(text: &str) -> Option<(&str, Option<&str>)> {
    if let Some(rest) = text.strip_prefix('[') {
        let (host, rest) = rest.split_once(']')?;
        return match rest.strip_prefix(':') {
            Some(port) => Some((host, Some(port))),
            None => rest.is_empty().then_some((host, None)),
        };
    }
    match text.split_once(':') {
        Some((host, port)) => Some((host, Some(port))),
        None if text.starts_with(|c: char| c.is_ascii_digit()) && !text.contains('.') => {
            Some(("*", Some(text)))
        }
        None => Some((text, None)),
    }
}

fn ports_of(text: &str) -> Option<RangeInclusive<u16>> {
    let port = |text: &str| text.parse::<u16>().ok().filter(|port| *port > 0);
    match text.split_once('-') {
        None => port(text).map(|port| port..=port),
        Some((first, last)) => {
            let (first, last) = (port(first)?, port(last)?);
            (first <= last).then_some(first..=last)
        }
    }
}

fn hosts_of(host: &str) -> Option<Vec<IpAddr>> {
    match host {
        "*" => Some(vec![Ipv4Addr::UNSPECIFIED.into()]),
        "" => None,
        "::" => Some(vec![Ipv6Addr::UNSPECIFIED.into()]),
        _ => {
            let found: Vec<IpAddr> = (host, 0).to_socket_addrs().ok()?.map(|a| a.ip()).collect();
            let mut once: Vec<IpAddr> = Vec::new();
            for ip in found {
                if !once.contains(&ip) {
                    once.push(ip);
                }
            }
            (!once.is_empty()).then_some(once)
        }
    }
}
