//! Parks idle connections: a descriptor in an epoll set, and a value of the owner's.
//!
//! A task per connection costs about a kilobyte even when it holds nothing. A parked connection has
//! no task and no entry in the event loop: its descriptor waits in the set's own epoll instance,
//! which is one descriptor of the event loop. Only connections idle for a second or two pay for
//! this.
//!
//! A connection's session is parked with it, except when the session holds plaintext: no event on
//! the socket would wake it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::rc::Rc;
use std::task::{Poll, ready};

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::time::Timespec;

use crate::event_loop::{Interest, Watched};
use crate::{Detached, Stream, Timer, clock, epoll_failed, memory, slots};

/// Maximum number of events taken in one call.
const EVENTS_PER_TURN: usize = 256;
/// Interval between searches for expired connections.
const TICK_MS: u64 = 1000;

/// Parked connections, each with a value of the owner's.
pub struct IdleSet<T> {
    epoll: Watched,
    parked: RefCell<ParkedStreams<T>>,
}

struct ParkedStreams<T> {
    slots: Vec<Option<ParkedStream<T>>>,
    free: Vec<u32>,
    /// Slots by the second of their expiry; a slot may have been reused since.
    expiring: BTreeMap<u64, Vec<u32>>,
    count: usize,
}

struct ParkedStream<T> {
    stream: Detached,
    expires_s: u64,
    data: T,
}

impl<T> IdleSet<T> {
    /// An empty set.
    pub fn new() -> io::Result<Rc<Self>> {
        let fd = epoll::create(CreateFlags::CLOEXEC)?;
        let epoll = Watched::new(fd, Interest::Read)?;
        let parked = ParkedStreams {
            slots: Vec::new(),
            free: Vec::new(),
            expiring: BTreeMap::new(),
            count: 0,
        };
        Ok(Rc::new(Self { epoll, parked: RefCell::new(parked) }))
    }

    /// Parks a connection until bytes arrive, or ends it after `idle_ms`. If the system refuses, it
    /// is closed at once. A connection with plaintext in memory is returned.
    pub fn park(&self, stream: Stream, data: T, idle_ms: u64) -> Result<(), (Stream, T)> {
        let expires_s = clock::now_ms().saturating_add(idle_ms).div_ceil(1000);
        let stream = stream.detach();
        if stream.has_plaintext() {
            return Err((Stream::attach(stream), data));
        }
        let mut parked = self.parked.borrow_mut();
        let index = parked.free_slot();
        let interest = EventFlags::IN | EventFlags::RDHUP;
        match epoll::add(self.epoll.get(), &stream, EventData::new_u64(index.into()), interest) {
            Ok(()) => parked.fill(index, ParkedStream { stream, expires_s, data }),
            Err(error) => {
                epoll_failed((stream.as_fd().as_raw_fd(), error.into()));
                parked.free.push(index);
            }
        }
        Ok(())
    }

