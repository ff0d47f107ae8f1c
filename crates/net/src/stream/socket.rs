//! A socket and its registration in the worker's epoll set.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::task::{Context, Poll, ready};

use rustix::io::Errno;
use rustix::net::RecvFlags;

use crate::event_loop::{EventWatch, Interest, poll_share, spend};
use crate::{buffers, epoll_failed};

/// A connected socket without a session.
pub(super) struct PlainSocket {
    /// The registration in the epoll set, from the first operation that would block. Closing `fd`
    /// removes it.
    watched: Option<EventWatch>,
    fd: OwnedFd,
    /// Whether the kernel may have bytes that no further event will announce.
    pub(super) unread: bool,
    /// Whether a session does not announce the end of output. It is stored here to save memory.
    pub(super) is_broken_off: bool,
}

/// The result of a read.
#[derive(Clone, Copy)]
pub(crate) struct ReadResult {
    pub(crate) count: usize,
    /// Whether the read left room in its buffer.
    pub(crate) emptied: bool,
}

impl PlainSocket {
    pub(super) fn new(fd: OwnedFd) -> Self {
        Self { watched: None, fd, unread: false, is_broken_off: false }
    }

    /// Leaves the worker's epoll set; the socket stays open.
    pub(super) fn into_fd(self) -> OwnedFd {
        let Self { watched, fd, .. } = self;
        if let Some(watch) = watched {
            watch.end(&fd);
        }
        fd
    }

    /// Reads with `read`, which is pending if there are no bytes.
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
                    // The readiness reported so far is about bytes that were read.
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
                    // A short read emptied the socket, so the next read need not get EAGAIN first.
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

    /// Writes with `write`, which is pending if there is no room. A peer that cannot be written to
    /// may have sent its reason, without an event so far: the next read tries at once.
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
        // Readiness may be about bytes that were read since.
        is_told && !is_empty(self.as_fd())
    }

    pub(super) fn poll_disturbed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        // A read that filled its buffer may have been the last one.
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

/// Registers a socket in the worker's epoll set if necessary. After a failure the stream is
/// unchanged.
#[inline(always)]
fn watch<'s>(watched: &'s mut Option<EventWatch>, fd: &OwnedFd) -> io::Result<&'s EventWatch> {
    Ok(match watched {
        Some(watch) => watch,
        none => none.insert(register(fd)?),
    })
}

/// Adds a socket to the set, once per stream.
#[cold]
fn register(fd: &OwnedFd) -> io::Result<EventWatch> {
    let watch = EventWatch::new(fd, Interest::ReadAndWrite);
    watch.map_err(|error| epoll_failed((fd.as_raw_fd(), error)))
}

/// Whether the socket is open and has no bytes to read.
fn is_empty(fd: BorrowedFd<'_>) -> bool {
    let peeked = rustix::net::recv(fd, &mut [0; 1], RecvFlags::PEEK);
    peeked.is_err_and(|error| error == Errno::AGAIN)
}

/// The result of a call; pending if it would block.
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
    // SAFETY: the kernel has filled `count` bytes after the buffer's current end.
    unsafe { buffer.set_len(buffer.len() + count) };
    Poll::Ready(Ok(ReadResult { count, emptied: count < room }))
}

/// The room in the buffer; a buffer without memory is replaced by a lent one.
#[inline]
pub(super) fn room_of(buffer: &mut Vec<u8>) -> usize {
    if buffer.capacity() == 0 {
        *buffer = buffers::lend();
    }
    buffer.capacity() - buffer.len()
}
