//! Many datagrams in one system call: the buffers of recvmmsg(2) and sendmmsg(2).
//!
//! All pointers for the kernel are made here. A batch knows no socket's readiness; `udp_listener`
//! does the waiting.

use std::io;
use std::mem::{MaybeUninit, size_of};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

/// Maximum number of datagrams received in one call.
pub const RECEIVED_MAX: usize = 32;
/// Maximum number of datagrams sent in one call.
pub const SENT_MAX: usize = 64;
/// The longest datagram that a peer can send.
const DATAGRAM_MAX: usize = 65_535;
/// Distance between payloads. Not a power of two, so that payloads do not compete for the same
/// lines of the processor's cache.
const STRIDE: usize = DATAGRAM_MAX + 1 + 128;
/// Size of one control message, the packet information of either family.
const CONTROL_SIZE: usize = 64;

/// A received datagram.
#[derive(Clone, Copy, Debug)]
pub struct ReceivedDatagram<'a> {
    pub payload: &'a [u8],
    pub peer: SocketAddr,
    /// The destination address, if the socket is bound to all addresses.
    pub local: Option<IpAddr>,
}

/// Datagrams received together. Only the memory in use is ever touched.
pub struct ReceivedBatch {
    payloads: Box<[MaybeUninit<u8>]>,
    senders: [SocketName; RECEIVED_MAX],
    controls: [ControlBuffer; RECEIVED_MAX],
    lengths: [ReceivedLengths; RECEIVED_MAX],
    received: usize,
}

/// Lengths of one datagram's parts, as reported by the kernel.
#[derive(Clone, Copy, Default)]
struct ReceivedLengths {
    payload: usize,
    control: usize,
}

impl ReceivedBatch {
    pub fn new() -> Self {
        Self {
            payloads: Box::new_uninit_slice(STRIDE * RECEIVED_MAX),
            senders: [SocketName::NONE; RECEIVED_MAX],
            controls: [ControlBuffer([0; CONTROL_SIZE]); RECEIVED_MAX],
            lengths: [ReceivedLengths::default(); RECEIVED_MAX],
            received: 0,
        }
    }

    /// The number of datagrams.
    pub fn len(&self) -> usize {
        self.received
    }

    pub fn is_empty(&self) -> bool {
        self.received == 0
    }

    /// Replaces the batch by datagrams from a socket, at most `wanted`.
    pub(crate) fn fill(&mut self, socket: BorrowedFd<'_>, wanted: usize) -> io::Result<()> {
        self.received = 0;
        let wanted = wanted.min(RECEIVED_MAX);
        let mut slices = [const { MaybeUninit::<libc::iovec>::uninit() }; RECEIVED_MAX];
        let mut headers = [const { MaybeUninit::<libc::mmsghdr>::uninit() }; RECEIVED_MAX];
        let payloads = self.payloads.as_mut_ptr();
        for at in 0..wanted {
            // SAFETY: `payloads` has `RECEIVED_MAX` strides, and `at` is below that.
            let base = unsafe { payloads.add(at * STRIDE) };
            let slice = libc::iovec { iov_base: base.cast(), iov_len: DATAGRAM_MAX };
            let slice = slices[at].write(slice);
            headers[at].write(libc::mmsghdr {
                msg_hdr: header(
                    self.senders[at].as_mut_pointer(),
                    size_of::<SocketName>(),
                    slice,
                    self.controls[at].0.as_mut_ptr().cast(),
                    CONTROL_SIZE,
                ),
                msg_len: 0,
            });
        }
        // SAFETY: `wanted` headers are initialised. They point to memory of `self` and of this
        // frame, each with its true length, which nothing else uses during the call.
        let received = unsafe {
            let (headers, flags) = (headers.as_mut_ptr().cast(), libc::MSG_DONTWAIT);
            libc::recvmmsg(socket.as_raw_fd(), headers, wanted as _, flags as _, ptr::null_mut())
        };
        let received = usize::try_from(received).map_err(|_| io::Error::last_os_error())?;
        for (header, lengths) in headers.iter().zip(&mut self.lengths).take(received) {
            // SAFETY: at least the received number of headers is initialised.
            let header = unsafe { header.assume_init_ref() };
            *lengths = ReceivedLengths {
                payload: (header.msg_len as usize).min(DATAGRAM_MAX),
                control: CONTROL_SIZE.min(header.msg_hdr.msg_controllen as _),
            };
        }
        self.received = received;
        Ok(())
    }

    /// The datagrams, except those from senders without an address.
    pub fn iter(&self) -> impl Iterator<Item = ReceivedDatagram<'_>> {
        (0..self.received).filter_map(|at| {
            let peer = self.senders[at].address()?;
            let local = self.controls[at].local(self.lengths[at].control);
            Some(ReceivedDatagram { payload: self.payload(at), peer, local })
        })
    }

    /// The bytes of all datagrams.
    pub fn payloads(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.received).map(|at| self.payload(at))
    }

    fn payload(&self, at: usize) -> &[u8] {
        let bytes = &self.payloads[at * STRIDE..at * STRIDE + self.lengths[at].payload];
        // SAFETY: `fill` records only lengths that the kernel has written, and `at` is an entry
        // that it has filled, or one of length 0.
        unsafe { bytes.assume_init_ref() }
    }
}

