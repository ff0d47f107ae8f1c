//! The sockets, one for each thread at each address, so that no thread waits for another to accept.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use net::listening;
use net::{Address, Datagrams, SocketOptions};

use super::complaint::complain;
use super::settings::BackendSettings;

/// The backlog of listening sockets, which the system may limit.
const BACKLOG: i32 = 4096;

/// The protocol of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    Http,
    /// Echo over TCP.
    Tcp,
    /// Echo over UDP.
    Udp,
}

/// An address with its sockets.
pub(super) struct OpenAddress {
    /// Its URL: `http://127.0.0.1:8081`.
    pub(super) name: String,
    sort: Sort,
    address: Address,
    sockets: Vec<OwnedFd>,
}

pub(super) struct ThreadSocket {
    pub(super) sort: Sort,
    pub(super) fd: OwnedFd,
}

/// Opens the sockets of all addresses in the settings.
pub(super) fn open(settings: &BackendSettings) -> Result<Vec<OpenAddress>, String> {
    let of = |sort, addresses: &[Address]| {
        let open = |address: &Address| OpenAddress::new(sort, address, settings.threads);
        addresses.iter().map(open).collect::<Result<Vec<_>, _>>()
    };
    let mut all = of(Sort::Http, &settings.listen)?;
    all.extend(of(Sort::Tcp, &settings.tcp_echo)?);
    all.extend(of(Sort::Udp, &settings.udp_echo)?);
    Ok(all)
}

impl OpenAddress {
    fn new(sort: Sort, address: &Address, threads: usize) -> Result<Self, String> {
        let (address, sockets) = match (sort, address) {
            (Sort::Udp, Address::Ip(ip) | Address::Udp(ip)) => {
                let bound = Datagrams::bind(*ip);
                let socket = bound.map_err(|error| format!("bind() to {ip} failed: {error}"))?;
                (own(&socket)?, vec![socket])
            }
            (Sort::Udp, Address::Unix(_)) => {
                return Err(format!("{address}: UDP does not support Unix sockets"));
            }
            (_, address) => listen(address, threads)?,
        };
        let name = match (&address, sort) {
            (Address::Unix(_), _) => address.to_string(),
            (_, Sort::Http) => format!("http://{address}"),
            (_, Sort::Tcp) => format!("tcp://{address}"),
            (_, Sort::Udp) => format!("udp://{address}"),
        };
        Ok(Self { name, sort, address, sockets })
    }

    /// The socket of a thread. A single listening socket is shared by all threads.
    pub(super) fn share(&self, thread: usize) -> Result<Option<ThreadSocket>, String> {
        let own = self.sockets.get(thread);
        let socket = own.or(self.sockets.first().filter(|_| self.sort != Sort::Udp));
        let copy = socket.map(OwnedFd::try_clone).transpose();
        let fd = copy.map_err(|error| format!("dup(): {error}"))?;
        Ok(fd.map(|fd| ThreadSocket { sort: self.sort, fd }))
    }

    /// Removes the file of a Unix socket.
    pub(super) fn close(&self) {
        if let Err(error) = self.address.unlink() {
            complain(&format!("{}: {error}", self.address));
        }
    }
}

fn listen(address: &Address, threads: usize) -> Result<(Address, Vec<OwnedFd>), String> {
    let options = SocketOptions { backlog: BACKLOG, ..SocketOptions::default() };
    let open = |address: &Address, alone| {
        let opened = listening::open(address, &options, alone);
        opened.map_err(|failed| format!("{}: {}", failed.what, failed.error))
    };
    let first = open(address, true)?;
    // The system has replaced port 0.
    let address = own(&first)?;
    let mut sockets = vec![first];
    if matches!(address, Address::Ip(_)) {
        for _ in 1..threads {
            sockets.push(open(&address, false)?);
        }
    }
    Ok((address, sockets))
}

fn own(socket: &OwnedFd) -> Result<Address, String> {
    let address: io::Result<Address> = Address::of(socket.as_fd());
    address.map_err(|error| format!("getsockname(): {error}"))
}
