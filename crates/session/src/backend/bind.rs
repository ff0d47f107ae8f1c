//! `proxy_bind` and similar directives: the local address of connections to servers.

use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;

use conf::{Directive, Load, Result, Template, Value, Values};

/// The local address of connections.
#[derive(Clone, Debug)]
pub enum Bind {
    /// The system's choice.
    Off,
    /// The rendered address, unless it is empty.
    To {
        /// An address, perhaps with a port.
        address: Template,
        /// Whether it may be an address of another machine.
        transparent: bool,
    },
}

/// The local address of one session's connections.
pub enum LocalAddress {
    /// The system's choice.
    Any,
    /// This one.
    At(SocketAddr),
    /// The value of variables, which is not an address.
    Invalid(Vec<u8>),
}

impl Value for Bind {
    const ARGS: RangeInclusive<usize> = 1..=2;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let address = from.arg(0);
        if from.args.len() == 1 && &*address.text == b"off" {
            return Ok(Self::Off);
        }
        let transparent = match from.args.get(1) {
            None => false,
            Some(word) if &*word.text == b"transparent" => true,
            Some(word) => {
                return Err(from.error_at(word, format!("invalid parameter \"{word}\"")));
            }
        };
        let template = Template::compile(address, from, load)?;
        if template.as_fixed().is_some_and(|text| local_address(text).is_none()) {
            return Err(from.error_at(address, format!("invalid address \"{address}\"")));
        }
        Ok(Self::To { address: template, transparent })
    }
}

impl Bind {
    /// The address for this session.
    pub fn address(&self, x: &mut impl Values) -> LocalAddress {
        let Self::To { address, .. } = self else { return LocalAddress::Any };
        let mut text = Vec::new();
        address.render(x, &mut text);
        if text.is_empty() {
            return LocalAddress::Any;
        }
        match local_address(&text) {
            Some(address) => LocalAddress::At(address),
            None => LocalAddress::Invalid(text),
        }
    }

    /// Whether the address may be another machine's.
    pub fn is_transparent(&self) -> bool {
        matches!(self, Self::To { transparent: true, .. })
    }
}

/// An address with or without a port.
pub fn local_address(text: &[u8]) -> Option<SocketAddr> {
    let text = std::str::from_utf8(text).ok()?;
    let ip = |text: &str| text.parse::<IpAddr>().ok().map(|ip| SocketAddr::new(ip, 0));
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    text.parse().ok().or_else(|| ip(bare.unwrap_or(text)))
}
