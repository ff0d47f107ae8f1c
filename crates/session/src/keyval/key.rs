//! What makes two keys the same, and which keys match a text.

use std::borrow::Cow;
use std::net::{Ipv4Addr, Ipv6Addr};

use conf::Cidr;

use super::refusal::KeyvalRefusal;

/// The longest key, in bytes.
pub const KEY_BYTES_MAX: usize = 1024;
/// The longest value, in bytes.
pub const VALUE_BYTES_MAX: usize = 64 * 1024;

/// How keys match texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyvalType {
    /// A key matches the same text.
    String,
    /// A key is an address or network. It matches the addresses and networks within it; the
    /// smallest network counts.
    Ip,
    /// A key matches texts that begin with it; the longest one counts.
    Prefix,
}

/// A network as bytes: the number of its bits, then its address. Equal networks have equal bytes.
#[derive(Clone, Copy)]
pub(super) struct NetworkId {
    bytes: [u8; 17],
    length: usize,
}

impl KeyvalType {
    pub(super) fn of(word: &[u8]) -> Option<Self> {
        match word {
            b"string" => Some(Self::String),
            b"ip" => Some(Self::Ip),
            b"prefix" => Some(Self::Prefix),
            _ => None,
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Ip => "ip",
            Self::Prefix => "prefix",
        }
    }

    /// Checks a key.
    pub(super) fn check(self, key: &[u8]) -> Result<(), KeyvalRefusal> {
        if key.is_empty() {
            return Err(KeyvalRefusal::format("key required: it is empty"));
        }
        if key.len() > KEY_BYTES_MAX {
            let text = format!("the key is longer than {KEY_BYTES_MAX} bytes");
            return Err(KeyvalRefusal::format(text));
        }
        if self == Self::Ip && network(key).is_none() {
            let key = String::from_utf8_lossy(key);
            let text = format!("invalid key format: \"{key}\" is neither an address nor a network");
            return Err(KeyvalRefusal::format(text));
        }
        Ok(())
    }

    /// What makes a key the same as another, if it is not its text.
    pub(super) fn id(self, key: &[u8]) -> Option<NetworkId> {
        match self {
            Self::Ip => network(key).map(NetworkId::of),
            Self::String | Self::Prefix => None,
        }
    }

    /// The text that all machines use for a key that is the same.
    pub(super) fn shared_name(self, key: &[u8]) -> Cow<'_, [u8]> {
        let text = match (self, network(key)) {
            (Self::String | Self::Prefix, _) | (_, None) => return key.into(),
            (Self::Ip, Some(Cidr::V4(ip, 32))) => Ipv4Addr::from_bits(ip).to_string(),
            (Self::Ip, Some(Cidr::V4(ip, bits))) => format!("{}/{bits}", Ipv4Addr::from_bits(ip)),
            (Self::Ip, Some(Cidr::V6(ip, 128))) => Ipv6Addr::from_bits(ip).to_string(),
            (Self::Ip, Some(Cidr::V6(ip, bits))) => format!("{}/{bits}", Ipv6Addr::from_bits(ip)),
        };
        text.into_bytes().into()
    }

    /// The length that a lookup has to try for a key with that id; `None` if it tries none.
    pub(super) fn length(self, id: &[u8]) -> Option<u16> {
        match (self, id) {
            (Self::Ip, [bits, address @ ..]) => Some(family(address.len() > 4) + u16::from(*bits)),
            (Self::Prefix, key) => u16::try_from(key.len()).ok(),
            (Self::String, _) | (Self::Ip, []) => None,
        }
    }
}

/// Reads an address or a network. An IPv4-mapped IPv6 address counts as IPv4.
pub(super) fn network(text: &[u8]) -> Option<Cidr> {
    // In nginx, this address is the value for none.
    if text == b"255.255.255.255" {
        return Some(Cidr::V4(u32::MAX, 32));
    }
    let (network, _) = Cidr::parse(text)?;
    Some(match network {
        Cidr::V6(ip, bits @ 96..) if ip >> 32 == 0xffff => Cidr::V4(ip as u32, bits - 96),
        other => other,
    })
}

/// The networks that contain a network and whose lengths are among `lengths`, the smallest first.
pub(super) fn networks_around(
    network: Cidr,
    lengths: impl DoubleEndedIterator<Item = u16>,
) -> impl Iterator<Item = NetworkId> {
    let (is_v6, own_bits) = match network {
        Cidr::V4(_, bits) => (false, bits),
        Cidr::V6(_, bits) => (true, bits),
    };
    let start = family(is_v6);
    let bits =
        lengths.rev().filter_map(move |length| u8::try_from(length.checked_sub(start)?).ok());
    bits.filter(move |bits| *bits <= own_bits)
        .map(move |bits| NetworkId::of(widened(network, bits)))
}

/// Lengths of IPv6 networks are beyond all those of IPv4.
const fn family(is_v6: bool) -> u16 {
    if is_v6 { 256 } else { 0 }
}

fn widened(network: Cidr, bits: u8) -> Cidr {
    match network {
        Cidr::V4(ip, _) => {
            Cidr::V4(ip & u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0), bits)
        }
        Cidr::V6(ip, _) => {
            Cidr::V6(ip & u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0), bits)
        }
    }
}

impl NetworkId {
    fn of(network: Cidr) -> Self {
        let mut bytes = [0; 17];
        let length = match network {
            Cidr::V4(ip, bits) => {
                bytes[0] = bits;
                bytes[1..5].copy_from_slice(&ip.to_be_bytes());
                5
            }
            Cidr::V6(ip, bits) => {
                bytes[0] = bits;
                bytes[1..].copy_from_slice(&ip.to_be_bytes());
                17
            }
        };
        Self { bytes, length }
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}
