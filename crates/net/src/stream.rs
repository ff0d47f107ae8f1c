//! A connected socket, TCP or Unix.
//!
//! A stream enters the runtime's epoll set at the first operation that would block: a connection
//! that is accepted, read, answered and closed in one go never does. Reads ask the kernel only when
//! readiness says so; writes try first, since a socket that was read can almost always be written.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::task::{Context, Poll, ready};

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use tokio::io::unix::AsyncFd;

/// A connected socket.
pub struct Stream {
    io: Option<Io>,
}

enum Io {
    Unwatched(OwnedFd),
    Watched(AsyncFd<OwnedFd>),
}

impl Stream {
    /// Takes a connected, non-blocking socket.
    pub fn new(fd: OwnedFd) -> Self {
        Self { io: Some(Io::Unwatched(fd)) }
    }

    /// Reads what is there into the buffer's spare room, which must not be empty. 0 is the end.
    pub fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut Vec<u8>,
    ) -> Poll<io::Result<usize>> {
        let room = buffer.capacity() - buffer.len();
        debug_assert!(room > 0, "a read needs room");
        if let Io::Unwatched(fd) = self.io() {
            match receive(fd.as_fd(), buffer) {
                Err(Errno::AGAIN) => self.watch()?,
                done => return Poll::Ready(done.map_err(Into::into)),
            }
        }
        let Io::Watched(fd) = self.io() else { unreachable!("watched above") };
        loop {
            let mut ready = ready!(fd.poll_read_ready(cx))?;
            match receive(fd.as_fd(), buffer) {
                Err(Errno::AGAIN) => ready.clear_ready(),
                Err(Errno::INTR) => ready.retain_ready(),
                done => {
                    // A short read emptied the socket: the next wait needs no EAGAIN to learn it.
                    match done {
                        Ok(n) if n < room => ready.clear_ready(),
                        _ => ready.retain_ready(),
                    }
                    return Poll::Ready(done.map_err(Into::into));
                }
            }
        }
    }

    /// Waits until there are bytes, or the end, without taking them.
    pub fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.watch()?;
        let Io::Watched(fd) = self.io() else { unreachable!("watched above") };
        ready!(fd.poll_read_ready(cx))?.retain_ready();
        Poll::Ready(Ok(()))
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
            Err(Errno::AGAIN) => self.watch()?,
            done => return Poll::Ready(done.map_err(Into::into)),
        }
        let Io::Watched(fd) = self.io() else { unreachable!("watched above") };
        loop {
            let mut ready = ready!(fd.poll_write_ready(cx))?;
            match write(fd.as_fd()) {
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

    /// Leaves the runtime; the socket stays open.
    pub fn into_fd(mut self) -> OwnedFd {
        match self.io.take().expect("a stream has its socket until the end") {
            Io::Unwatched(fd) => fd,
            Io::Watched(fd) => fd.into_inner(),
        }
    }

    fn io(&self) -> &Io {
        self.io.as_ref().expect("a stream has its socket until the end")
    }

    fn watch(&mut self) -> io::Result<()> {
        if let Some(Io::Unwatched(_)) = self.io {
            let Some(Io::Unwatched(fd)) = self.io.take() else { unreachable!("matched above") };
            // SAFETY: the `OwnedFd` stays open and unchanged inside the `AsyncFd` until both go.
            self.io = Some(Io::Watched(unsafe { AsyncFd::register(fd) }?));
        }
        Ok(())
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self.io() {
            Io::Unwatched(fd) => fd.as_fd(),
            Io::Watched(fd) => fd.get_ref().as_fd(),
        }
    }
}

fn receive(fd: BorrowedFd<'_>, buffer: &mut Vec<u8>) -> Result<usize, Errno> {
    let spare = rustix::buffer::spare_capacity(buffer);
    rustix::net::recv(fd, spare, RecvFlags::empty()).map(|(read, _)| read)
}
