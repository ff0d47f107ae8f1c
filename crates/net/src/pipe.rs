//! Kernel pipes, which move bytes from one socket to another without copying them.
//!
//! A pipe needs two descriptors and two system calls to open, so a worker lends its pipes, as it
//! lends [`buffers`](crate::buffers), to connections that have bytes to forward.

use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::task::Poll;

use rustix::io::Errno;
use rustix::pipe::{PipeFlags, SpliceFlags, pipe_with, splice};

use crate::stream::ReadResult;

/// Capacity of a pipe: the kernel's default.
pub const PIPE_SIZE: usize = 64 * 1024;
/// Maximum number of pipes that a worker lends. Connections whose receivers do not read may hold
/// them for long, and the kernel makes pipes small for a user who has more than 1,024 (pipe(7)).
pub const LENT_MAX: usize = 256;
/// Free pipes that a worker keeps; more are closed.
const KEPT_MAX: usize = 64;

thread_local! {
    static FREE: RefCell<Vec<PipeEnds>> = const { RefCell::new(Vec::new()) };
    static LENT: Cell<usize> = const { Cell::new(0) };
}

/// A pipe, and the number of bytes in it.
pub struct SplicePipe {
    /// `None` only while being dropped.
    ends: Option<PipeEnds>,
    held: u32,
}

struct PipeEnds {
    reader: OwnedFd,
    writer: OwnedFd,
}

impl SplicePipe {
    /// An empty pipe; `None`: too many are lent, or no descriptors are left.
    pub fn lend() -> Option<Self> {
        if LENT.get() >= LENT_MAX {
            return None;
        }
        let free = FREE.with_borrow_mut(Vec::pop);
        let ends = free.or_else(|| {
            let (reader, writer) = pipe_with(PipeFlags::NONBLOCK | PipeFlags::CLOEXEC).ok()?;
            Some(PipeEnds { reader, writer })
        })?;
        LENT.set(LENT.get() + 1);
        Some(Self { ends: Some(ends), held: 0 })
    }

    /// The number of bytes in the pipe.
    pub fn held(&self) -> usize {
        self.held as usize
    }

    /// Moves bytes from a socket into the pipe; pending if the socket has none. The pipe must be
    /// empty, since a full pipe looks the same as an empty socket.
    pub(crate) fn fill(&mut self, from: BorrowedFd<'_>) -> Poll<io::Result<ReadResult>> {
        debug_assert_eq!(self.held, 0, "a pipe is emptied first");
        let Some(ends) = &self.ends else { return Poll::Pending };
        let count = match spliced(from, ends.writer.as_fd(), PIPE_SIZE) {
            Err(Errno::AGAIN) => return Poll::Pending,
            count => count?,
        };
        // `count` is at most `PIPE_SIZE`.
        self.held = count as u32;
        // A short count does not mean an empty socket: the pipe may have no more slots for parts of
        // packets.
        Poll::Ready(Ok(ReadResult { count, emptied: false }))
    }

    /// Moves the pipe's bytes to a socket; pending if the socket has no room.
    pub(crate) fn drain(&mut self, to: BorrowedFd<'_>) -> Poll<io::Result<usize>> {
        let Some(ends) = &self.ends else { return Poll::Pending };
        let count = match spliced(ends.reader.as_fd(), to, self.held()) {
            Err(Errno::AGAIN) => return Poll::Pending,
            Ok(0) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
            count => count?,
        };
        self.held -= count as u32;
        Poll::Ready(Ok(count))
    }
}

fn spliced(from: BorrowedFd<'_>, to: BorrowedFd<'_>, most: usize) -> Result<usize, Errno> {
    let flags = SpliceFlags::NONBLOCK | SpliceFlags::MOVE;
    rustix::io::retry_on_intr(|| splice(from, None, to, None, most, flags))
}

impl Drop for SplicePipe {
    /// A pipe with bytes in it is closed, and its bytes are lost.
    fn drop(&mut self) {
        let ends = self.ends.take().filter(|_| self.held == 0);
        // When the thread ends, the list may be gone before the last connection.
        let _ = FREE.try_with(|free| {
            LENT.set(LENT.get() - 1);
            let mut free = free.borrow_mut();
            if free.len() < KEPT_MAX {
                free.extend(ends);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn the_number_of_lent_pipes_is_bounded() {
        let mut lent: Vec<_> = std::iter::from_fn(SplicePipe::lend).collect();
        assert_eq!(lent.len(), LENT_MAX);
        drop(lent.pop());
        assert!(SplicePipe::lend().is_some());
        drop(lent);
        assert_eq!((LENT.get(), FREE.with_borrow(Vec::len)), (0, KEPT_MAX));
    }

    #[test]
    fn a_pipe_with_bytes_in_it_is_not_lent_again() {
        let (mut near, far) = UnixStream::pair().unwrap();
        let (to, mut receiver) = UnixStream::pair().unwrap();
        near.write_all(b"lost").unwrap();
        let mut pipe = SplicePipe::lend().unwrap();
        assert!(matches!(pipe.fill(far.as_fd()), Poll::Ready(Ok(ReadResult { count: 4, .. }))));
        drop(pipe);
        near.write_all(b"found").unwrap();
        let mut pipe = SplicePipe::lend().unwrap();
        assert!(pipe.fill(far.as_fd()).is_ready());
        assert!(matches!(pipe.drain(to.as_fd()), Poll::Ready(Ok(5))));
        let mut found = [0; 5];
        receiver.read_exact(&mut found).unwrap();
        assert_eq!((&found, pipe.held()), (b"found", 0));
        far.set_nonblocking(true).unwrap();
        assert!(pipe.fill(far.as_fd()).is_pending());
        drop(near);
        assert!(matches!(pipe.fill(far.as_fd()), Poll::Ready(Ok(ReadResult { count: 0, .. }))));
    }
}
