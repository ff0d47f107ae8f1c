//! `listen`: the address of a socket, and how it is opened.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;

use conf::{Directive, Load, Result, Value};

use super::ServerNames;

/// A listening socket and the servers behind it.
pub struct Listen {
    /// Where it listens.
    pub address: SocketAddr,
    /// `backlog=`
    pub backlog: i32,
    /// Its servers.
    pub names: ServerNames,
}

/// One `listen` line.
#[derive(Clone)]
pub struct ListenLine {
    /// Where.
    pub address: SocketAddr,
    /// Whether its server is the default of the socket.
    pub default_server: bool,
    /// Length of the queue of connections not yet accepted.
    pub backlog: Option<i32>,
}

impl Value for ListenLine {
    const ARGS: RangeInclusive<usize> = 1..=usize::MAX;
    fn parse(from: &Directive, _: &mut Load<'_>) -> Result<Self> {
        let text = String::from_utf8_lossy(&from.arg(0).text).into_owned();
        let address = address(&text).ok_or_else(|| {
            from.error(format!("invalid port in \"{text}\" of the \"listen\" directive"))
        })?;
        let mut line = Self { address, default_server: false, backlog: None };
        for word in &from.args[1..] {
            match &*word.text {
                b"default_server" | b"default" => line.default_server = true,
                text if text.starts_with(b"backlog=") => {
                    line.backlog =
                        std::str::from_utf8(&text[8..]).ok().and_then(|n| n.parse().ok());
                }
                _ => return Err(from.error_at(word, format!("invalid parameter \"{word}\""))),
            }
        }
        Ok(line)
    }
}

fn address(text: &str) -> Option<SocketAddr> {
    let any = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    if let Ok(port) = text.parse::<u16>() {
        return Some(SocketAddr::new(any, port));
    }
    if let Some(port) = text.strip_prefix("*:") {
        return Some(SocketAddr::new(any, port.parse().ok()?));
    }
    text.parse().ok().or_else(|| Some(SocketAddr::new(text.parse().ok()?, 80)))
}
