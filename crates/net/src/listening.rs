//! Opens listening sockets, and detects ports that are in use.
//!
//! Every worker has a socket of its own for an address (SO_REUSEPORT). With that flag, binding and
//! listening would succeed beside another server's sockets, so the first socket of an address gets
//! the flag only once it listens.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use socket2::{Domain, Protocol, SockAddr, SockRef, Socket, TcpKeepalive, Type};

use crate::{Address, KeepaliveProbes, SocketOptions};

pub use libc::{EMFILE, ENFILE};

/// A failed step, in the words of nginx's log up to the system's reason.
#[derive(Debug)]
pub struct ListenError {
    /// `bind() to 127.0.0.1:80 failed`
    pub what: String,
    pub error: io::Error,
}

impl ListenError {
    /// Whether the address is in use, which may be temporary.
    pub fn is_taken(&self) -> bool {
        self.error.kind() == io::ErrorKind::AddrInUse
    }
}

type Result<T> = std::result::Result<T, ListenError>;

fn failed(what: String) -> impl FnOnce(io::Error) -> ListenError {
    move |error| ListenError { what, error }
}

/// Opens a socket and listens. With `alone`, it fails if any other socket listens there, even with
/// SO_REUSEPORT; further sockets of the same process must be opened without.
pub fn open(address: &Address, options: &SocketOptions, alone: bool) -> Result<OwnedFd> {
    let socket = bind(address, options, alone)?;
    // The failures are reported by the caller's own call of `apply`.
    apply(socket.as_fd(), address, options);
    begin(socket.as_fd(), address, options)?;
    Ok(socket)
}

/// Binds without listening, to test whether an address is available. [`begin`] fails if another
/// socket has begun to listen there since.
pub fn bind(address: &Address, options: &SocketOptions, alone: bool) -> Result<OwnedFd> {
    let socket = socket(address, options).map_err(failed(format!("socket() {address} failed")))?;
    if !alone {
        share_port(&SockRef::from(&socket), address);
    }
    let name = socket_address(address).map_err(failed(format!("bind() to {address} failed")))?;
    socket.bind(&name).map_err(failed(format!("bind() to {address} failed")))?;
    if address.is_udp() {
        // A UDP socket receives from now on: it has no later call to `listen`.
        share_port(&SockRef::from(&socket), address);
    }
    if let Address::Unix(path) = address {
        let everyone = std::fs::Permissions::from_mode(0o666);
        std::fs::set_permissions(path, everyone)
            .map_err(failed(format!("chmod() \"{}\" failed", path.display())))?;
    }
    Ok(socket.into())
}

fn share_port(socket: &SockRef<'_>, address: &Address) {
    let set = matches!(address, Address::Unix(_)) || socket.set_reuse_port(true).is_ok();
    debug_assert!(set, "SO_REUSEPORT is as old as Linux 3.9");
}

fn socket(address: &Address, options: &SocketOptions) -> io::Result<Socket> {
    let (domain, protocol) = match address {
        Address::Unix(_) => (Domain::UNIX, None),
        Address::Udp(ip) => return udp_socket(*ip, options),
        Address::Ip(ip) if options.multipath => (Domain::for_address(*ip), Some(Protocol::MPTCP)),
        Address::Ip(ip) => (Domain::for_address(*ip), Some(Protocol::TCP)),
    };
    let socket = Socket::new(domain, Type::STREAM, protocol)?;
    socket.set_nonblocking(true)?;
    if let Address::Ip(ip) = address {
        socket.set_reuse_address(true)?;
        if ip.is_ipv6() {
            socket.set_only_v6(options.ipv6only)?;
        }
    }
    Ok(socket)
}

/// Without SO_REUSEADDR, which would let other programs receive a UDP address's datagrams.
fn udp_socket(address: SocketAddr, options: &SocketOptions) -> io::Result<Socket> {
    let kind = Type::DGRAM.nonblocking().cloexec();
    let socket = Socket::new(Domain::for_address(address), kind, None)?;
    if address.is_ipv6() {
        socket.set_only_v6(options.ipv6only)?;
    }
    Ok(socket)
}

/// Begins to listen, or changes the length of the queue.
pub fn listen(socket: BorrowedFd<'_>, address: &Address, options: &SocketOptions) -> Result<()> {
    let backlog = options.backlog;
    let what = format!("listen() to {address}, backlog {backlog} failed");
    SockRef::from(&socket).listen(backlog).map_err(failed(what))
}

/// Begins to listen on a socket that is only bound so far. Of several sockets for an address, the
/// one bound first must begin first.
pub fn begin(socket: BorrowedFd<'_>, address: &Address, options: &SocketOptions) -> Result<()> {
    if !address.is_udp() && !is_listening(socket) {
        listen(socket, address, options)?;
        share_port(&SockRef::from(&socket), address);
    }
    Ok(())
}

/// Whether a socket accepts connections, or receives datagrams from all senders.
pub fn is_listening(socket: BorrowedFd<'_>) -> bool {
    let options = SockRef::from(&socket);
    match is_datagram(socket) {
        true => options.peer_addr().is_err(),
        false => options.is_listener().unwrap_or(false),
    }
}

pub fn is_datagram(socket: BorrowedFd<'_>) -> bool {
    SockRef::from(&socket).r#type().is_ok_and(|kind| kind == Type::DGRAM)
}

