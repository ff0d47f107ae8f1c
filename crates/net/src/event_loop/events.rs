//! The kernel's events for a worker's descriptors: one epoll set, edge-triggered.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::time::Timespec;

use super::inbox::WakeInbox;
use super::task_id::TaskId;
use super::tasks::poll_share;
use crate::slots;

/// Maximum number of events taken in one call.
const EVENTS_PER_TURN: usize = 512;
/// Stands for the worker's inbox in place of an index.
const INBOX: u32 = u32::MAX;

thread_local! {
    static EVENTS: RefCell<EventTable> = const { RefCell::new(EventTable::new()) };
}

#[derive(Clone, Copy)]
pub(crate) enum Interest {
    Read,
    ReadAndWrite,
}

/// A descriptor's registration in the worker's epoll set. One task reads, and one writes.
///
/// Dropping it leaves the kernel's set unchanged: closing the descriptor removes it, unless another
/// descriptor of the same file is open. See [`EventWatch::end`].
pub(crate) struct EventWatch {
    index: u32,
    generation: u32,
    not_send: std::marker::PhantomData<*const ()>,
}

impl EventWatch {
    /// Must be called on a worker.
    pub(crate) fn new(fd: impl AsFd, interest: Interest) -> io::Result<Self> {
        let watch = EVENTS.with_borrow_mut(EventTable::add);
        EVENTS.with_borrow(|events| {
            let epoll = events.epoll.as_ref().expect("descriptors are watched on a worker");
            epoll::add(epoll, fd, watch.data(), interest.flags())
        })?;
        Ok(watch)
    }

    /// Removes a descriptor from the set that stays open, here or in another process.
    pub(crate) fn end(&self, fd: impl AsFd) {
        EVENTS.with_borrow(|events| {
            if let Some(epoll) = &events.epoll {
                // Fails if the worker that watched it has ended.
                let _ = epoll::delete(epoll, fd);
            }
        });
    }

    /// Ready once there may be bytes, an end or an error to read; the read may still find nothing.
    /// Stays ready until [`Self::clear_readable`].
    #[inline]
    pub(crate) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.poll(READABLE | READ_ENDED, |entry| &mut entry.reader, cx)
    }

    /// The same for writing.
    #[inline]
    pub(crate) fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.poll(WRITABLE | WRITE_ENDED, |entry| &mut entry.writer, cx)
    }

    /// Called when a read has found nothing, or has emptied the descriptor.
    #[inline]
    pub(crate) fn clear_readable(&self) {
        self.entry(|entry| entry.told &= !READABLE);
    }

    /// Called when a write has found no room.
    #[inline]
    pub(crate) fn clear_writable(&self) {
        self.entry(|entry| entry.told &= !WRITABLE);
    }

    /// Whether [`Self::poll_readable`] would be ready.
    #[inline]
    pub(crate) fn is_readable(&self) -> bool {
        self.entry(|entry| entry.told & (READABLE | READ_ENDED) != 0)
    }

    /// Whether the peer has ended its output.
    pub(crate) fn is_read_ended(&self) -> bool {
        self.entry(|entry| entry.told & READ_ENDED != 0)
    }

    #[inline]
    fn poll(
        &self,
        wanted: u8,
        waker: impl Fn(&mut WatchEntry) -> &mut Option<Waker>,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        let is_told = self.entry(|entry| {
            if entry.told & wanted != 0 {
                return true;
            }
            match waker(entry) {
                Some(waker) if waker.will_wake(cx.waker()) => {}
                waker => *waker = Some(cx.waker().clone()),
            }
            false
        });
        if is_told { poll_share(cx) } else { Poll::Pending }
    }

    #[inline]
    fn entry<T>(&self, look: impl FnOnce(&mut WatchEntry) -> T) -> T {
        EVENTS.with_borrow_mut(|events| look(&mut events.entries[self.index as usize]))
    }

    fn data(&self) -> EventData {
        EventData::new_u64(u64::from(self.generation) << 32 | u64::from(self.index))
    }
}

impl Drop for EventWatch {
    fn drop(&mut self) {
        // When the thread ends, the table may be gone before the last descriptor.
        let _ = EVENTS.try_with(|events| events.borrow_mut().remove(self));
    }
}

impl Interest {
    fn flags(self) -> EventFlags {
        let reads = EventFlags::IN | EventFlags::RDHUP | EventFlags::ET;
        match self {
            Self::Read => reads,
            Self::ReadAndWrite => reads | EventFlags::OUT,
        }
    }
}

/// A descriptor in the worker's epoll set; dropping this removes it.
pub(crate) struct Watched<F: AsFd = OwnedFd> {
    watch: EventWatch,
    fd: F,
}

impl<F: AsFd> Watched<F> {
    /// Must be called on a worker.
    pub(crate) fn new(fd: F, interest: Interest) -> io::Result<Self> {
        Ok(Self { watch: EventWatch::new(&fd, interest)?, fd })
    }

    pub(crate) fn get(&self) -> &F {
        &self.fd
    }

    /// Calls `read` whenever the descriptor may be readable, until the result is not EAGAIN.
    pub(crate) async fn read<T>(
        &self,
        mut read: impl FnMut(&F) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        loop {
            poll_fn(|cx| self.watch.poll_readable(cx)).await;
            match read(&self.fd) {
                Err(Errno::AGAIN) => self.watch.clear_readable(),
                Err(Errno::INTR) => {}
                done => return done,
            }
        }
    }

