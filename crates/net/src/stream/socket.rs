//! A socket and its place in the worker's epoll set.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::task::{Context, Poll, ready};

use rustix::io::Errno;
use rustix::net::RecvFlags;

use crate::event_loop::{EventWatch, Interest, poll_share, spend};
use crate::{buffers, epoll_failed};

/// A connected socket without a session.
pub(super) struct PlainSocket {
    /// Its place in the epoll set, from the first operation that would block. Closing `fd` takes it
    /// out of there.
    watched: Option<EventWatch>,
    fd: OwnedFd,
    /// Whether the kernel may have bytes that no new readiness will tell of.
    pub(super) unread: bool,
    /// Whether a session does not tell the other end that all was sent. Here it takes no memory.
    pub(super) is_broken_off: bool,
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
        Self { watched: None, fd, unread: false, is_broken_off: false }
    }

    /// Leaves the worker; the socket stays open.
    pub(super) fn into_fd(self) -> OwnedFd {
        let Self { watched, fd, .. } = self;
        if let Some(watch) = watched {
            watch.end(&fd);
        }
        fd
    }

    /// Reads in the way of `read`, which is pending where there is nothing.
    #[inline]
    pub(super) fn poll_in(
        &mut self,
        cx: &mut Context<'_>,
        mut read: impl FnMut(BorrowedFd<'_>) -> Poll<io::Result<ReadResult>>,
    ) -> Poll<io::Result<usize>> {
        if self.unread {
            ready!(poll_share(cx));
        }
        if self.unread || self.watched.is_none() {
            match read(self.as_fd()) {
                Poll::Ready(done) => return Poll::Ready(self.note_received(done)),
                Poll::Pending => {
                    self.unread = false;
                    // What was told so far, was told of what has been read.
                    self.watched.iter().for_each(EventWatch::clear_readable);
                }
            }
        }
        let watch = watch(&mut self.watched, &self.fd)?;
        loop {
            ready!(watch.poll_readable(cx));
            match read(self.fd.as_fd()) {
                Poll::Pending => watch.clear_readable(),
                Poll::Ready(done) => {
                    // A short read emptied the socket: the next wait needs no EAGAIN to learn it.
                    if matches!(done, Ok(ReadResult { emptied: true, .. })) {
                        watch.clear_readable();
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

    /// Writes in the way of `write`, which is pending where there is no room. Who cannot be written
    /// to any more may have said why, and nobody has told of it yet: the next read looks.
    #[inline]
    pub(super) fn poll_out(
        &mut self,
        cx: &mut Context<'_>,
        mut write: impl FnMut(BorrowedFd<'_>) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if let Poll::Ready(done) = write(self.as_fd()) {
            self.unread |= done.is_err();
            return Poll::Ready(done);
        }
        let watch = watch(&mut self.watched, &self.fd)?;
        loop {
            ready!(watch.poll_writable(cx));
            match write(self.fd.as_fd()) {
                Poll::Pending => watch.clear_writable(),
                Poll::Ready(done) => {
                    self.unread |= done.is_err();
                    return Poll::Ready(done);
                }
            }
        }
    }

    pub(super) fn poll_closed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Ok(watch) = watch(&mut self.watched, &self.fd) else { return Poll::Ready(()) };
        loop {
            ready!(watch.poll_readable(cx));
            if watch.is_read_ended() {
                return Poll::Ready(());
            }
            self.unread = true;
            watch.clear_readable();
        }
    }

    pub(super) fn poll_writable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        watch(&mut self.watched, &self.fd)?.poll_writable(cx).map(Ok)
    }

    pub(super) fn is_disturbed(&self) -> bool {
        let is_told = match &self.watched {
            None => true,
            Some(watch) => self.unread || watch.is_readable(),
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
        let Ok(watch) = watch(&mut self.watched, &self.fd) else { return Poll::Ready(()) };
        loop {
            ready!(watch.poll_readable(cx));
            if !is_empty(self.fd.as_fd()) {
                return Poll::Ready(());
            }
            watch.clear_readable();
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

/// A stream's place in the worker's epoll set, from now on. Where that fails, the stream is as
/// before.
#[inline(always)]
fn watch<'s>(watched: &'s mut Option<EventWatch>, fd: &OwnedFd) -> io::Result<&'s EventWatch> {
    Ok(match watched {
        Some(watch) => watch,
        none => none.insert(register(fd)?),
    })
}

/// Enters the set: once for each stream.
#[cold]
fn register(fd: &OwnedFd) -> io::Result<EventWatch> {
    let watch = EventWatch::new(fd, Interest::ReadAndWrite);
    watch.map_err(|error| epoll_failed((fd.as_raw_fd(), error)))
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
    spend(count);
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
