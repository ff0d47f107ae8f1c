//! `resolver`: the name servers that names in the configuration are looked up at.
//!
//! Who looks names up at run time asks the location for these settings; nobody does yet.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::ops::RangeInclusive;
use std::sync::Arc;

use conf::{Directive, Load, Milliseconds, Result, Value, Word, units};

use crate::site::Place;

conf::directives! {
    in MAIN | SERVER | LOCATION;
    /// Sets the name servers that names are looked up at.
    resolver: Option<Resolver>,
    /// Sets the time for looking up a name.
    resolver_timeout: Milliseconds = "30s",
}

const DNS_PORT: u16 = 53;

/// Name servers, and how their answers are used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolver {
    /// The name servers, asked in turn.
    pub servers: Vec<SocketAddr>,
    /// How long an answer is used whatever its TTL says.
    pub valid_ms: Option<u64>,
    /// Whether IPv4 addresses are asked for.
    pub ipv4: bool,
    /// Whether IPv6 addresses are asked for.
    pub ipv6: bool,
}

impl Value for Resolver {
    const ARGS: RangeInclusive<usize> = 1..=usize::MAX;
    fn parse(from: &Directive, _: &mut Load<'_>) -> Result<Self> {
        let mut resolver = Self { servers: Vec::new(), valid_ms: None, ipv4: true, ipv6: true };
        for word in &from.args {
            resolver.parameter(word, from)?;
        }
        if resolver.servers.is_empty() {
            return Err(from.error("no name servers defined"));
        }
        if !resolver.ipv4 && !resolver.ipv6 {
            return Err(from.error("\"ipv4\" and \"ipv6\" cannot both be \"off\""));
        }
        Ok(resolver)
    }
}

impl Resolver {
    fn parameter(&mut self, word: &Word, from: &Directive) -> Result<()> {
        let invalid = || from.error_at(word, format!("invalid parameter: {word}"));
        let flag = |text: &[u8]| match text {
            b"on" => Ok(true),
            b"off" => Ok(false),
            _ => Err(invalid()),
        };
        if let Some(time) = word.text.strip_prefix(b"valid=") {
            self.valid_ms = Some(units::seconds(time).ok_or_else(invalid)?.saturating_mul(1000));
        } else if let Some(text) = word.text.strip_prefix(b"ipv4=") {
            self.ipv4 = flag(text)?;
        } else if let Some(text) = word.text.strip_prefix(b"ipv6=") {
            self.ipv6 = flag(text)?;
        } else {
            let found = addresses(&word.to_string());
            if found.is_empty() {
                return Err(from.error_at(word, format!("host not found in resolver \"{word}\"")));
            }
            self.servers.extend(found);
        }
        Ok(())
    }
}

/// `address`, `address:port`, `[v6]`, `[v6]:port`, or a host name.
fn addresses(text: &str) -> Vec<SocketAddr> {
    let bare = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')).unwrap_or(text);
    if let Ok(ip) = bare.parse::<IpAddr>() {
        return vec![SocketAddr::new(ip, DNS_PORT)];
    }
    if let Ok(address) = text.parse() {
        return vec![address];
    }
    let host = if text.contains(':') { text.to_owned() } else { format!("{text}:{DNS_PORT}") };
    host.to_socket_addrs().map(Iterator::collect).unwrap_or_default()
}

/// Nobody looks names up yet.
pub fn install(_: &Arc<Conf>, _: &mut Place<'_, '_>) -> Result<()> {
    Ok(())
}
