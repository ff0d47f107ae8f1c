//! A worker's connected datagram sockets, watched together.
//!
//! Sessions over UDP are many and short, and each datagram means little work. The sockets wait in
//! an epoll instance of their own, which is one descriptor of the event loop: a datagram wakes no
//! task, the socket's reader is called directly.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::rc::{Rc, Weak};
use std::task::{Poll, ready};

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::net::SendFlags;
use rustix::time::Timespec;

use crate::event_loop::{Interest, Watched, defer};
use crate::{ReceivedBatch, SocketProbe, epoll_failed};

/// Slots of readers that are kept in memory when there are no sockets.
const READERS_KEPT: usize = 1024;
/// Maximum number of events taken in one call.
const EVENTS_PER_TURN: usize = 256;

pub struct DatagramSet {
    epoll: Watched,
    readers: RefCell<Readers>,
}

#[derive(Default)]
struct Readers {
    slots: Vec<Option<Weak<dyn DatagramReader>>>,
    free: Vec<u32>,
}

/// Reads a socket of the set.
pub trait DatagramReader {
    /// Called when datagrams or an error have arrived. Called only once for datagrams that are left
    /// unread. The batch is for receiving them.
    fn readable(&self, batch: &mut ReceivedBatch);
}

/// A connected datagram socket in the set; dropping it closes it.
pub struct WatchedDatagram {
    fd: OwnedFd,
    set: Rc<DatagramSet>,
    index: u32,
}

impl DatagramSet {
    /// An empty set. Must be called on a worker.
    pub fn new() -> io::Result<Rc<Self>> {
        let fd = epoll::create(CreateFlags::CLOEXEC)?;
        let epoll = Watched::new(fd, Interest::Read)?;
        Ok(Rc::new(Self { epoll, readers: RefCell::default() }))
    }

    /// Watches a connected, non-blocking socket for its reader.
    pub fn watch(
        self: &Rc<Self>,
        fd: OwnedFd,
        reader: Weak<dyn DatagramReader>,
    ) -> io::Result<WatchedDatagram> {
        let index = self.readers.borrow_mut().add(reader);
        let watched = WatchedDatagram { fd, set: self.clone(), index };
        let data = EventData::new_u64(index.into());
        epoll::add(self.epoll.get(), &watched.fd, data, EventFlags::IN | EventFlags::ET)
            .map_err(|error| epoll_failed((watched.fd.as_raw_fd(), error.into())))?;
        Ok(watched)
    }

    /// The number of sockets.
    pub fn len(&self) -> usize {
        let readers = self.readers.borrow();
        readers.slots.len() - readers.free.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Calls the readers of sockets that have datagrams. Runs until dropped.
    pub async fn attend(self: Rc<Self>, batch: Rc<RefCell<ReceivedBatch>>) {
        let mut events = Vec::with_capacity(EVENTS_PER_TURN);
        poll_fn(|cx| -> Poll<()> {
            loop {
                ready!(self.epoll.watch().poll_readable(cx));
                if self.turn(&mut events, &mut batch.borrow_mut()) == EVENTS_PER_TURN {
                    // Other tasks run in between.
                    defer(cx.waker());
                    return Poll::Pending;
                }
                self.epoll.watch().clear_readable();
            }
        })
        .await;
    }

    /// Calls the readers of ready sockets and returns their number.
    fn turn(&self, events: &mut Vec<epoll::Event>, batch: &mut ReceivedBatch) -> usize {
        events.clear();
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let spare = rustix::buffer::spare_capacity(events);
        let count = epoll::wait(self.epoll.get(), spare, Some(&at_once)).unwrap_or(0);
        for event in events {
            // The socket may be closed, or its index reused: the reader then finds nothing to read.
            let reader = self.readers.borrow().of(event.data.u64());
            if let Some(reader) = reader.and_then(|reader| reader.upgrade()) {
                reader.readable(batch);
            }
        }
        count
    }
}

impl Readers {
    fn add(&mut self, reader: Weak<dyn DatagramReader>) -> u32 {
        match self.free.pop() {
            Some(index) => {
                self.slots[index as usize] = Some(reader);
                index
            }
            None => {
                self.slots.push(Some(reader));
                self.slots.len() as u32 - 1
            }
        }
    }

