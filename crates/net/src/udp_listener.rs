//! A worker's UDP socket that is open to all senders.
//!
//! Datagrams are received and sent in batches: outgoing datagrams are collected until all ready
//! tasks have run. If the kernel has no room, they are tried again shortly, up to a limit; beyond
//! it they are dropped, as datagrams may be.

use std::cell::{Cell, RefCell, RefMut};
use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::rc::{Rc, Weak};
use std::task::{Poll, Waker};
use std::time::Duration;

use observe::{Errno as Reason, Level};
use rustix::io::Errno;

use crate::event_loop::{Interest, Watched};
use crate::udp_batch::{RECEIVED_MAX, ReceivedBatch, SENT_MAX, SendBatch};

/// Maximum size of queued datagrams while the kernel has no room; more are dropped.
const WAITING_BYTES_MAX: usize = 1 << 20;
/// Pause before the next try when the kernel has no room.
const FULL_PAUSE: Duration = Duration::from_millis(1);

/// A bound UDP socket.
pub struct UdpListener {
    fd: Watched,
    outgoing: RefCell<SendBatch>,
    flusher: Rc<Flusher>,
}

/// Wakes the task that sends the collected datagrams.
#[derive(Default)]
struct Flusher {
    waker: RefCell<Option<Waker>>,
    is_due: Cell<bool>,
}

impl UdpListener {
    /// Takes a bound, non-blocking socket. Must be called on a worker.
    pub fn new(fd: OwnedFd) -> io::Result<Rc<Self>> {
        let fd = Watched::new(fd, Interest::Read)?;
        let flusher = Rc::new(Flusher::default());
        let (outgoing, own) = (RefCell::default(), flusher.clone());
        let listener = Rc::new(Self { fd, outgoing, flusher });
        crate::spawn(own.serve(Rc::downgrade(&listener)));
        Ok(listener)
    }

