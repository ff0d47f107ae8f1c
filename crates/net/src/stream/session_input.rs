//! The socket as a session reads it.

use std::io::{self, Read};
use std::os::fd::BorrowedFd;
use std::task::Poll;

use rustix::net::RecvFlags;

use super::socket::receive;
use crate::event_loop::spend;

/// A socket that a session reads from.
pub struct SessionInput<'s> {
    fd: BorrowedFd<'s>,
    /// Whether the last read left room in its buffer.
    pub(super) emptied: bool,
}

impl<'s> SessionInput<'s> {
    pub(super) fn new(fd: BorrowedFd<'s>) -> Self {
        Self { fd, emptied: true }
    }

    /// Reads once into the buffer's spare room, which must not be empty.
    pub fn read_into(&mut self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        match receive(self.fd, buffer, usize::MAX) {
            Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
            Poll::Ready(result) => {
                let result = result?;
                self.emptied = result.emptied;
                Ok(result.count)
            }
        }
    }
}

impl Read for SessionInput<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let room = buffer.len();
        let recv = || rustix::net::recv(self.fd, &mut *buffer, RecvFlags::empty());
        let (count, _) = rustix::io::retry_on_intr(recv)?;
        self.emptied = count < room;
        spend(count);
        Ok(count)
    }
}
