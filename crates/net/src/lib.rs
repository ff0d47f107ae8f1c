//! Workers, sockets, time: everything that touches the operating system.
//!
//! About ten operations on streams and listeners, one timer wheel per worker, and the process
//! primitives that the program needs. No other crate names socket2, rustix or libc. Deliberately
//! absent: HTTP, and configuration.

#![allow(unsafe_code)] // Only in this crate; each block states its reason.

pub mod accept;
mod accept_balancer;
mod address;
mod alarm;
#[doc(hidden)]
pub mod allocations;
pub mod buffers;
pub mod channel;
pub mod clock;
mod connect;
mod connection_tracker;
mod datagram;
mod datagram_set;
mod event_loop;
pub mod file;
mod helper_program;
pub mod hmac;
pub mod holder;
mod idle_set;
mod key_pair;
mod lent_future;
mod listener;
pub mod listening;
mod mailbox;
pub mod memory;
mod notify_socket;
mod offload;
mod pipe;
mod probe;
pub mod process;
mod process_usage;
mod sha256;
mod shared_words;
pub mod signals;
mod slots;
mod spare;
mod stream;
mod sync;
pub mod system;
mod terminal;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod timer;
pub mod title;
pub mod tls;
mod turn_budget;
mod turn_order;
mod udp_batch;
mod udp_listener;
pub mod users;
mod worker;

pub use accept_balancer::{
    AcceptBalancer, Accepted, AllFull, Arrival, BalancerHandle, ConnectionPermit, balancer_handles,
};
pub use address::{Address, BACKLOG, KeepaliveProbes, SocketOptions};
pub use alarm::Alarm;
pub use connect::{Connect, Connecting};
pub use connection_tracker::ConnectionTracker;
pub use datagram::{Datagram, Datagrams};
pub use datagram_set::{DatagramReader, DatagramSet, WatchedDatagram};
pub use event_loop::{
    Task, arrived_ms, at_turn_end, defer, deferrals, has_share, on_turn, poll_share, spawn,
    spawn_if_running, spend, task_count, yield_now,
};
pub use helper_program::{HelperOutcome, HelperProgram};
pub use idle_set::IdleSet;
pub use key_pair::{KeyFailure, KeyPair, NewKey};
pub use lent_future::LentFuture;
pub use listener::Listener;
pub use mailbox::{Mailbox, MailboxSender, mailbox};
pub use notify_socket::NotifySocket;
pub use offload::{Offloaded, offload};
pub use pipe::{PIPE_SIZE, SplicePipe};
pub use probe::{SocketProbe, TcpInfo};
pub use process_usage::{ProcessUsage, process_memory};
pub use sha256::sha256;
pub use shared_words::SharedWords;
pub use spare::SparePool;
pub use stream::{Detached, SecureSession, SessionInput, Stream};
pub use terminal::{RawTerminal, terminal_size};
pub use timer::{Timer, sleep};
pub use turn_budget::TurnBudget;
pub use udp_batch::{ReceivedBatch, ReceivedDatagram};
pub use udp_listener::UdpListener;
pub use worker::run;

/// `ETIMEDOUT`, the system's error for timeouts.
pub fn timed_out() -> std::io::Error {
    rustix::io::Errno::TIMEDOUT.into()
}

/// Logs that a descriptor could not be added to an epoll set, in nginx's words; its owner fails
/// with the error. The limit may be the user's (`fs.epoll.max_user_watches`). 1 is EPOLL_CTL_ADD.
pub(crate) fn epoll_failed(failed: (std::os::fd::RawFd, std::io::Error)) -> std::io::Error {
    let (fd, error) = failed;
    let text = format_args!("epoll_ctl(1, {fd}) failed{}", observe::Errno(&error));
    observe::log(observe::Level::Alert, text);
    error
}

/// The effective user id of this process.
pub fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Whether this process may bind ports below 1024 and change its user.
pub fn is_privileged() -> bool {
    rustix::process::geteuid().is_root()
}
