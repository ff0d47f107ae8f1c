//! Connects a stream's session with its socket: the session gets the socket when that is ready, and
//! its memory is checked first.

use std::io::{self, IoSlice, Write};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::task::{Context, Poll, Waker, ready};

use rustix::net::SendFlags;

use super::secure_session::SecureSession;
use super::session_input::SessionInput;
use super::socket::{PlainSocket, ReadResult, room_of};
use crate::buffers;
use crate::event_loop::{has_share, poll_share};

/// Maximum number of reads that discard unread input before a socket is closed.
const READS_AT_CLOSE: usize = 16;

pub(super) struct Secured {
    session: Box<dyn SecureSession>,
    /// Plaintext that the session has taken and the socket has not. It counts as written once all
    /// of it is flushed, so that a successful write needs no flush afterwards.
    unflushed: usize,
}

impl Secured {
    pub(super) fn new(session: Box<dyn SecureSession>) -> Self {
        Self { session, unflushed: 0 }
    }

    pub(super) fn into_session(self) -> Box<dyn SecureSession> {
        debug_assert_eq!(self.unflushed, 0, "half written");
        self.session
    }

    pub(super) fn session(&self) -> &dyn SecureSession {
        &*self.session
    }

    pub(super) fn may_have_unread(&self) -> bool {
        self.session.has_plaintext() || self.session.is_early()
    }

    pub(super) fn poll_handshake(
        &mut self,
        cx: &mut Context<'_>,
        socket: &mut PlainSocket,
    ) -> Poll<io::Result<()>> {
        if let Err(error) = self.session.proceed() {
            self.say_why(socket);
            return Poll::Ready(Err(error));
        }
        loop {
            ready!(self.poll_flush(cx, socket))?;
            if !self.session.is_handshaking() {
                return Poll::Ready(Ok(()));
            }
            match ready!(self.poll_receive(cx, socket)) {
                Ok(0) => return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
                Ok(_) => {}
                Err(error) => {
                    self.say_why(socket);
                    return Poll::Ready(Err(error));
                }
            }
        }
    }

