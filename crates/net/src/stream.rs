//! A connected socket, TCP or Unix.
//!
//! A stream enters the runtime's epoll set at the first operation that would block: a connection
//! that is accepted, read, answered and closed in one go never does. Reads ask the kernel only when
//! readiness says so; writes try first, since a socket that was read can almost always be written.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, sockopt};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::{buffers, epoll_failed};

/// A connected socket.
pub struct Stream {
    /// Its place in the runtime, from the first operation that would block. Goes before `fd`.
    watched: Option<AsyncFd<RawFd>>,
    fd: OwnedFd,
    /// Whether the kernel may have bytes that no new readiness will tell of.
    unread: bool,
}

impl Stream {
    /// Takes a connected, non-blocking socket.
    pub fn new(fd: OwnedFd) -> Self {
        Self { watched: None, fd, unread: false }
    }

    /// Reads what is there into the buffer's spare room. 0 is the end.
    ///
    /// A buffer without any memory is one that is [lent](buffers::lend), but not before there is
    /// something to read. Any other must have room.
    pub fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut Vec<u8>,
    ) -> Poll<io::Result<usize>> {
        self.poll_read_most(cx, buffer, usize::MAX)
    }

    /// The same, but no more than `most` bytes, which must not be 0.
    pub fn poll_read_most(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut Vec<u8>,
        most: usize,
    ) -> Poll<io::Result<usize>> {
        if self.unread || self.watched.is_none() {
            match receive(self.as_fd(), buffer, most) {
                Err(Errno::AGAIN) => self.unread = false,
                done => return Poll::Ready(self.note_received(done)),
            }
        }
        let (fd, watched) = watch(&mut self.watched, &self.fd)?;
        loop {
            let mut ready = ready!(watched.poll_read_ready(cx))?;
            match receive(fd, buffer, most) {
                Err(Errno::AGAIN) => ready.clear_ready(),
                Err(Errno::INTR) => ready.retain_ready(),
                done => {
                    // A short read emptied the socket: the next wait needs no EAGAIN to learn it.
                    match done {
                        Ok(Received { emptied: true, .. }) => ready.clear_ready(),
                        _ => ready.retain_ready(),
                    }
                    return Poll::Ready(self.note_received(done));
                }
            }
        }
    }

    fn note_received(&mut self, done: Result<Received, Errno>) -> io::Result<usize> {
        self.unread = done.is_ok_and(|received| !received.emptied);
        Ok(done?.count)
    }

    /// Whether bytes may be there that were not read: the last read took all it had room for, or
    /// some came while [`poll_closed`](Self::poll_closed) was asked.
    pub fn may_have_unread(&self) -> bool {
        self.unread
    }

    /// Ready once the other end has closed its side, or is gone. Bytes that come meanwhile stay
    /// where they are.
    pub fn poll_closed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Ok((_, watched)) = watch(&mut self.watched, &self.fd) else { return Poll::Ready(()) };
        loop {
            let Ok(mut ready) = ready!(watched.poll_read_ready(cx)) else {
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

    /// Ready once the socket may take bytes: a connection under way stands, or has failed.
    pub(crate) fn poll_writable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let (_, watched) = watch(&mut self.watched, &self.fd)?;
        watched.poll_write_ready(cx).map_ok(|mut ready| ready.retain_ready())
    }

    /// Whether the other end has closed its side, or sent what nobody asked for, as far as the
    /// kernel has told so far.
    pub fn is_disturbed(&self) -> bool {
        let is_told = match &self.watched {
            None => true,
            // What it calls is called where there is readiness, and leaves it as it is.
            Some(fd) => self.unread || fd.try_io(Interest::READABLE, |_| Ok(())).is_ok(),
        };
        // Readiness may be told of bytes that were read before it was.
        is_told && !is_empty(self.as_fd())
    }

    /// The same; `cx` is woken when it does.
    pub fn poll_disturbed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        // A read that took all it had room for may have been the last one.
        if self.unread && !is_empty(self.as_fd()) {
            return Poll::Ready(());
        }
        self.unread = false;
        let Ok((fd, watched)) = watch(&mut self.watched, &self.fd) else { return Poll::Ready(()) };
        loop {
            let Ok(mut ready) = ready!(watched.poll_read_ready(cx)) else {
                return Poll::Ready(());
            };
            if !is_empty(fd) {
                return Poll::Ready(());
            }
            ready.clear_ready();
        }
    }

    /// Writes as much as the socket takes.
    pub fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_out(cx, |fd| match slices {
            [one] => rustix::net::send(fd, one, SendFlags::NOSIGNAL),
            many => rustix::io::writev(fd, many),
        })
    }

    /// Writes as much as the socket takes, and tells the kernel to wait for what follows.
    pub fn poll_write_more(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let flags = SendFlags::NOSIGNAL | SendFlags::MORE;
        self.poll_out(cx, |fd| rustix::net::send(fd, bytes, flags))
    }

    /// Sends up to `count` bytes of a file from `offset` on, which moves along.
    pub fn poll_sendfile(
        &mut self,
        cx: &mut Context<'_>,
        file: BorrowedFd<'_>,
        offset: &mut u64,
        count: usize,
    ) -> Poll<io::Result<usize>> {
        self.poll_out(cx, |fd| rustix::fs::sendfile(fd, file, Some(offset), count))
    }

    fn poll_out(
        &mut self,
        cx: &mut Context<'_>,
        mut write: impl FnMut(BorrowedFd<'_>) -> Result<usize, Errno>,
    ) -> Poll<io::Result<usize>> {
        match write(self.as_fd()) {
            Err(Errno::AGAIN) => {}
            done => return Poll::Ready(done.map_err(Into::into)),
        }
        let (fd, watched) = watch(&mut self.watched, &self.fd)?;
        loop {
            let mut ready = ready!(watched.poll_write_ready(cx))?;
            match write(fd) {
                Err(Errno::AGAIN) => ready.clear_ready(),
                done => {
                    ready.retain_ready();
                    return Poll::Ready(done.map_err(Into::into));
                }
            }
        }
    }

    /// Says that nothing more will be written.
    pub fn shutdown_write(&self) -> io::Result<()> {
        Ok(rustix::net::shutdown(self, rustix::net::Shutdown::Write)?)
    }

    /// Sends small writes at once, from now on. Other sockets than TCP do so anyway.
    pub fn set_nodelay(&self) {
        let _ = sockopt::set_tcp_nodelay(self, true);
    }

    /// Makes closing the socket reset the connection: the kernel keeps nothing of it.
    pub fn reset_on_close(&self) -> io::Result<()> {
        Ok(sockopt::set_socket_linger(self, Some(Duration::ZERO))?)
    }

    /// Leaves the runtime; the socket stays open.
    pub fn into_fd(self) -> OwnedFd {
        let Self { watched, fd, .. } = self;
        drop(watched);
        fd
    }
}

