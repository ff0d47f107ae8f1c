//! Addresses and networks in nginx's notation.
//!
//! Made for lists of networks in which a client's address is looked up. Deliberately absent: names
//! and ports, which only listening and connecting need.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A network: an address whose bits past the mask are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cidr {
    /// IPv4: the address and the number of its significant bits.
    V4(u32, u8),
    /// IPv6, likewise.
    V6(u128, u8),
}

impl Cidr {
    /// Reads `192.0.2.0/24`, `192.0.2.1`, `2001:db8::/32`. The flag tells whether bits past the
    /// mask were set; nginx then warns: `low address bits of ... are meaningless`.
    pub fn parse(text: &[u8]) -> Option<(Self, bool)> {
        let slash = text.iter().position(|&byte| byte == b'/');
        let bits = match slash {
            Some(at) => Some(u8::try_from(crate::units::number(&text[at + 1..])?).ok()?),
            None => None,
        };
        Some(match address(&text[..slash.unwrap_or(text.len())])? {
            IpAddr::V4(ip) => {
                let (ip, bits) = (ip.to_bits(), bits.unwrap_or(32));
                let low = low_v4(bits)?;
                (Self::V4(ip & !low, bits), ip & low != 0)
            }
            IpAddr::V6(ip) => {
                let (ip, bits) = (ip.to_bits(), bits.unwrap_or(128));
                let low = low_v6(bits)?;
                (Self::V6(ip & !low, bits), ip & low != 0)
            }
        })
    }

    /// The network with only this address.
    pub fn of(ip: IpAddr) -> Self {
        match ip {
            IpAddr::V4(ip) => Self::V4(ip.to_bits(), 32),
            IpAddr::V6(ip) => Self::V6(ip.to_bits(), 128),
        }
    }

    /// Whether the network contains the address. An IPv4-mapped IPv6 address counts as IPv4.
    pub fn contains(self, ip: IpAddr) -> bool {
        match (self, ip.to_canonical()) {
            (Self::V4(network, bits), IpAddr::V4(ip)) => {
                low_v4(bits).is_some_and(|low| ip.to_bits() & !low == network)
            }
            (Self::V6(network, bits), IpAddr::V6(ip)) => {
                low_v6(bits).is_some_and(|low| ip.to_bits() & !low == network)
            }
            _ => false,
        }
    }
}

/// The bits past a mask; `None` for a mask longer than the address.
fn low_v4(bits: u8) -> Option<u32> {
    (bits <= 32).then(|| u32::MAX.checked_shr(bits.into()).unwrap_or(0))
}

fn low_v6(bits: u8) -> Option<u128> {
    (bits <= 128).then(|| u128::MAX.checked_shr(bits.into()).unwrap_or(0))
}

/// Reads an address without a port.
pub fn address(text: &[u8]) -> Option<IpAddr> {
    if let Some(ip) = address_v4(text) {
        return Some(ip.into());
    }
    let ip: Ipv6Addr = std::str::from_utf8(text).ok()?.parse().ok()?;
    Some(ip.into())
}

/// Reads an address in the form of X-Forwarded-For: alone or with a port, IPv6 then in brackets.
pub fn address_port(text: &[u8]) -> Option<(IpAddr, u16)> {
    if let Some(ip) = address(text) {
        return Some((ip, 0));
    }
    let (ip, rest) = match text.strip_prefix(b"[") {
        Some(inside) => {
            let close = inside.iter().position(|&byte| byte == b']')?;
            (&inside[..close], &inside[close + 1..])
        }
        None => text.split_at(text.iter().position(|&byte| byte == b':')?),
    };
    let port = match rest.strip_prefix(b":") {
        Some(digits) => u16::try_from(crate::units::number(digits)?).ok().filter(|p| *p > 0)?,
        None if rest.is_empty() => 0,
        None => return None,
    };
    Some((address(ip)?, port))
}

/// Reads four numbers separated by dots. Leading zeros are ignored, a missing number is 0, and the
/// highest address of all is refused: nginx uses it as its error value.
pub fn address_v4(text: &[u8]) -> Option<Ipv4Addr> {
    let mut octets = [0_u8; 4];
    let mut at = 0;
    for &byte in text {
        match byte {
            b'0'..=b'9' => {
                octets[at] = octets[at].checked_mul(10)?.checked_add(byte - b'0')?;
            }
            b'.' if at < 3 => at += 1,
            _ => return None,
        }
    }
    (at == 3 && octets != [u8::MAX; 4]).then(|| octets.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks() {
        let table: [(&str, Option<(Cidr, bool)>); 14] = [
            ("10.0.0.0/8", Some((Cidr::V4(10 << 24, 8), false))),
            ("10.1.0.0/8", Some((Cidr::V4(10 << 24, 8), true))),
            ("10.0.0.1", Some((Cidr::V4(10 << 24 | 1, 32), false))),
            ("0.0.0.0/0", Some((Cidr::V4(0, 0), false))),
            ("::/0", Some((Cidr::V6(0, 0), false))),
            ("::1", Some((Cidr::V6(1, 128), false))),
            ("::1/127", Some((Cidr::V6(0, 127), true))),
            ("2001:0db8::/32", Some((Cidr::V6(0x2001_0db8 << 96, 32), false))),
            ("10.0.0.0/33", None),
            ("::/129", None),
            ("10.0.0.0/", None),
            ("10.0.0", None),
            ("255.255.255.255", None),
            ("localhost", None),
        ];
        for (text, expected) in table {
            assert_eq!(Cidr::parse(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn addresses_in_networks() {
        let within = |network: &str, ip: &str| {
            let (network, _) = Cidr::parse(network.as_bytes()).expect(network);
            network.contains(ip.parse().expect(ip))
        };
        assert!(within("10.0.0.0/8", "10.255.0.1") && !within("10.0.0.0/8", "11.0.0.0"));
        assert!(within("10.0.0.0/8", "::ffff:10.0.0.1") && !within("10.0.0.0/8", "::1"));
        assert!(within("0.0.0.0/0", "192.0.2.1") && !within("0.0.0.0/0", "2001:db8::"));
        assert!(within("::/0", "2001:db8::") && !within("::/0", "192.0.2.1"));
        assert!(
            within("2001:db8::/33", "2001:db8:7fff::") && !within("2001:db8::/33", "2001:db9::")
        );
    }

    #[test]
    fn addresses_nginx_reads() {
        let ip = |text: &str| address(text.as_bytes()).map(|ip| ip.to_string());
        assert_eq!(ip("010.000.0.1").as_deref(), Some("10.0.0.1"));
        assert_eq!(ip("10..0.").as_deref(), Some("10.0.0.0"));
        assert_eq!(ip("::ffff:192.0.2.1").as_deref(), Some("::ffff:192.0.2.1"));
        for wrong in ["", "10.0.0.256", "10.0.0.0.0", "10.0.0.0 ", "1:2", "256"] {
            assert_eq!(ip(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn addresses_with_ports() {
        let read = |text: &str| address_port(text.as_bytes()).map(|(ip, p)| format!("{ip} {p}"));
        assert_eq!(read("10.0.0.1").as_deref(), Some("10.0.0.1 0"));
        assert_eq!(read("10.0.0.1:80").as_deref(), Some("10.0.0.1 80"));
        assert_eq!(read("::1").as_deref(), Some("::1 0"));
        assert_eq!(read("[::1]").as_deref(), Some("::1 0"));
        assert_eq!(read("[::1]:80").as_deref(), Some("::1 80"));
        for wrong in ["", "10.0.0.1:", "10.0.0.1:0", "10.0.0.1:65536", "[::1", "[::1]80", "a:80"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
