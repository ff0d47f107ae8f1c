//! Finds the process that listens on an address that is in use, if this user may see it.
//!
//! The kernel's tables (proc(5)) list listening sockets, and the descriptors of processes show who
//! owns them. Only root sees the descriptors of other users' processes. The result is only for a
//! message, so read errors count as unknown.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

use crate::Address;

/// A listening process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    pub process: i32,
    pub name: String,
}

/// The process that listens on an address that cannot be bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddressHolder {
    /// A known process.
    By(Holder),
    /// A process that this user may not inspect.
    BySomebody,
    /// No process: the file of a Unix socket that was not removed.
    ByNobody,
}

/// Finds the process that listens on an address.
pub fn of(address: &Address) -> AddressHolder {
    let read = |name: &str| fs::read_to_string(format!("/proc/self/net/{name}"));
    let inodes = match address {
        Address::Ip(ip) => {
            let tables = ["tcp", "tcp6"].map(|name| read(name).unwrap_or_default());
            tables.iter().flat_map(|table| sockets(table, TCP_LISTEN, *ip)).collect::<Vec<_>>()
        }
        Address::Udp(ip) => {
            let tables = ["udp", "udp6"].map(|name| read(name).unwrap_or_default());
            tables.iter().flat_map(|table| sockets(table, UDP_BOUND, *ip)).collect()
        }
        Address::Unix(path) => unix(&read("unix").unwrap_or_default(), path),
    };
    if inodes.is_empty() {
        return if address.port().is_none() {
            AddressHolder::ByNobody
        } else {
            AddressHolder::BySomebody
        };
    }
    owner(&inodes).map_or(AddressHolder::BySomebody, AddressHolder::By)
}

/// `TCP_LISTEN`, and `TCP_CLOSE`, the state of UDP sockets without a peer.
const TCP_LISTEN: &str = "0A";
const UDP_BOUND: &str = "07";

/// The inodes of a table's sockets in a state, whose addresses conflict with `wanted`.
fn sockets(table: &str, state: &str, wanted: SocketAddr) -> Vec<u64> {
    let row = |line: &str| {
        let fields: Vec<_> = line.split_ascii_whitespace().collect();
        let address = self::address(fields.get(1)?)?;
        let holds = *fields.get(3)? == state;
        (holds && conflict(address, wanted)).then(|| fields.get(9)?.parse().ok())?
    };
    table.lines().skip(1).filter_map(row).collect()
}

fn conflict(open: SocketAddr, wanted: SocketAddr) -> bool {
    let any = |address: SocketAddr| address.ip().is_unspecified();
    let same = open.ip().to_canonical() == wanted.ip().to_canonical();
    open.port() == wanted.port() && (same || any(open) || any(wanted))
}

/// `0100007F:1F90`: words of four bytes in this machine's byte order.
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let word = |at: usize| u32::from_str_radix(ip.get(at..at + 8)?, 16).ok().map(u32::to_ne_bytes);
    let ip = match ip.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
        32 => {
            let words = [word(0)?, word(8)?, word(16)?, word(24)?];
            let mut bytes = [0; 16];
            bytes.copy_from_slice(words.as_flattened());
            IpAddr::V6(Ipv6Addr::from(bytes))
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?))
}

/// The inodes of Unix sockets with this path.
fn unix(table: &str, wanted: &Path) -> Vec<u64> {
    let row = |line: &str| {
        let path = line.find('/').map(|at| &line[at..])?;
        let inode = line.split_ascii_whitespace().nth(6)?.parse().ok()?;
        (Path::new(path) == wanted).then_some(inode)
    };
    table.lines().skip(1).filter_map(row).collect()
}

/// The first process that has one of the sockets open.
fn owner(inodes: &[u64]) -> Option<Holder> {
    let names: Vec<String> = inodes.iter().map(|inode| format!("socket:[{inode}]")).collect();
    let has = |process: i32| {
        let open = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
        open.filter_map(|file| fs::read_link(file.path()).ok())
            .any(|target| names.iter().any(|name| target == Path::new(name)))
    };
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let mut numbers: Vec<i32> =
        processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    // A master usually has a lower number than its workers.
    numbers.sort_unstable();
    let process = numbers.into_iter().find(|process| has(*process))?;
    let name = fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
    Some(Holder { process, name: name.trim_end().to_owned() })
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn this_process_is_found() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        for ip in [[127, 0, 0, 1], [0, 0, 0, 0]] {
            let AddressHolder::By(holder) = of(&Address::Ip((ip, port).into())) else {
                panic!("not found")
            };
            assert_eq!(holder.process, crate::process::id());
            assert!(!holder.name.is_empty());
        }
        let other = of(&Address::Ip(([127, 0, 0, 2], port).into()));
        assert_eq!(other, AddressHolder::BySomebody);
    }

    #[test]
    fn an_abandoned_socket_file_has_no_holder() {
        let folder = ::testing::Folder::new();
        let path = folder.join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let address = Address::Unix(path);
        assert!(matches!(of(&address), AddressHolder::By(_)));
        drop(listener);
        assert_eq!(of(&address), AddressHolder::ByNobody);
    }

    #[test]
    fn rows_of_the_kernels_tables() {
        let table = "  sl  local_address rem_address   st tx_queue and more\n\
             0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 77 1\n\
             1: 0100007F:1F90 0100007F:D431 01 00000000:00000000 00:00000000 00000000 0 0 78 1\n\
             2: nonsense\n";
        if cfg!(target_endian = "little") {
            assert_eq!(sockets(table, TCP_LISTEN, "127.0.0.1:8080".parse().unwrap()), [77]);
            assert_eq!(sockets(table, TCP_LISTEN, "0.0.0.0:8080".parse().unwrap()), [77]);
            assert!(sockets(table, TCP_LISTEN, "127.0.0.1:8081".parse().unwrap()).is_empty());
            let v6 = address("00000000000000000000000001000000:0050");
            assert_eq!(v6, Some("[::1]:80".parse().unwrap()));
        }
        let table = "Num       RefCount Protocol Flags    Type St Inode Path\n\
             0000000000000000: 00000002 00000000 00010000 0001 01 30425 /run/a b.sock\n\
             0000000000000000: 00000002 00000000 00010000 0001 01 30426 @abstract\n";
        assert_eq!(unix(table, Path::new("/run/a b.sock")), [30425]);
        assert!(unix(table, Path::new("/run/a")).is_empty());
    }
}