    fn of(&self, index: u64) -> Option<Weak<dyn DatagramReader>> {
        self.slots.get(usize::try_from(index).ok()?)?.clone()
    }
}

impl WatchedDatagram {
    /// Sends a datagram at once. A full socket is an error, since datagrams may get lost anyway.
    pub fn send(&self, datagram: &[u8]) -> io::Result<()> {
        rustix::net::send(self.fd.as_fd(), datagram, SendFlags::NOSIGNAL)?;
        Ok(())
    }

    /// Takes the datagrams that have arrived, at most `wanted`. If fewer are returned, none is left
    /// unread.
    pub fn receive(&self, batch: &mut ReceivedBatch, wanted: usize) -> io::Result<()> {
        batch.fill(self.fd.as_fd(), wanted)
    }

    pub fn probe(&self) -> SocketProbe {
        SocketProbe::new(&self.fd)
    }
}

impl Drop for WatchedDatagram {
    fn drop(&mut self) {
        // Closing the descriptor takes it out of the epoll instance.
        let mut readers = self.set.readers.borrow_mut();
        readers.slots[self.index as usize] = None;
        readers.free.push(self.index);
        if readers.free.len() == readers.slots.len() && readers.slots.len() > READERS_KEPT {
            // Frees the memory of a burst.
            *readers = Readers::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::OnceCell;
    use std::net::UdpSocket;
    use std::time::Duration;

    use super::*;
    use crate::{Address, Connect};

    /// Records the datagrams, and the kind of the last error.
    #[derive(Default)]
    struct Recorder {
        socket: OnceCell<WatchedDatagram>,
        came: RefCell<Vec<Vec<u8>>>,
        failed: RefCell<Option<io::ErrorKind>>,
    }

    impl DatagramReader for Recorder {
        fn readable(&self, batch: &mut ReceivedBatch) {
            match self.socket.get().unwrap().receive(batch, 4) {
                Ok(()) => self.came.borrow_mut().extend(batch.payloads().map(<[u8]>::to_vec)),
                Err(error) => *self.failed.borrow_mut() = Some(error.kind()),
            }
        }
    }

    fn recorder(set: &Rc<DatagramSet>, peer: &UdpSocket) -> Rc<Recorder> {
        let recorder = Rc::new(Recorder::default());
        let address = Address::Udp(peer.local_addr().unwrap());
        let fd = Connect::default().datagram(&address).unwrap();
        let reader: Rc<dyn DatagramReader> = recorder.clone();
        let socket = set.watch(fd, Rc::downgrade(&reader)).unwrap();
        assert!(recorder.socket.set(socket).is_ok());
        recorder
    }

    async fn until(done: impl Fn() -> bool) {
        while !done() {
            crate::sleep(Duration::from_millis(1)).await;
        }
    }

    #[test]
    fn each_reader_gets_the_datagrams_and_errors_of_its_peer() {
        let peers = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        crate::run(async {
            let set = DatagramSet::new().unwrap();
            crate::spawn(set.clone().attend(Rc::default()));
            let readers = [recorder(&set, &peers[0]), recorder(&set, &peers[1])];
            for (reader, peer) in readers.iter().zip(&peers) {
                let own = reader.socket.get().unwrap().probe().local().unwrap();
                for text in [&b"one"[..], b"", b"three"] {
                    peer.send_to(text, own).unwrap();
                }
                until(|| reader.came.borrow().len() == 3).await;
                assert_eq!(*reader.came.borrow(), [&b"one"[..], b"", b"three"]);
            }
            let [first, second] = peers;
            drop(first);
            for reader in &readers {
                reader.socket.get().unwrap().send(b"hello").unwrap();
            }
            until(|| readers[0].failed.borrow().is_some()).await;
            assert_eq!(*readers[0].failed.borrow(), Some(io::ErrorKind::ConnectionRefused));
            assert_eq!(second.recv(&mut [0; 8]).unwrap(), 5);
            drop(readers);
            assert!(set.is_empty());
        })
        .unwrap();
    }
}