    /// Waits for datagrams, and takes as many as the batch has room for. The batch may not be
    /// borrowed when they arrive.
    pub async fn receive<'a>(
        &self,
        batch: &'a RefCell<ReceivedBatch>,
    ) -> io::Result<RefMut<'a, ReceivedBatch>> {
        loop {
            poll_fn(|cx| self.fd.watch().poll_readable(cx)).await;
            let mut batch = batch.borrow_mut();
            match batch.fill(self.fd.get().as_fd(), RECEIVED_MAX) {
                Ok(()) => {
                    if batch.len() < RECEIVED_MAX {
                        // The socket is empty. A datagram that has arrived since is an event of its
                        // own.
                        self.fd.watch().clear_readable();
                    }
                    return Ok(batch);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.fd.watch().clear_readable();
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Queues a datagram, which is sent soon. `local` is its source address; `None`: the socket's
    /// address. False: the queue is full, and the datagram is dropped.
    pub fn send(&self, payload: &[u8], peer: SocketAddr, local: Option<IpAddr>) -> bool {
        let mut outgoing = self.outgoing.borrow_mut();
        if outgoing.bytes() + payload.len() > WAITING_BYTES_MAX {
            return false;
        }
        outgoing.push(payload, peer, local);
        let waiting = outgoing.len();
        drop(outgoing);
        if !waiting.is_multiple_of(SENT_MAX) || !self.flush() {
            self.flusher.wake();
        }
        true
    }

    /// Sends the collected datagrams; false: the kernel has no room for some of them.
    fn flush(&self) -> bool {
        let mut outgoing = self.outgoing.borrow_mut();
        let mut first = 0;
        while first < outgoing.len() {
            match outgoing.send(self.fd.get().as_fd(), first) {
                Ok(sent) => first += sent.max(1),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if is_full(&error) => {
                    outgoing.forget(first);
                    return false;
                }
                Err(error) => {
                    tell(&error);
                    first += 1;
                }
            }
        }
        outgoing.clear();
        true
    }
}

fn is_full(error: &io::Error) -> bool {
    let full = [Errno::AGAIN, Errno::NOBUFS].map(Errno::raw_os_error);
    error.raw_os_error().is_some_and(|number| full.contains(&number))
}

/// Logs a failed datagram; the others are still sent.
fn tell(error: &io::Error) {
    observe::log(Level::Info, format_args!("sendmsg() failed{}", Reason(error)));
}

impl Flusher {
    fn wake(&self) {
        if !self.is_due.replace(true)
            && let Some(waker) = &*self.waker.borrow()
        {
            waker.wake_by_ref();
        }
    }

    /// Sends the collected datagrams after the ready tasks have run, until the socket is dropped.
    async fn serve(self: Rc<Self>, listener: Weak<UdpListener>) {
        loop {
            poll_fn(|cx| {
                if self.is_due.get() || listener.strong_count() == 0 {
                    return Poll::Ready(());
                }
                let mut waker = self.waker.borrow_mut();
                if !waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
                    *waker = Some(cx.waker().clone());
                }
                Poll::Pending
            })
            .await;
            let Some(listener) = listener.upgrade() else { return };
            self.is_due.set(false);
            if !listener.flush() {
                drop(listener);
                self.is_due.set(true);
                crate::sleep(FULL_PAUSE).await;
            }
        }
    }
}

impl Drop for UdpListener {
    fn drop(&mut self) {
        self.flush();
        self.flusher.is_due.set(false);
        self.flusher.wake();
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;
    use crate::{Address, SocketOptions, Timer, listening};

    fn bound(address: &str) -> (OwnedFd, u16) {
        let address = Address::Udp(address.parse().unwrap());
        let options = SocketOptions::default();
        let socket = listening::bind(&address, &options, true).unwrap();
        assert!(listening::apply(socket.as_fd(), &address, &options).is_empty());
        let port = Address::of(socket.as_fd()).unwrap().port().unwrap();
        (socket, port)
    }

    fn within_a_worker(test: impl Future<Output = ()>) {
        const MAX_MS: u64 = 10_000;
        let in_time = async {
            let timer = Timer::new();
            timer.set(MAX_MS);
            timer.limit(test).await
        };
        crate::run(in_time).unwrap().expect("in time");
    }

    /// Echoes datagrams until there were `count`, and returns their destination addresses.
    async fn echo(listener: &UdpListener, count: usize) -> Vec<Option<IpAddr>> {
        let (batch, mut locals) = (RefCell::default(), Vec::new());
        while locals.len() < count {
            for one in listener.receive(&batch).await.unwrap().iter() {
                assert!(listener.send(one.payload, one.peer, one.local));
                locals.push(one.local);
            }
        }
        locals
    }

    #[test]
    fn datagrams_of_all_lengths_are_echoed_to_their_senders() {
        let (socket, port) = bound("127.0.0.1:0");
        within_a_worker(async {
            let listener = UdpListener::new(socket).unwrap();
            let lengths = [0, 1, 64, 9000, 65_507];
            let peers = lengths.map(|_| UdpSocket::bind("127.0.0.1:0").unwrap());
            for (peer, length) in peers.iter().zip(lengths) {
                peer.send_to(&vec![b'x'; length], ("127.0.0.1", port)).unwrap();
            }
            assert_eq!(echo(&listener, lengths.len()).await, [None; 5]);
            drop(listener);
            for (peer, length) in peers.iter().zip(lengths) {
                assert_eq!(peer.recv(&mut [0; 65_536]).unwrap(), length);
            }
        });
    }

    #[test]
    fn more_than_a_batch_is_received_and_sent() {
        let (socket, port) = bound("127.0.0.1:0");
        within_a_worker(async {
            let listener = UdpListener::new(socket).unwrap();
            let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
            let count = 2 * SENT_MAX + 1;
            for number in 0..count {
                peer.send_to(&[number as u8], ("127.0.0.1", port)).unwrap();
            }
            echo(&listener, count).await;
            crate::yield_now().await;
            for number in 0..count {
                let mut byte = [0];
                peer.recv(&mut byte).unwrap();
                assert_eq!(byte[0], number as u8);
            }
        });
    }

    #[test]
    fn a_wildcard_socket_answers_from_the_destination_address() {
        for (any, asked) in [("0.0.0.0:0", "127.0.0.2"), ("[::]:0", "::1")] {
            let (socket, port) = bound(any);
            within_a_worker(async {
                let listener = UdpListener::new(socket).unwrap();
                let asked: IpAddr = asked.parse().unwrap();
                let own = if asked.is_ipv4() { "127.0.0.1:0" } else { "[::1]:0" };
                let peer = UdpSocket::bind(own).unwrap();
                peer.connect((asked, port)).unwrap();
                peer.send(b"hello").unwrap();
                assert_eq!(echo(&listener, 1).await, [Some(asked)]);
                drop(listener);
                // A connected socket receives only from its peer's address.
                assert_eq!(peer.recv(&mut [0; 8]).unwrap(), 5);
            });
        }
    }

    #[test]
    fn a_failed_datagram_does_not_block_others() {
        let (socket, _) = bound("127.0.0.1:0");
        within_a_worker(async {
            let listener = UdpListener::new(socket).unwrap();
            let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
            let unreachable = "[2001:db8::1]:9".parse().unwrap();
            listener.send(b"lost", unreachable, None);
            listener.send(b"heard", peer.local_addr().unwrap(), None);
            drop(listener);
            assert_eq!(peer.recv(&mut [0; 8]).unwrap(), 5);
        });
    }

    #[test]
    fn a_udp_port_is_shared_only_within_the_program() {
        let options = SocketOptions::default();
        let first = listening::bind(&Address::Udp(([127, 0, 0, 1], 0).into()), &options, true);
        let first = first.unwrap();
        let address = Address::of(first.as_fd()).unwrap();
        assert!(address.is_udp());
        assert!(listening::bind(&address, &options, true).unwrap_err().is_taken());
        listening::bind(&address, &options, false).unwrap();
    }
}
