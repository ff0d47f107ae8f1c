//! A socket and its place in the runtime.

use std::io;
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::task::{Context, Poll, ready};

use rustix::io::Errno;
use rustix::net::RecvFlags;
use tokio::io::Interest;
use tokio::io::unix::{AsyncFd, AsyncFdReadyGuard};
use tokio::task::coop;

use crate::{buffers, epoll_failed};

/// A connected socket without a session.
pub(super) struct PlainSocket {
    /// Its place in the runtime, from the first operation that would block. Goes before `fd`.
    watched: Option<WatchedSocket>,
    fd: OwnedFd,
    /// Whether the kernel may have bytes that no new readiness will tell of.
    pub(super) unread: bool,
}

/// A socket in the runtime's epoll set.
struct WatchedSocket {
    fd: AsyncFd<RawFd>,
    /// The task that the runtime wakes when the socket can be read. `None`: perhaps none.
    /// It is known by its waker's data, which nothing else is stored at while the runtime keeps it.
    reader: Option<NonZeroUsize>,
}

/// What came of a read.
#[derive(Clone, Copy)]
pub(crate) struct ReadResult {
    pub(crate) count: usize,
    /// Whether there was less than there was room for.
    pub(crate) emptied: bool,
}

impl PlainSocket {
    pub(super) fn new(fd: OwnedFd) -> Self {
        Self { watched: None, fd, unread: false }
    }

    /// Leaves the runtime; the socket stays open.
    pub(super) fn into_fd(self) -> OwnedFd {
        let Self { watched, fd, .. } = self;
        drop(watched);
        fd
    }

    /// Reads in the way of `read`, which is pending where there is nothing.
    #[inline]
    pub(super) fn poll_in(
        &mut self,
        cx: &mut Context<'_>,
        mut read: impl FnMut(BorrowedFd<'_>) -> Poll<io::Result<ReadResult>>,
    ) -> Poll<io::Result<usize>> {
        // What the runtime told before a read that found nothing, it told of what was read before.
        let mut is_outdated = false;
        if self.unread || self.watched.is_none() {
            match read(self.as_fd()) {
                Poll::Pending => (self.unread, is_outdated) = (false, self.watched.is_some()),
                Poll::Ready(done) => return Poll::Ready(self.note_received(done)),
            }
        }
        let (fd, watched) = watch(&mut self.watched, &self.fd)?;
        loop {
            let mut ready = ready!(watched.poll_readable(cx))?;
            if std::mem::take(&mut is_outdated) {
                ready.clear_ready();
                continue;
            }
            match read(fd) {
                Poll::Pending => ready.clear_ready(),
                Poll::Ready(done) => {
                    // A short read emptied the socket: the next wait needs no EAGAIN to learn it.
                    match done {
                        Ok(ReadResult { emptied: true, .. }) => ready.clear_ready(),
                        _ => ready.retain_ready(),
                    }
                    return Poll::Ready(self.note_received(done));
                }
            }
        }
    }

    fn note_received(&mut self, done: io::Result<ReadResult>) -> io::Result<usize> {
        self.unread = matches!(done, Ok(ReadResult { emptied: false, .. }));
        Ok(done?.count)
    }

    /// Writes in the way of `write`, which is pending where there is no room.
    #[inline]
    pub(super) fn poll_out(
        &mut self,
        cx: &mut Context<'_>,
        mut write: impl FnMut(BorrowedFd<'_>) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if let Poll::Ready(done) = write(self.as_fd()) {
            return Poll::Ready(done);
        }
        let (fd, watched) = watch(&mut self.watched, &self.fd)?;
        loop {
            let mut ready = ready!(watched.fd.poll_write_ready(cx))?;
            match write(fd) {
                Poll::Pending => ready.clear_ready(),
                done => {
                    ready.retain_ready();
                    return done;
                }
            }
        }
    }

    pub(super) fn poll_closed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Ok((_, watched)) = watch(&mut self.watched, &self.fd) else { return Poll::Ready(()) };
        loop {
            let Ok(mut ready) = ready!(watched.poll_readable(cx)) else {
                return Poll::Ready(());
            };
            if ready.ready().is_read_closed() {
                ready.retain_ready();
                return Poll::Ready(());
            }
            self.unread = true;
            ready.clear_ready();
        }
    }

