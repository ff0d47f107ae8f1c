//! The origin of a request, according to the proxies it passed.
//!
//! A field such as X-Forwarded-For is trusted as far as it was written by trusted proxies. It is
//! read from its end, because each proxy appends the address of its client.

use std::net::IpAddr;

use conf::Cidr;

/// Trusted proxies.
#[derive(Clone, Default)]
pub struct Proxies {
    /// Their addresses.
    pub networks: Vec<Cidr>,
    /// Whether clients of Unix sockets are trusted.
    pub unix: bool,
}

impl Proxies {
    /// Whether the address, `None` on Unix sockets, is trusted.
    fn has(&self, from: Option<IpAddr>) -> bool {
        match from {
            Some(ip) => self.networks.iter().any(|network| network.contains(ip)),
            None => self.unix,
        }
    }
}

/// The client address that a trusted proxy forwards, with its port (0 if the field has none). With
/// `recursive`, the lookup continues while the forwarded address is a trusted proxy itself. `None`
/// if `from` is not trusted, or its field has no address. `lines` are the values of the field, in
/// order.
pub fn forwarded<'l>(
    from: Option<IpAddr>,
    lines: impl DoubleEndedIterator<Item = &'l [u8]>,
    proxies: &Proxies,
    recursive: bool,
) -> Option<(IpAddr, u16)> {
    let mut found = None;
    for entry in lines.rev().flat_map(entries_from_the_end) {
        let asked_by = found.map_or(from, |(ip, _)| Some(ip));
        if !proxies.has(asked_by) || found.is_some() && !recursive {
            break;
        }
        match conf::address_port(entry) {
            Some(address) => found = Some(address),
            None => break,
        }
    }
    found
}

/// The entries between spaces and commas. A line without any is one empty entry.
fn entries_from_the_end(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let entries = line.rsplit(|byte| matches!(byte, b' ' | b','));
    let mut entries = entries.filter(|entry| !entry.is_empty());
    let last = entries.next().unwrap_or_default();
    std::iter::once(last).chain(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(lines: &[&str], recursive: bool) -> Option<String> {
        let proxies = [b"127.0.0.1".as_slice(), b"10.0.0.0/8", b"::1"];
        let networks = proxies.map(|network| Cidr::parse(network).expect("valid").0).to_vec();
        let proxies = Proxies { networks, unix: false };
        let from = "127.0.0.1".parse().ok();
        let lines = lines.iter().map(|line| line.as_bytes());
        let (ip, port) = forwarded(from, lines, &proxies, recursive)?;
        Some(format!("{ip} {port}"))
    }

    #[test]
    fn without_recursion_the_last_entry_counts() {
        assert_eq!(ask(&["192.0.2.1"], false).as_deref(), Some("192.0.2.1 0"));
        assert_eq!(ask(&["192.0.2.1:80"], false).as_deref(), Some("192.0.2.1 80"));
        assert_eq!(ask(&["192.0.2.1, 10.0.0.1"], false).as_deref(), Some("10.0.0.1 0"));
        assert_eq!(ask(&["192.0.2.1", "192.0.2.2 "], false).as_deref(), Some("192.0.2.2 0"));
        assert_eq!(ask(&["192.0.2.1, unknown"], false), None);
        assert_eq!(ask(&[], false), None);
    }

    #[test]
    fn recursive_lookup_stops_at_the_first_untrusted_address() {
        let cases = [
            (&["192.0.2.1, 192.0.2.2, 10.0.0.1"][..], Some("192.0.2.2 0")),
            (&["192.0.2.1", "10.0.0.2,10.0.0.1"], Some("192.0.2.1 0")),
            (&["192.0.2.1", "[::1]:8080"], Some("192.0.2.1 0")),
            (&["10.0.0.2, 10.0.0.1"], Some("10.0.0.2 0")),
            (&["192.0.2.1, junk, 10.0.0.1"], Some("10.0.0.1 0")),
            (&["192.0.2.1", "", "10.0.0.1"], Some("10.0.0.1 0")),
            (&["junk"], None),
        ];
        for (lines, expected) in cases {
            assert_eq!(ask(lines, true).as_deref(), expected, "{lines:?}");
        }
    }

    #[test]
    fn an_untrusted_client_is_not_believed() {
        let from = "192.0.2.9".parse().ok();
        let networks = vec![Cidr::V4(10 << 24, 8)];
        let line = || [&b"192.0.2.1"[..]].into_iter();
        let mut proxies = Proxies { networks, unix: false };
        assert_eq!(forwarded(from, line(), &proxies, true), None);
        assert_eq!(forwarded(None, line(), &proxies, true), None);
        proxies.unix = true;
        assert!(forwarded(None, line(), &proxies, true).is_some());
    }
}