    pub(super) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        socket: &mut PlainSocket,
        buffer: &mut Vec<u8>,
        most: usize,
    ) -> Poll<io::Result<usize>> {
        if !ready!(self.poll_plaintext(cx, socket))? {
            return Poll::Ready(Ok(0));
        }
        // Decryption may have used up the task's share: the peer can change keys.
        if !has_share() {
            ready!(poll_share(cx));
        }
        let room = most.min(room_of(buffer));
        debug_assert!(room > 0, "a read needs room");
        Poll::Ready(Ok(self.session.take_plaintext(buffer, room)))
    }

    /// Ready once there is plaintext; `false`: there will be none. A peer may send other messages
    /// without end, so the task's share bounds this loop, as it does every loop that reads.
    pub(super) fn poll_plaintext(
        &mut self,
        cx: &mut Context<'_>,
        socket: &mut PlainSocket,
    ) -> Poll<io::Result<bool>> {
        loop {
            // The session may have to answer. An error is ignored here: reading reveals whether the
            // connection is broken.
            let _ = self.poll_flush(cx, socket);
            if self.session.has_plaintext() {
                return Poll::Ready(Ok(true));
            }
            if self.session.is_ended() {
                return Poll::Ready(Ok(false));
            }
            match ready!(self.poll_receive(cx, socket)) {
                Ok(0) => return Poll::Ready(Ok(false)),
                Ok(_) => {}
                Err(error) => {
                    self.say_why(socket);
                    return Poll::Ready(Err(error));
                }
            }
        }
    }

    pub(super) fn poll_closed(
        &mut self,
        cx: &mut Context<'_>,
        socket: &mut PlainSocket,
    ) -> Poll<()> {
        match self.poll_plaintext(cx, socket) {
            // Nothing is read beyond plaintext, but a closed socket is still detected.
            Poll::Ready(Ok(true)) => socket.poll_closed(cx),
            Poll::Ready(_) => Poll::Ready(()),
            Poll::Pending => Poll::Pending,
        }
    }

    pub(super) fn is_disturbed(&mut self, socket: &mut PlainSocket) -> bool {
        self.poll_plaintext(&mut Context::from_waker(Waker::noop()), socket).is_ready()
    }

    pub(super) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        socket: &mut PlainSocket,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_flush(cx, socket))?;
        if self.unflushed == 0 {
            self.unflushed = self.session.send(slices)?;
            ready!(self.poll_flush(cx, socket))?;
        }
        Poll::Ready(Ok(std::mem::take(&mut self.unflushed)))
    }

    /// Reads a piece of a file, and writes it.
    pub(super) fn poll_write_file(
        &mut self,
        cx: &mut Context<'_>,
        socket: &mut PlainSocket,
        file: BorrowedFd<'_>,
        offset: &mut u64,
        count: usize,
    ) -> Poll<io::Result<usize>> {
        let mut buffer = Vec::new();
        if self.unflushed == 0 {
            buffer = buffers::lend();
            buffer.resize(count.min(buffers::BUFFER_SIZE), 0);
            let read = rustix::io::pread(file, &mut *buffer, *offset)?;
            buffer.truncate(read);
        }
        let written = self.poll_write(cx, socket, &[IoSlice::new(&buffer)]);
        buffers::give_back(buffer);
        let written = ready!(written)?;
        *offset += written as u64;
        Poll::Ready(Ok(written))
    }

    pub(super) fn poll_shutdown(
        &mut self,
        cx: &mut Context<'_>,
        socket: &mut PlainSocket,
    ) -> Poll<io::Result<()>> {
        self.session.close();
        ready!(self.poll_flush(cx, socket))?;
        Poll::Ready(socket.shutdown_write())
    }

    pub(super) fn close(&mut self, socket: &mut PlainSocket) {
        if !socket.is_broken_off {
            self.session.close();
        }
        // Errors are ignored, and nothing waits. Messages of the peer's session are read, since
        // closing a socket with unread bytes resets the connection.
        let _ = self.poll_flush(&mut Context::from_waker(Waker::noop()), socket);
        for _ in 0..READS_AT_CLOSE {
            let mut incoming = SessionInput::new(socket.as_fd());
            if self.may_have_unread() || !matches!(self.session.receive(&mut incoming), Ok(1..)) {
                break;
            }
        }
    }

    fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        socket: &mut PlainSocket,
    ) -> Poll<io::Result<usize>> {
        socket.poll_in(cx, |fd| {
            let mut incoming = SessionInput::new(fd);
            match self.session.receive(&mut incoming) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => Poll::Pending,
                received => Poll::Ready(
                    received.map(|count| ReadResult { count, emptied: incoming.emptied }),
                ),
            }
        })
    }

    /// Sends the alert of a failed session, if the socket accepts it at once.
    fn say_why(&mut self, socket: &mut PlainSocket) {
        let _ = self.poll_flush(&mut Context::from_waker(Waker::noop()), socket);
    }

    fn poll_flush(
        &mut self,
        cx: &mut Context<'_>,
        socket: &mut PlainSocket,
    ) -> Poll<io::Result<()>> {
        while self.session.wants_flush() {
            ready!(socket.poll_out(cx, |fd| match self.session.flush(&mut SessionOutput(fd)) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => Poll::Pending,
                Ok(0) => Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                flushed => Poll::Ready(flushed),
            }))?;
        }
        Poll::Ready(Ok(()))
    }
}

/// A socket that a session writes to.
struct SessionOutput<'s>(BorrowedFd<'s>);

impl Write for SessionOutput<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::net::send(self.0, bytes, SendFlags::NOSIGNAL)?)
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        Ok(rustix::io::writev(self.0, slices)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
