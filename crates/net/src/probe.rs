//! Queries about a connected socket, for code that does not own it.
//!
//! A probe is the descriptor's number. After the socket is closed, a query gets no answer, or the
//! answer for another socket; so probes are used only while their connection is served.

use std::mem::{MaybeUninit, size_of};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, RawFd};

use socket2::SockAddr;

/// A connected socket that can be queried.
#[derive(Clone, Copy, Debug)]
pub struct SocketProbe(RawFd);

/// The system's view of a TCP connection (`TCP_INFO`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpInfo {
    /// Round trip time in microseconds.
    pub rtt_us: u32,
    /// Its variance, in microseconds.
    pub rttvar_us: u32,
    /// The congestion window, in segments.
    pub snd_cwnd: u32,
    /// Receive window in bytes.
    pub rcv_space: u32,
}

impl SocketProbe {
    /// A probe without a socket: every query fails.
    pub const NONE: Self = Self(-1);

    pub fn new(socket: &impl AsFd) -> Self {
        Self(socket.as_fd().as_raw_fd())
    }

    /// The socket's own address; `None` for Unix sockets.
    pub fn local(self) -> Option<SocketAddr> {
        // SAFETY: the callback passes pointers to storage of the size it is given to a call that
        // fills it, and nothing else happens to the descriptor.
        let named = unsafe {
            SockAddr::try_init(|storage, size| {
                match libc::getsockname(self.0, storage.cast(), size) {
                    0 => Ok(()),
                    _ => Err(std::io::Error::last_os_error()),
                }
            })
        };
        named.ok()?.1.as_socket()
    }

    /// Whether the peer has acknowledged or read all sent bytes; false if the system does not say.
    pub fn is_drained(self) -> bool {
        /// `SK_MEMINFO_*` of linux/sock_diag.h: indices into the result of `SO_MEMINFO` (Linux
        /// 4.12).
        const WMEM_ALLOC: usize = 2;
        const WMEM_QUEUED: usize = 5;
        const VARS: usize = 9;
        let mut info = [0_u32; VARS];
        let mut size = size_of_val(&info) as libc::socklen_t;
        // SAFETY: pointer and size are those of `info`, which outlives the call.
        let done = unsafe {
            let pointer = info.as_mut_ptr().cast();
            libc::getsockopt(self.0, libc::SOL_SOCKET, libc::SO_MEMINFO, pointer, &mut size)
        };
        done == 0 && info[WMEM_ALLOC] == 0 && info[WMEM_QUEUED] == 0
    }

    /// The system's information about a TCP connection; `None` for other sockets.
    pub fn tcp_info(self) -> Option<TcpInfo> {
        let mut info = MaybeUninit::<libc::tcp_info>::zeroed();
        let mut size = size_of::<libc::tcp_info>() as libc::socklen_t;
        // SAFETY: pointer and size are those of `info`, which outlives the call.
        let done = unsafe {
            let pointer = info.as_mut_ptr().cast();
            libc::getsockopt(self.0, libc::IPPROTO_TCP, libc::TCP_INFO, pointer, &mut size)
        };
        if done != 0 {
            return None;
        }
        // SAFETY: all-zero bytes are a valid `tcp_info`, and the call has filled it.
        let info = unsafe { info.assume_init() };
        Some(TcpInfo {
            rtt_us: info.tcpi_rtt,
            rttvar_us: info.tcpi_rttvar,
            snd_cwnd: info.tcpi_snd_cwnd,
            rcv_space: info.tcpi_rcv_space,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::testing::connected_pair;
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_tcp_socket_has_an_address_and_tcp_info() {
        let (stream, _other) = connected_pair();
        let probe = SocketProbe::new(&stream);
        assert_eq!(probe.local(), stream.local_addr().ok());
        assert!(probe.tcp_info().is_some_and(|info| info.snd_cwnd > 0));
    }

    #[test]
    fn a_socket_is_not_drained_while_the_peer_does_not_read() {
        use std::io::Write as _;
        let (unix, _other) = UnixStream::pair().unwrap();
        let (tcp, _accepted) = connected_pair();
        unix.set_nonblocking(true).unwrap();
        tcp.set_nonblocking(true).unwrap();
        for socket in [OwnedFd::from(tcp), OwnedFd::from(unix)] {
            let probe = SocketProbe::new(&socket);
            assert!(probe.is_drained());
            let mut file = std::fs::File::from(socket);
            while file.write(&[b'x'; 16 * 1024]).is_ok() {}
            assert!(!probe.is_drained());
        }
        assert!(!SocketProbe::NONE.is_drained());
    }

    #[test]
    fn other_sockets_have_no_address_and_no_tcp_info() {
        let (stream, _other) = UnixStream::pair().unwrap();
        let probe = SocketProbe::new(&stream);
        assert_eq!((probe.local(), probe.tcp_info()), (None, None));
        let probe = SocketProbe::NONE;
        assert_eq!((probe.local(), probe.tcp_info()), (None, None));
    }
}
