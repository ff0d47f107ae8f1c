//! The addresses of the copy: loopback addresses, which are unreachable from outside, with an
//! offset added to each port.
//!
//! Addresses that share a port stay different. Every IPv4 address becomes 127.0.0.1, every IPv6
//! address ::1; if that address is taken, 127.0.0.2 and so on.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};

use net::Address;
use sandbox::{ListenAddress, ListenPort};

use crate::hints;
use crate::messages::Reported;
use crate::messages::complain;

pub(super) type NewAddresses = BTreeMap<ListenAddress, SocketAddr>;

/// Chooses an address for each, which must be free.
pub(super) fn choose(addresses: &[ListenAddress], offset: u16) -> Result<NewAddresses, Reported> {
    check_offset(addresses, offset)?;
    let has_v6 = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_ok();
    let new = spread(addresses, offset, has_v6);
    check_free(&new)?;
    Ok(new)
}

fn check_offset(addresses: &[ListenAddress], offset: u16) -> Result<(), Reported> {
    let ported = addresses.iter().filter_map(|address| Some((address, address.port()?)));
    let Some((highest, port)) = ported.max_by_key(|(_, port)| *port) else { return Ok(()) };
    if port.checked_add(offset).is_some() {
        return Ok(());
    }
    let room = u16::MAX - port;
    let sum = u32::from(port) + u32::from(offset);
    let reported = complain(format_args!("trial: there is no port {sum} for {highest}"));
    observe::tell(format_args!("      use --offset with a number of at most {room}\n"));
    Err(reported)
}

/// Assigns a different address to each. Loopback addresses keep their host, so they are assigned
/// first.
fn spread(addresses: &[ListenAddress], offset: u16, has_v6: bool) -> NewAddresses {
    let mut new = NewAddresses::new();
    let (own, others): (Vec<_>, Vec<_>) =
        addresses.iter().partition(|address| loopback(address, has_v6).is_some());
    for address in own.into_iter().chain(others) {
        let Some(port) = address.port().and_then(|port| port.checked_add(offset)) else { continue };
        let is_taken = |place: &SocketAddr| {
            new.iter().any(|(of, taken)| taken == place && is_udp(of) == is_udp(address))
        };
        let places = hosts(address, has_v6).map(|host| SocketAddr::new(host, port));
        let place = places.into_iter().find(|place| !is_taken(place));
        new.extend(place.map(|place| (address.clone(), place)));
    }
    new
}

fn is_udp(address: &ListenAddress) -> bool {
    matches!(address, ListenAddress::Udp(_))
}

fn listen_port(address: &ListenAddress) -> Option<&ListenPort> {
    match address {
        ListenAddress::Tcp(port) | ListenAddress::Udp(port) => Some(port),
        ListenAddress::Unix(_) => None,
    }
}

/// The address's host, if it is a loopback address.
fn loopback(address: &ListenAddress, has_v6: bool) -> Option<IpAddr> {
    let own = listen_port(address)?.ip()?;
    Some(own).filter(|ip| ip.is_loopback() && (ip.is_ipv4() || has_v6))
}

/// The candidate hosts for an address, the best first.
fn hosts(address: &ListenAddress, has_v6: bool) -> impl Iterator<Item = IpAddr> {
    let ip = listen_port(address).and_then(ListenPort::ip);
    let v6 = ip.filter(|ip| ip.is_ipv6() && has_v6).map(|_| IpAddr::V6(Ipv6Addr::LOCALHOST));
    let v4 = (1..=u8::MAX).map(|last| IpAddr::V4(Ipv4Addr::new(127, 0, 0, last)));
    loopback(address, has_v6).or(v6).into_iter().chain(v4)
}

/// Fails if one of the new addresses is in use.
fn check_free(new: &NewAddresses) -> Result<(), Reported> {
    let is_taken = |of: &ListenAddress, place: SocketAddr| {
        let tried = match is_udp(of) {
            true => UdpSocket::bind(place).map(drop),
            false => TcpListener::bind(place).map(drop),
        };
        tried.is_err_and(|error| error.kind() == std::io::ErrorKind::AddrInUse)
    };
    let taken: Vec<_> = new.iter().filter(|(of, place)| is_taken(of, **place)).collect();
    for (of, place) in &taken {
        complain(format_args!("trial: {place}, where the copy of {of} would listen, is in use"));
        hints::print_holder(&if is_udp(of) { Address::Udp(**place) } else { Address::Ip(**place) });
    }
    if taken.is_empty() {
        return Ok(());
    }
    observe::tell(format_args!("      use --offset NUMBER to have other ports\n"));
    Err(Reported)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(word: &str) -> ListenAddress {
        ListenAddress::Tcp(ListenPort::parse(word, 80).unwrap())
    }

    fn places(words: &[&str], has_v6: bool) -> Vec<String> {
        let addresses: Vec<_> = words
            .iter()
            .map(|word| match word.strip_prefix("udp ") {
                Some(word) => ListenAddress::Udp(ListenPort::parse(word, 80).unwrap()),
                None => tcp(word),
            })
            .collect();
        let new = spread(&addresses, 8000, has_v6);
        addresses.iter().map(|address| new[address].to_string()).collect()
    }

    #[test]
    fn each_address_becomes_a_different_loopback_address() {
        let words = ["80", "[::]:80", "443", "10.0.0.1:443", "udp 443", "127.0.0.5:443"];
        let expected =
            ["127.0.0.1:8080", "[::1]:8080", "127.0.0.1:8443", "127.0.0.2:8443", "127.0.0.1:8443"];
        assert_eq!(places(&words, true)[..5], expected);
        assert_eq!(places(&words, true)[5], "127.0.0.5:8443");
        let shared = ["*:81", "127.0.0.1:81", "[::]:81", "[::1]:81", "a.test:81"];
        let expected =
            ["127.0.0.2:8081", "127.0.0.1:8081", "127.0.0.3:8081", "[::1]:8081", "127.0.0.4:8081"];
        assert_eq!(places(&shared, true), expected);
        assert_eq!(
            places(&["80", "[::]:80", "[::1]:80"], false),
            ["127.0.0.1:8080", "127.0.0.2:8080", "127.0.0.3:8080"]
        );
    }

    #[test]
    fn a_port_beyond_the_last_is_refused() {
        assert!(check_offset(&[tcp("80"), tcp("57536")], 8000).is_err());
        assert!(check_offset(&[tcp("80"), tcp("57535")], 8000).is_ok());
        assert!(check_offset(&[ListenAddress::Unix(b"/a".to_vec())], 65535).is_ok());
    }

    #[test]
    fn an_address_in_use_is_refused() {
        let tcp_holder = TcpListener::bind("127.0.0.1:0").unwrap();
        let udp_holder = UdpSocket::bind("127.0.0.1:0").unwrap();
        let one = |address, place| NewAddresses::from([(address, place)]);
        let (at_tcp, at_udp) = (tcp_holder.local_addr().unwrap(), udp_holder.local_addr().unwrap());
        let udp = ListenAddress::Udp(ListenPort::parse("53", 53).unwrap());
        assert!(check_free(&one(tcp("80"), at_tcp)).is_err());
        assert!(check_free(&one(udp, at_udp)).is_err());
        drop(tcp_holder);
        assert!(check_free(&one(tcp("80"), at_tcp)).is_ok());
    }
}