    /// The number of parked connections.
    pub fn len(&self) -> usize {
        self.parked.borrow().count
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Hands connections for which `keep` is false to `end`, which closes them by dropping them.
    pub fn retain(&self, mut keep: impl FnMut(&T) -> bool, mut end: impl FnMut(Detached, T)) {
        let slots = self.parked.borrow().slots.len();
        for index in 0..slots {
            let mut parked = self.parked.borrow_mut();
            if parked.slots[index].as_ref().is_some_and(|slot| !keep(&slot.data)) {
                let slot = parked.empty(index as u32);
                drop(parked);
                self.end(slot, &mut end);
            }
        }
    }

    fn end(&self, slot: Option<ParkedStream<T>>, end: &mut impl FnMut(Detached, T)) {
        if let Some(ParkedStream { stream, data, .. }) = slot {
            let _ = epoll::delete(self.epoll.get(), &stream);
            end(stream, data);
        }
    }

    /// Hands every connection that has bytes, or was closed by the peer, to `leave`, and expired
    /// ones to `end`, which closes them by dropping them. Runs until dropped.
    pub async fn attend(
        self: Rc<Self>,
        mut leave: impl FnMut(Stream, T),
        mut end: impl FnMut(Detached, T),
    ) {
        let tick = Timer::new();
        tick.set(TICK_MS);
        poll_fn(|cx| -> Poll<()> {
            while tick.poll(cx).is_ready() {
                self.expire(&mut end);
                self.parked.borrow_mut().shrink();
                memory::tick();
                tick.set(TICK_MS);
            }
            loop {
                ready!(self.epoll.watch().poll_readable(cx));
                if self.take_ready(&mut leave) < EVENTS_PER_TURN {
                    self.epoll.watch().clear_readable();
                }
            }
        })
        .await;
    }

    fn take_ready(&self, leave: &mut impl FnMut(Stream, T)) -> usize {
        let mut events = Vec::with_capacity(EVENTS_PER_TURN);
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let spare = rustix::buffer::spare_capacity(&mut events);
        let count = epoll::wait(self.epoll.get(), spare, Some(&at_once)).unwrap_or(0);
        for event in &events {
            let index = event.data.u64() as u32;
            let slot = self.parked.borrow_mut().empty(index);
            if let Some(ParkedStream { stream, data, .. }) = slot {
                let _ = epoll::delete(self.epoll.get(), stream.as_fd());
                leave(Stream::attach(stream), data);
            }
        }
        count
    }

    fn expire(&self, end: &mut impl FnMut(Detached, T)) {
        clock::refresh();
        let now_s = clock::now_ms() / 1000;
        loop {
            let expired = self.parked.borrow_mut().expired(now_s);
            let Some((second, indices)) = expired else { return };
            for index in indices {
                let slot = self.parked.borrow_mut().empty_expired(index, second);
                self.end(slot, end);
            }
        }
    }
}

impl<T> ParkedStreams<T> {
    fn free_slot(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() as u32 - 1
        })
    }

    fn shrink(&mut self) {
        slots::shrink(&mut self.slots, &mut self.free, |_| true);
    }

    fn fill(&mut self, index: u32, slot: ParkedStream<T>) {
        self.expiring.entry(slot.expires_s).or_default().push(index);
        self.slots[index as usize] = Some(slot);
        self.count += 1;
    }

    /// The slots of a second that is over.
    fn expired(&mut self, now_s: u64) -> Option<(u64, Vec<u32>)> {
        let entry = self.expiring.first_entry()?;
        (*entry.key() <= now_s).then(|| entry.remove_entry())
    }

    fn empty_expired(&mut self, index: u32, second: u64) -> Option<ParkedStream<T>> {
        // The slot may have been emptied.
        let slot = self.slots.get(index as usize)?.as_ref()?;
        if slot.expires_s == second { self.empty(index) } else { None }
    }

    fn empty(&mut self, index: u32) -> Option<ParkedStream<T>> {
        let slot = self.slots.get_mut(index as usize)?.take()?;
        self.free.push(index);
        self.count -= 1;
        Some(slot)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::io::Write as _;
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::testing;

    #[test]
    fn a_parked_connection_leaves_on_bytes_and_ends_on_timeout() {
        crate::run(async {
            testing::stop_clock();
            let idle_set = IdleSet::new().unwrap();
            let (mut near, far) = UnixStream::pair().unwrap();
            let (silent, other) = UnixStream::pair().unwrap();
            silent.set_nonblocking(true).unwrap();
            assert!(idle_set.park(Stream::new(far.into()), "speaks", 60_000).is_ok());
            assert!(idle_set.park(Stream::new(other.into()), "silent", 2_000).is_ok());
            let left = Rc::new(Cell::new(""));
            let seen = left.clone();
            let ended = Rc::new(Cell::new(""));
            let expired = ended.clone();
            let end = move |_, data| expired.set(data);
            crate::spawn(idle_set.clone().attend(move |_, data| seen.set(data), end));
            near.write_all(b"x").unwrap();
            testing::settle().await;
            assert_eq!((left.get(), idle_set.len()), ("speaks", 1));
            testing::advance(1_000).await;
            assert_eq!(idle_set.len(), 1);
            testing::advance(2_000).await;
            assert!(idle_set.is_empty());
            assert_eq!(ended.get(), "silent");
            assert_eq!(std::io::Read::read(&mut &silent, &mut [0]).unwrap(), 0);
        })
        .unwrap();
    }
}