    pub(super) fn poll_writable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let (_, watched) = watch(&mut self.watched, &self.fd)?;
        watched.fd.poll_write_ready(cx).map_ok(|mut ready| ready.retain_ready())
    }

    pub(super) fn is_disturbed(&self) -> bool {
        let is_told = match &self.watched {
            None => true,
            // What it calls is called where there is readiness, and leaves it as it is.
            Some(watched) => self.unread || watched.is_told_readable(),
        };
        // Readiness may be told of bytes that were read before it was.
        is_told && !is_empty(self.as_fd())
    }

    pub(super) fn poll_disturbed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        // A read that took all it had room for may have been the last one.
        if self.unread && !is_empty(self.as_fd()) {
            return Poll::Ready(());
        }
        self.unread = false;
        let Ok((fd, watched)) = watch(&mut self.watched, &self.fd) else { return Poll::Ready(()) };
        loop {
            let Ok(mut ready) = ready!(watched.poll_readable(cx)) else {
                return Poll::Ready(());
            };
            if !is_empty(fd) {
                return Poll::Ready(());
            }
            ready.clear_ready();
        }
    }

    pub(super) fn shutdown_write(&self) -> io::Result<()> {
        Ok(rustix::net::shutdown(self, rustix::net::Shutdown::Write)?)
    }
}

impl AsFd for PlainSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl WatchedSocket {
    /// Ready once the runtime has been told that there is something to read.
    ///
    /// A task that waits for more than one thing asks again whenever one of them happens. The
    /// runtime takes a lock to find out that it would wake the same task; here it is known.
    #[inline]
    fn poll_readable(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<AsyncFdReadyGuard<'_, RawFd>>> {
        let waker = NonZeroUsize::new(cx.waker().data().addr());
        if waker.is_some() && self.reader == waker && !self.is_told_readable() {
            return Poll::Pending;
        }
        let polled = self.fd.poll_read_ready(cx);
        // A task that is told to wait since it has had its share is not woken by the socket.
        let is_registered = polled.is_pending() && coop::has_budget_remaining();
        self.reader = waker.filter(|_| is_registered);
        polled
    }

    /// What it calls is called where there is readiness, and leaves it as it is.
    fn is_told_readable(&self) -> bool {
        self.fd.try_io(Interest::READABLE, |_| Ok(())).is_ok()
    }
}

/// A stream's socket, in the runtime from now on. Where that fails, the stream is as before.
#[inline(always)]
fn watch<'s>(
    watched: &'s mut Option<WatchedSocket>,
    fd: &'s OwnedFd,
) -> io::Result<(BorrowedFd<'s>, &'s mut WatchedSocket)> {
    let watched = match watched {
        Some(watched) => watched,
        none => none.insert(WatchedSocket { fd: register(fd)?, reader: None }),
    };
    Ok((fd.as_fd(), watched))
}

/// Enters the runtime: once for each stream.
#[cold]
fn register(fd: &OwnedFd) -> io::Result<AsyncFd<RawFd>> {
    // SAFETY: the `OwnedFd` stays open and unchanged until the `AsyncFd` has gone: it is the
    // socket's field after it, and `into_fd` drops the `AsyncFd` first.
    let registered = unsafe { AsyncFd::register(fd.as_raw_fd()) };
    registered.map_err(|failed| epoll_failed(failed.into_parts()))
}

/// Whether the socket is open and has nothing to read.
fn is_empty(fd: BorrowedFd<'_>) -> bool {
    let peeked = rustix::net::recv(fd, &mut [0; 1], RecvFlags::PEEK);
    peeked.is_err_and(|error| error == Errno::AGAIN)
}

/// What came of a call: pending where it would block.
#[inline]
pub(super) fn sent(done: Result<usize, Errno>) -> Poll<io::Result<usize>> {
    match done {
        Err(Errno::AGAIN) => Poll::Pending,
        done => Poll::Ready(done.map_err(Into::into)),
    }
}

/// Reads into the buffer's spare room.
#[inline]
pub(super) fn receive(
    fd: BorrowedFd<'_>,
    buffer: &mut Vec<u8>,
    most: usize,
) -> Poll<io::Result<ReadResult>> {
    let is_lent = buffer.capacity() == 0;
    let room = most.min(room_of(buffer));
    debug_assert!(room > 0, "a read needs room");
    let spare = &mut buffer.spare_capacity_mut()[..room];
    let count = match rustix::io::retry_on_intr(|| {
        rustix::net::recv(fd, &mut *spare, RecvFlags::empty()).map(|((filled, _), _)| filled.len())
    }) {
        Ok(count) => count,
        Err(error) => {
            if is_lent {
                buffers::give_back(std::mem::take(buffer));
            }
            return match error {
                Errno::AGAIN => Poll::Pending,
                error => Poll::Ready(Err(error.into())),
            };
        }
    };
    // SAFETY: the kernel has filled `count` bytes after the buffer's present end.
    unsafe { buffer.set_len(buffer.len() + count) };
    Poll::Ready(Ok(ReadResult { count, emptied: count < room }))
}

/// How much fits into the buffer; one without any memory is lent.
#[inline]
pub(super) fn room_of(buffer: &mut Vec<u8>) -> usize {
    if buffer.capacity() == 0 {
        *buffer = buffers::lend();
    }
    buffer.capacity() - buffer.len()
}