impl Default for ReceivedBatch {
    fn default() -> Self {
        Self::new()
    }
}

/// Datagrams to be sent together.
#[derive(Default)]
pub(crate) struct SendBatch {
    payloads: Vec<u8>,
    waiting: Vec<SendEntry>,
}

#[derive(Clone, Copy)]
struct SendEntry {
    start: usize,
    end: usize,
    peer: SocketAddr,
    local: Option<IpAddr>,
}

impl SendBatch {
    /// Appends a datagram. `local` is its source address; `None`: the socket's address.
    pub(crate) fn push(&mut self, payload: &[u8], peer: SocketAddr, local: Option<IpAddr>) {
        let start = self.payloads.len();
        self.payloads.extend_from_slice(payload);
        self.waiting.push(SendEntry { start, end: self.payloads.len(), peer, local });
    }

    /// The number of datagrams.
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// The size of all payloads in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.payloads.len()
    }

    /// Removes the first `count` datagrams.
    pub(crate) fn forget(&mut self, count: usize) {
        let Some(start) = self.waiting.get(count).map(|entry| entry.start) else {
            return self.clear();
        };
        self.payloads.drain(..start);
        self.waiting.drain(..count);
        for entry in &mut self.waiting {
            (entry.start, entry.end) = (entry.start - start, entry.end - start);
        }
    }

    /// Removes all datagrams.
    pub(crate) fn clear(&mut self) {
        /// More memory than this is freed.
        const KEPT_MAX: usize = 64 * 1024;
        self.payloads.clear();
        self.payloads.shrink_to(KEPT_MAX);
        self.waiting.clear();
    }

    /// Sends the datagrams from `first` on, at most [`SENT_MAX`]. Returns how many the kernel
    /// accepted.
    pub(crate) fn send(&self, socket: BorrowedFd<'_>, first: usize) -> io::Result<usize> {
        let entries = &self.waiting[first..self.waiting.len().min(first + SENT_MAX)];
        let mut slices = [const { MaybeUninit::<libc::iovec>::uninit() }; SENT_MAX];
        let mut names = [const { MaybeUninit::<SocketName>::uninit() }; SENT_MAX];
        let mut controls = [const { MaybeUninit::<ControlBuffer>::uninit() }; SENT_MAX];
        let mut headers = [const { MaybeUninit::<libc::mmsghdr>::uninit() }; SENT_MAX];
        for (at, entry) in entries.iter().enumerate() {
            let payload = &self.payloads[entry.start..entry.end];
            let slice = libc::iovec {
                iov_base: payload.as_ptr().cast_mut().cast(),
                iov_len: payload.len(),
            };
            let (name, name_len) = SocketName::of(entry.peer);
            let (control, control_len) = match entry.local {
                Some(local) => {
                    let (control, len) = ControlBuffer::of(local);
                    (controls[at].write(control).0.as_mut_ptr(), len)
                }
                None => (ptr::null_mut(), 0),
            };
            let name = names[at].write(name).as_mut_pointer();
            let slice = slices[at].write(slice);
            headers[at].write(libc::mmsghdr {
                msg_hdr: header(name, name_len, slice, control.cast(), control_len),
                msg_len: 0,
            });
        }
        // SAFETY: one header per entry is initialised. They point to memory of `self` and of this
        // frame, each with its true length, which the kernel only reads.
        let sent = unsafe {
            let (headers, flags) = (headers.as_mut_ptr().cast(), libc::MSG_DONTWAIT);
            libc::sendmmsg(socket.as_raw_fd(), headers, entries.len() as _, flags as _)
        };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }
}

fn header(
    name: *mut libc::c_void,
    name_len: usize,
    slice: &mut libc::iovec,
    control: *mut libc::c_void,
    control_len: usize,
) -> libc::msghdr {
    // SAFETY: all-zero bytes are a valid `msghdr`: null pointers and lengths of 0.
    let mut header: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
    header.msg_name = name;
    header.msg_namelen = name_len as libc::socklen_t;
    header.msg_iov = slice;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = control_len as _;
    header
}

/// An address in the kernel's format.
#[derive(Clone, Copy)]
#[repr(C)]
union SocketName {
    v4: libc::sockaddr_in,
    v6: libc::sockaddr_in6,
}

impl SocketName {
    /// No address: its family is 0.
    // SAFETY: all-zero bytes are a valid `sockaddr_in6`.
    const NONE: Self = Self { v6: unsafe { MaybeUninit::zeroed().assume_init() } };