/// Sets the options that can be set at any time, and returns the failures.
pub fn apply(
    socket: BorrowedFd<'_>,
    address: &Address,
    options: &SocketOptions,
) -> Vec<ListenError> {
    let socket = SockRef::from(&socket);
    let mut failures = Vec::new();
    let mut note = |name: &str, value: &dyn fmt::Display, result: io::Result<()>| {
        if let Err(error) = result {
            let what = format!("setsockopt({name}, {value}) {address} failed, ignored");
            failures.push(ListenError { what, error });
        }
    };
    if let Some(bytes) = options.rcvbuf {
        note("SO_RCVBUF", &bytes, socket.set_recv_buffer_size(bytes));
    }
    if let Some(bytes) = options.sndbuf {
        note("SO_SNDBUF", &bytes, socket.set_send_buffer_size(bytes));
    }
    match options.so_keepalive {
        Some(probes) if probes.on => {
            note("SO_KEEPALIVE", &1, socket.set_tcp_keepalive(&times(probes)));
        }
        Some(_) => note("SO_KEEPALIVE", &0, socket.set_keepalive(false)),
        None => {}
    }
    if let Some(length) = options.fastopen {
        note("TCP_FASTOPEN", &length, set_tcp(&socket, libc::TCP_FASTOPEN, length));
    }
    if let (Address::Udp(ip), true) = (address, address.is_wildcard()) {
        let (level, name, option) = match ip {
            SocketAddr::V4(_) => (libc::IPPROTO_IP, "IP_PKTINFO", libc::IP_PKTINFO),
            SocketAddr::V6(_) => (libc::IPPROTO_IPV6, "IPV6_RECVPKTINFO", libc::IPV6_RECVPKTINFO),
        };
        note(name, &1, set(&socket, level, option, 1));
    }
    if matches!(address, Address::Ip(_)) {
        // The value does not matter, since a connection may bypass the queue of deferred ones.
        let seconds = i32::from(options.deferred);
        note("TCP_DEFER_ACCEPT", &seconds, set_tcp(&socket, libc::TCP_DEFER_ACCEPT, seconds));
    }
    failures
}

fn set_tcp(socket: &SockRef<'_>, option: i32, value: i32) -> io::Result<()> {
    set(socket, libc::IPPROTO_TCP, option, value)
}

fn set(socket: &SockRef<'_>, level: i32, option: i32, value: i32) -> io::Result<()> {
    let (fd, size) = (socket.as_raw_fd(), size_of::<i32>() as libc::socklen_t);
    let pointer = std::ptr::from_ref(&value).cast();
    // SAFETY: the kernel reads `size` bytes of `value`, which outlives the call.
    match unsafe { libc::setsockopt(fd, level, option, pointer, size) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn times(probes: KeepaliveProbes) -> TcpKeepalive {
    let seconds = |seconds: u32| Duration::from_secs(seconds.into());
    let mut times = TcpKeepalive::new();
    if let Some(idle_s) = probes.idle_s {
        times = times.with_time(seconds(idle_s));
    }
    if let Some(interval_s) = probes.interval_s {
        times = times.with_interval(seconds(interval_s));
    }
    if let Some(count) = probes.count {
        times = times.with_retries(count);
    }
    times
}

fn socket_address(address: &Address) -> io::Result<SockAddr> {
    match address {
        Address::Ip(ip) | Address::Udp(ip) => Ok((*ip).into()),
        Address::Unix(path) => SockAddr::unix(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loopback() -> Address {
        Address::Ip(([127, 0, 0, 1], 0).into())
    }

    #[test]
    fn a_port_in_use_is_detected_despite_so_reuseport() {
        let options = SocketOptions::default();
        let first = open(&loopback(), &options, true).unwrap();
        let address = Address::of(first.as_fd()).unwrap();
        let error = open(&address, &options, true).unwrap_err();
        assert!(error.is_taken());
        assert_eq!(error.what, format!("bind() to {address} failed"));
        open(&address, &options, false).unwrap();
    }

    #[test]
    fn options_reach_the_socket() {
        let options = SocketOptions {
            rcvbuf: Some(64 * 1024),
            deferred: true,
            fastopen: Some(7),
            so_keepalive: Some(KeepaliveProbes {
                on: true,
                idle_s: Some(90),
                interval_s: None,
                count: Some(4),
            }),
            ..SocketOptions::default()
        };
        let socket = open(&loopback(), &options, true).unwrap();
        assert!(apply(socket.as_fd(), &loopback(), &options).is_empty());
        let seen = SockRef::from(&socket);
        assert_eq!(seen.recv_buffer_size().unwrap(), 2 * 64 * 1024, "Linux doubles it");
        assert!(seen.keepalive().unwrap());
        assert_eq!(seen.tcp_keepalive_time().unwrap(), Duration::from_secs(90));
        assert_eq!(seen.tcp_keepalive_retries().unwrap(), 4);
    }

    #[test]
    fn a_unix_socket_is_a_file_for_everyone() {
        let folder = ::testing::Folder::new();
        let path = folder.join("socket");
        let address = Address::Unix(path.clone());
        let socket = open(&address, &SocketOptions::default(), true).unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o666);
        assert_eq!(Address::of(socket.as_fd()).unwrap(), address);
        assert!(open(&address, &SocketOptions::default(), true).unwrap_err().is_taken());
        address.unlink().unwrap();
    }
}