/// A stream's socket, in the runtime from now on. Where that fails, the stream is as before.
fn watch<'s>(
    watched: &'s mut Option<AsyncFd<RawFd>>,
    fd: &'s OwnedFd,
) -> io::Result<(BorrowedFd<'s>, &'s AsyncFd<RawFd>)> {
    let watched = match watched {
        Some(watched) => watched,
        none => {
            // SAFETY: the `OwnedFd` stays open and unchanged until the `AsyncFd` has gone: it is
            // the stream's field after it, and `into_fd` drops the `AsyncFd` first.
            let registered = unsafe { AsyncFd::register(fd.as_raw_fd()) };
            none.insert(registered.map_err(|failed| epoll_failed(failed.into_parts()))?)
        }
    };
    Ok((fd.as_fd(), watched))
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Whether the socket is open and has nothing to read.
fn is_empty(fd: BorrowedFd<'_>) -> bool {
    let peeked = rustix::net::recv(fd, &mut [0; 1], RecvFlags::PEEK);
    peeked.is_err_and(|error| error == Errno::AGAIN)
}

/// What came of a read.
#[derive(Clone, Copy)]
struct Received {
    count: usize,
    /// Whether there was less than there was room for.
    emptied: bool,
}

fn receive(fd: BorrowedFd<'_>, buffer: &mut Vec<u8>, most: usize) -> Result<Received, Errno> {
    if buffer.capacity() == 0 {
        *buffer = buffers::lend();
    }
    let room = most.min(buffer.capacity() - buffer.len());
    debug_assert!(room > 0, "a read needs room");
    let spare = &mut buffer.spare_capacity_mut()[..room];
    let ((filled, _), _) = rustix::net::recv(fd, spare, RecvFlags::empty())?;
    let count = filled.len();
    // SAFETY: the kernel has filled `count` bytes after the buffer's present end.
    unsafe { buffer.set_len(buffer.len() + count) };
    Ok(Received { count, emptied: count < room })
}

#[cfg(test)]
mod tests {
    use std::io::{Seek as _, Write as _};
    use std::task::Waker;

    use super::*;

    /// A regular file cannot be watched, as no socket can when there is no room left for it.
    #[test]
    fn a_stream_that_cannot_be_watched_is_as_before() {
        crate::run(async {
            let name = format!("weir-net-unwatchable-{}", std::process::id());
            let path = std::env::temp_dir().join(name);
            let mut file = std::fs::File::create_new(&path).unwrap();
            std::fs::remove_file(&path).unwrap();
            let mut stream = Stream::new(file.try_clone().unwrap().into());
            let cx = &mut Context::from_waker(Waker::noop());
            for _ in 0..2 {
                assert!(matches!(stream.poll_writable(cx), Poll::Ready(Err(_))));
                assert!(stream.poll_closed(cx).is_ready() && stream.poll_disturbed(cx).is_ready());
                let slices = [IoSlice::new(b"a"), IoSlice::new(b"b")];
                assert!(matches!(stream.poll_write(cx, &slices), Poll::Ready(Ok(2))));
            }
            drop(stream.into_fd());
            file.flush().unwrap();
            assert_eq!(file.stream_position().unwrap(), 4);
        })
        .unwrap();
    }
}