    fn of(address: SocketAddr) -> (Self, usize) {
        let mut name = Self::NONE;
        match address {
            SocketAddr::V4(address) => {
                name.v4 = libc::sockaddr_in {
                    sin_family: libc::AF_INET as libc::sa_family_t,
                    sin_port: address.port().to_be(),
                    sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(address.ip().octets()) },
                    sin_zero: [0; 8],
                };
                (name, size_of::<libc::sockaddr_in>())
            }
            SocketAddr::V6(address) => {
                name.v6 = libc::sockaddr_in6 {
                    sin6_family: libc::AF_INET6 as libc::sa_family_t,
                    sin6_port: address.port().to_be(),
                    sin6_flowinfo: address.flowinfo(),
                    sin6_addr: libc::in6_addr { s6_addr: address.ip().octets() },
                    sin6_scope_id: address.scope_id(),
                };
                (name, size_of::<libc::sockaddr_in6>())
            }
        }
    }

    fn as_mut_pointer(&mut self) -> *mut libc::c_void {
        ptr::from_mut(self).cast()
    }

    fn address(&self) -> Option<SocketAddr> {
        // SAFETY: both variants begin with the family, every bit pattern of either is valid, and
        // all bytes are initialised.
        let (family, v4, v6) = unsafe { (self.v4.sin_family, self.v4, self.v6) };
        match i32::from(family) {
            libc::AF_INET => {
                let ip = Ipv4Addr::from(v4.sin_addr.s_addr.to_ne_bytes());
                Some(SocketAddrV4::new(ip, u16::from_be(v4.sin_port)).into())
            }
            libc::AF_INET6 => {
                let (ip, port) = (Ipv6Addr::from(v6.sin6_addr.s6_addr), u16::from_be(v6.sin6_port));
                Some(SocketAddrV6::new(ip, port, v6.sin6_flowinfo, v6.sin6_scope_id).into())
            }
            _ => None,
        }
    }
}

/// A control message with a packet's information, aligned as `cmsghdr` is.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct ControlBuffer([u8; CONTROL_SIZE]);

/// Offset of a control message's contents.
const CONTROL_HEAD: usize = size_of::<libc::cmsghdr>();

impl ControlBuffer {
    /// The message that sets a datagram's source address, and its length.
    fn of(local: IpAddr) -> (Self, usize) {
        match local {
            IpAddr::V4(ip) => {
                // Fields of `in_pktinfo`: interface, local address, destination.
                let mut info = [0; 12];
                info[4..8].copy_from_slice(&ip.octets());
                Self::message(libc::IPPROTO_IP, libc::IP_PKTINFO, &info)
            }
            IpAddr::V6(ip) => {
                // Fields of `in6_pktinfo`: address, interface.
                let mut info = [0; 20];
                info[..16].copy_from_slice(&ip.octets());
                Self::message(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, &info)
            }
        }
    }

    fn message(level: i32, kind: i32, contents: &[u8]) -> (Self, usize) {
        let mut buffer = Self([0; CONTROL_SIZE]);
        let len = CONTROL_HEAD + contents.len();
        buffer.0[..size_of::<usize>()].copy_from_slice(&len.to_ne_bytes());
        buffer.0[8..12].copy_from_slice(&level.to_ne_bytes());
        buffer.0[12..16].copy_from_slice(&kind.to_ne_bytes());
        buffer.0[CONTROL_HEAD..len].copy_from_slice(contents);
        (buffer, len.next_multiple_of(align_of::<usize>()))
    }

    /// The destination address of a datagram. Sockets request no other control messages.
    fn local(&self, len: usize) -> Option<IpAddr> {
        let message = self.0.get(..len)?;
        let number = |at: usize| Some(i32::from_ne_bytes(*message.get(at..)?.first_chunk()?));
        let contents = message.get(CONTROL_HEAD..)?;
        match (number(8)?, number(12)?) {
            (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                let octets: [u8; 4] = *contents.get(8..)?.first_chunk()?;
                Some(IpAddr::from(octets))
            }
            (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                let octets: [u8; 16] = *contents.first_chunk()?;
                Some(IpAddr::from(octets))
            }
            _ => None,
        }
    }
}

const _: () = assert!(CONTROL_HEAD == 16, "cmsghdr is a length and two numbers");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_survive_conversion_to_the_kernels_format() {
        for text in ["192.0.2.1:53", "[2001:db8::1]:443", "[fe80::1%3]:9"] {
            let address: SocketAddr = text.parse().unwrap();
            assert_eq!(SocketName::of(address).0.address(), Some(address));
        }
        assert_eq!(SocketName::NONE.address(), None);
    }

    #[test]
    fn an_ipv6_control_message_is_read_as_written() {
        let ip: IpAddr = "2001:db8::1".parse().unwrap();
        let (message, len) = ControlBuffer::of(ip);
        assert_eq!(message.local(len), Some(ip));
        for cut in 0..CONTROL_HEAD + 16 {
            assert_eq!(message.local(cut), None, "{cut}");
        }
    }
}