    /// Calls `write` whenever the descriptor may be writable, until the result is not EAGAIN.
    pub(crate) async fn write<T>(
        &self,
        mut write: impl FnMut(&F) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        loop {
            poll_fn(|cx| self.watch.poll_writable(cx)).await;
            match write(&self.fd) {
                Err(Errno::AGAIN) => self.watch.clear_writable(),
                Err(Errno::INTR) => {}
                done => return done,
            }
        }
    }

    pub(crate) fn watch(&self) -> &EventWatch {
        &self.watch
    }
}

impl<F: AsFd> Drop for Watched<F> {
    fn drop(&mut self) {
        self.watch.end(&self.fd);
    }
}

/// Creates this thread's epoll set, with the inbox in it.
pub(super) fn begin(inbox: Arc<WakeInbox>) -> io::Result<()> {
    let epoll = epoll::create(CreateFlags::CLOEXEC)?;
    let data = EventData::new_u64(INBOX.into());
    epoll::add(&epoll, &*inbox, data, EventFlags::IN | EventFlags::ET)?;
    EVENTS.with_borrow_mut(|events| {
        events.epoll = Some(epoll);
        events.inbox = Some(inbox);
    });
    Ok(())
}

/// Drops this thread's epoll set.
pub(super) fn end() {
    EVENTS.with_borrow_mut(|events| {
        events.epoll = None;
        events.inbox = None;
    });
}

/// Takes the kernel's events, and wakes the tasks that wait for them. `None`: waits for the first
/// event.
pub(super) fn take(timeout: Option<&Timespec>) -> io::Result<()> {
    EVENTS.with_borrow_mut(|events| events.take(timeout))
}

/// Frees the memory of former descriptors.
pub(super) fn shrink() {
    EVENTS.with_borrow_mut(EventTable::shrink);
}

// Readiness as reported by the kernel.
const READABLE: u8 = 1;
const WRITABLE: u8 = 2;
/// Permanent, like the next one.
const READ_ENDED: u8 = 4;
const WRITE_ENDED: u8 = 8;

struct EventTable {
    epoll: Option<OwnedFd>,
    inbox: Option<Arc<WakeInbox>>,
    entries: Vec<WatchEntry>,
    free: Vec<u32>,
    /// The generation of new entries, later than that of any removed entry.
    first_generation: u32,
    taken: Vec<Event>,
}

struct WatchEntry {
    /// Number of descriptors that the entry has had: events of earlier ones are out of date.
    generation: u32,
    told: u8,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

impl EventTable {
    const fn new() -> Self {
        Self {
            epoll: None,
            inbox: None,
            entries: Vec::new(),
            free: Vec::new(),
            first_generation: 0,
            taken: Vec::new(),
        }
    }

    fn add(&mut self) -> EventWatch {
        let index = self.free.pop().unwrap_or_else(|| {
            let generation = self.first_generation;
            self.entries.push(WatchEntry { generation, told: 0, reader: None, writer: None });
            u32::try_from(self.entries.len() - 1).expect("fewer descriptors than bytes of memory")
        });
        let generation = self.entries[index as usize].generation;
        EventWatch { index, generation, not_send: std::marker::PhantomData }
    }

    fn shrink(&mut self) {
        let first = &mut self.first_generation;
        slots::shrink(&mut self.entries, &mut self.free, |entry| {
            *first = entry.generation.wrapping_add(1).max(*first);
            true
        });
    }

    fn remove(&mut self, watch: &EventWatch) {
        let generation = watch.generation.wrapping_add(1);
        let entry = &mut self.entries[watch.index as usize];
        *entry = WatchEntry { generation, told: 0, reader: None, writer: None };
        self.free.push(watch.index);
    }

    fn take(&mut self, timeout: Option<&Timespec>) -> io::Result<()> {
        self.taken.clear();
        self.taken.reserve(EVENTS_PER_TURN);
        let spare = rustix::buffer::spare_capacity(&mut self.taken);
        let epoll = self.epoll.as_ref().expect("a worker runs");
        match epoll::wait(epoll, spare, timeout) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        for event in &self.taken {
            let (data, flags) = (event.data.u64(), event.flags);
            let (generation, index) = ((data >> 32) as u32, data as u32);
            if index == INBOX {
                let inbox = self.inbox.iter().flat_map(|inbox| inbox.take());
                inbox.for_each(TaskId::wake_here);
            } else if let Some(entry) = self.entries.get_mut(index as usize)
                && entry.generation == generation
            {
                entry.tell(flags);
            }
        }
        Ok(())
    }
}

impl WatchEntry {
    fn tell(&mut self, flags: EventFlags) {
        // An error is reported as readiness: the next read or write returns it.
        if flags.intersects(EventFlags::IN | EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR)
        {
            let is_ended = flags.intersects(EventFlags::RDHUP | EventFlags::HUP);
            self.told |= if is_ended { READABLE | READ_ENDED } else { READABLE };
            self.reader.take().into_iter().for_each(Waker::wake);
        }
        if flags.intersects(EventFlags::OUT | EventFlags::HUP | EventFlags::ERR) {
            let is_ended = flags.contains(EventFlags::HUP);
            self.told |= if is_ended { WRITABLE | WRITE_ENDED } else { WRITABLE };
            self.writer.take().into_iter().for_each(Waker::wake);
        }
    }
}
