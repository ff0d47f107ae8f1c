//! The parameters of `listen` in both subsystems: addresses, and options of the socket.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::ops::RangeInclusive;
use std::path::PathBuf;

use conf::{Directive, Result, Word, units};
use net::{Address, KeepaliveProbes, SocketOptions};

/// Longest path of a Unix socket.
const UNIX_PATH_MAX: usize = 107;

/// The name of a `listen` parameter, and its value after `=`.
pub fn parameter(word: &Word) -> (&[u8], Option<&[u8]>) {
    match memchr::memchr(b'=', &word.text) {
        Some(at) => (&word.text[..at], Some(&word.text[at + 1..])),
        None => (&word.text[..], None),
    }
}

/// The parameters with options of the socket.
pub const SOCKET_PARAMETERS: [&str; 10] = [
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

/// The parameter with the port that clients use for the socket.
pub const SERVER_PORT: &str = "server_port";

/// Reads `server_port=NUMBER`; `None` for another parameter.
pub fn server_port(word: &Word, from: &Directive) -> Result<Option<u16>> {
    match parameter(word) {
        (b"server_port", Some(text)) => {
            let port = units::number(text).filter(|port| *port > 0);
            let port = port.and_then(|port| u16::try_from(port).ok());
            port.map(Some).ok_or_else(|| from.error_at(word, format!("invalid \"{word}\"")))
        }
        _ => Ok(None),
    }
}

/// Merges the port of one line into that of earlier lines for the same address; an error if they
/// differ.
pub fn agree_on_server_port(
    known: &mut Option<u16>,
    line: Option<u16>,
    address: &Address,
    from: &Directive,
) -> Result<()> {
    match (*known, line) {
        (Some(known), Some(line)) if known != line => {
            Err(from.error(format!("another \"server_port\" for {address} was given before")))
        }
        _ => {
            *known = known.or(line);
            Ok(())
        }
    }
}

/// Reads a parameter with an option of the socket; false for another parameter.
pub fn set_option(
    options: &mut SocketOptions,
    word: &Word,
    v6: bool,
    from: &Directive,
) -> Result<bool> {
    match parameter(word) {
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
        _ => return Ok(false),
    }
    Ok(true)
}

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

/// Parses `on`, `off`, or `[idle]:[interval]:[count]`.
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

/// Parses `80`, `*:80`, `127.0.0.1`, `[::1]:80`, `host:80`, `unix:/path`, and ranges `8000-8010`.
/// `default_port` is the port of an address without one; with `None` such an address is refused.
pub fn addresses(word: &Word, default_port: Option<u16>, from: &Directive) -> Result<Vec<Address>> {
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
    let ports = match (ports, default_port) {
        (Some(ports), _) => ports_of(ports).ok_or_else(|| refuse("invalid port"))?,
        (None, Some(port)) => port..=port,
        (None, None) => return Err(refuse("no port")),
    };
    let hosts = hosts_of(host).ok_or_else(|| refuse("host not found"))?;
    let address = |port| hosts.iter().map(move |ip| Address::Ip(SocketAddr::new(*ip, port)));
    Ok(ports.flat_map(address).collect())
}

/// The host, empty if there is only a colon, and the port, if there is one.
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
