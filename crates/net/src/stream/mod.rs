//! A connected socket, TCP or Unix, with an optional session (TLS) between the socket and its user.
//!
//! A stream enters the worker's epoll set at the first operation that would block: a connection
//! that is accepted, read, answered and closed in one go never does. Reads call the kernel only
//! when the socket is ready; writes try first, since a socket that was read can almost always be
//! written.
//!
//! A stream without a session is a plain socket. A session may hold bytes in memory, which the
//! kernel's readiness does not cover, so it is always checked first.

mod secure_session;
mod secured;
mod session_input;
mod socket;

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use rustix::net::{SendFlags, sockopt};

use crate::pipe::SplicePipe;
use crate::tls::TlsDetails;

pub use secure_session::SecureSession;
use secured::Secured;
pub use session_input::SessionInput;
pub(crate) use socket::ReadResult;
use socket::{PlainSocket, receive, sent};

/// A connected socket with an optional session.
pub struct Stream {
    socket: PlainSocket,
    /// `None`: bytes are sent and received unchanged.
    secured: Option<Secured>,
}

/// A stream that has left its worker's event loop: idle, parked, or on its way to another worker.
pub struct Detached {
    fd: OwnedFd,
    session: Option<Box<dyn SecureSession>>,
}

impl Stream {
    /// Takes a connected, non-blocking socket.
    pub fn new(fd: OwnedFd) -> Self {
        Self { socket: PlainSocket::new(fd), secured: None }
    }

    /// Leaves the event loop; the socket stays open. No write may be incomplete.
    pub fn detach(self) -> Detached {
        Detached { fd: self.socket.into_fd(), session: self.secured.map(Secured::into_session) }
    }

    /// Continues with a stream in this worker's event loop.
    pub fn attach(detached: Detached) -> Self {
        let Detached { fd, session } = detached;
        Self { socket: PlainSocket::new(fd), secured: session.map(Secured::new) }
    }

    /// All further bytes go through the session.
    pub fn secure(&mut self, session: Box<dyn SecureSession>) {
        self.secured = Some(Secured::new(session));
    }

    /// Details of the session's handshake, once it is done.
    pub fn tls(&self) -> Option<&Arc<TlsDetails>> {
        self.secured.as_ref().and_then(|secured| secured.session().details())
    }

    /// Ready once the session's handshake is done; at once if there is no session.
    pub fn poll_handshake(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.secured {
            None => Poll::Ready(Ok(())),
            Some(secured) => secured.poll_handshake(cx, &mut self.socket),
        }
    }

    /// Reads available bytes into the buffer's spare room. 0 is the end.
    ///
    /// A buffer without memory is replaced by a [lent](crate::buffers::lend) one once there are
    /// bytes to read. Any other must have room.
    pub fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut Vec<u8>,
    ) -> Poll<io::Result<usize>> {
        self.poll_read_most(cx, buffer, usize::MAX)
    }

    /// Like [`poll_read`](Self::poll_read), but at most `most` bytes; `most` must not be 0.
    pub fn poll_read_most(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut Vec<u8>,
        most: usize,
    ) -> Poll<io::Result<usize>> {
        match &mut self.secured {
            None => self.socket.poll_in(cx, |fd| receive(fd, buffer, most)),
            Some(secured) => secured.poll_read(cx, &mut self.socket, buffer, most),
        }
    }

    /// After the end of input: whether the session's peer did not announce it (TLS without
    /// close_notify). An attacker may have cut off the rest.
    pub fn is_cut(&self) -> bool {
        self.secured.as_ref().is_some_and(|secured| secured.session().is_cut())
    }

    /// From now on, [closing](Self::close_session) does not announce the end of data: the peer sees
    /// TLS end without close_notify. A socket without a session is closed as usual.
    pub fn break_off(&mut self) {
        self.socket.is_broken_off = true;
    }

    /// Whether there may be unread bytes: the last read filled its buffer, bytes arrived during
    /// [`poll_closed`](Self::poll_closed), or a session holds plaintext or waits for the end of the
    /// handshake.
    pub fn may_have_unread(&self) -> bool {
        self.socket.unread || self.secured.as_ref().is_some_and(Secured::may_have_unread)
    }

    /// Ready once the peer has closed its side, or the connection is lost. Bytes that arrive
    /// meanwhile stay in the socket, or are kept as plaintext.
    pub fn poll_closed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.secured {
            None => self.socket.poll_closed(cx),
            Some(secured) => secured.poll_closed(cx, &mut self.socket),
        }
    }

    /// Ready once the socket may accept bytes: a connection attempt has succeeded or failed.
    pub(crate) fn poll_writable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.socket.poll_writable(cx)
    }

    /// Whether the peer has closed its side, or sent unexpected bytes, as far as known to the
    /// kernel by now. A session's own messages do not count.
    pub fn is_disturbed(&mut self) -> bool {
        match &mut self.secured {
            None => self.socket.is_disturbed(),
            Some(secured) => secured.is_disturbed(&mut self.socket),
        }
    }

    /// Like [`is_disturbed`](Self::is_disturbed); while pending, the task is woken when that
    /// changes.
    pub fn poll_disturbed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.secured {
            None => self.socket.poll_disturbed(cx),
            Some(secured) => secured.poll_plaintext(cx, &mut self.socket).map(drop),
        }
    }

    /// Writes as much as the socket accepts. While pending, the call must be repeated with the same
    /// bytes: a session may have taken them already.
    pub fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.secured {
            None => self.socket.poll_out(cx, |fd| match slices {
                [one] => sent(rustix::net::send(fd, one, SendFlags::NOSIGNAL)),
                many => sent(rustix::io::writev(fd, many)),
            }),
            Some(secured) => secured.poll_write(cx, &mut self.socket, slices),
        }
    }

    /// Writes as much as the socket accepts, and makes the kernel wait for more before it sends.
    pub fn poll_write_more(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let flags = SendFlags::NOSIGNAL | SendFlags::MORE;
        match &mut self.secured {
            None => self.socket.poll_out(cx, |fd| sent(rustix::net::send(fd, bytes, flags))),
            Some(secured) => secured.poll_write(cx, &mut self.socket, &[IoSlice::new(bytes)]),
        }
    }

    /// Whether the kernel can send files itself. If not, [`poll_sendfile`] reads them.
    ///
    /// [`poll_sendfile`]: Self::poll_sendfile
    pub fn can_sendfile(&self) -> bool {
        self.secured.is_none()
    }

    /// Sends up to `count` bytes of a file from `offset` on, and advances `offset`.
    pub fn poll_sendfile(
        &mut self,
        cx: &mut Context<'_>,
        file: BorrowedFd<'_>,
        offset: &mut u64,
        count: usize,
    ) -> Poll<io::Result<usize>> {
        match &mut self.secured {
            None => self
                .socket
                .poll_out(cx, |fd| sent(rustix::fs::sendfile(fd, file, Some(offset), count))),
            Some(secured) => secured.poll_write_file(cx, &mut self.socket, file, offset, count),
        }
    }

    /// Whether the kernel can move bytes between this stream and a pipe, which excludes sessions.
    pub fn can_splice(&self) -> bool {
        self.secured.is_none()
    }

    /// Moves available bytes into an empty pipe. 0 is the end. Requires
    /// [`can_splice`](Self::can_splice).
    pub fn poll_splice_in(
        &mut self,
        cx: &mut Context<'_>,
        pipe: &mut SplicePipe,
    ) -> Poll<io::Result<usize>> {
        debug_assert!(self.can_splice(), "a session has to see the bytes");
        self.socket.poll_in(cx, |fd| pipe.fill(fd))
    }

    /// Moves bytes from a pipe, as many as the socket accepts. Requires
    /// [`can_splice`](Self::can_splice).
    pub fn poll_splice_out(
        &mut self,
        cx: &mut Context<'_>,
        pipe: &mut SplicePipe,
    ) -> Poll<io::Result<usize>> {
        debug_assert!(self.can_splice(), "a session has to see the bytes");
        self.socket.poll_out(cx, |fd| pipe.drain(fd))
    }

    /// Announces the end of output. A session announces it first in its own protocol, and waits for
    /// room if necessary.
    pub fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.secured {
            None => Poll::Ready(self.socket.shutdown_write()),
            Some(secured) => secured.poll_shutdown(cx, &mut self.socket),
        }
    }

    /// Called before a stream is dropped whose output is complete: a session announces the end, if
    /// the socket accepts that at once.
    pub fn close_session(&mut self) {
        if let Some(secured) = &mut self.secured {
            secured.close(&mut self.socket);
        }
    }

    /// Sends small writes at once from now on. Only TCP needs this.
    pub fn set_nodelay(&self) {
        let _ = sockopt::set_tcp_nodelay(self, true);
    }

    /// Makes closing the socket reset the connection and discard unsent bytes.
    pub fn reset_on_close(&self) -> io::Result<()> {
        Ok(sockopt::set_socket_linger(self, Some(Duration::ZERO))?)
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Detached {
    /// Whether a session holds plaintext, which the socket's readiness does not show.
    pub fn has_plaintext(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.has_plaintext())
    }
}

impl From<OwnedFd> for Detached {
    fn from(fd: OwnedFd) -> Self {
        Self { fd, session: None }
    }
}

impl AsFd for Detached {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Seek as _, Write as _};
    use std::os::unix::net::UnixStream;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Wake, Waker};

    use super::*;
    use crate::yield_now;

    #[derive(Default)]
    struct CountedWaker(AtomicUsize);

    impl Wake for CountedWaker {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Reads with this waker. Returns the number of bytes; `None`: pending.
    fn read_as(waker: &Arc<CountedWaker>, stream: &mut Stream) -> Option<usize> {
        let waker = Waker::from(waker.clone());
        match stream.poll_read(&mut Context::from_waker(&waker), &mut Vec::new()) {
            Poll::Pending => None,
            Poll::Ready(read) => Some(read.unwrap()),
        }
    }

    #[test]
    fn the_last_polling_task_is_woken_once() {
        crate::run(async {
            let (mut far, near) = UnixStream::pair().unwrap();
            near.set_nonblocking(true).unwrap();
            let mut stream = Stream::new(near.into());
            let [first, second] = [(), ()].map(|()| Arc::<CountedWaker>::default());
            let woken = || [&first, &second].map(|waker| waker.0.load(Ordering::Relaxed));
            for asking in [&first, &second, &second, &first, &second, &second] {
                assert_eq!(read_as(asking, &mut stream), None);
            }
            far.write_all(b"one").unwrap();
            yield_now().await;
            assert_eq!((woken(), read_as(&first, &mut stream)), ([0, 1], Some(3)));
            // The waker was used, so it must be registered again.
            assert_eq!(read_as(&second, &mut stream), None);
            far.write_all(b"two").unwrap();
            yield_now().await;
            assert_eq!((woken(), read_as(&second, &mut stream)), ([0, 2], Some(3)));
        })
        .unwrap();
    }

    /// All in one turn, before any readiness is reported.
    #[test]
    fn bytes_received_before_a_failed_write_are_read() {
        crate::run(async {
            let (mut far, near) = UnixStream::pair().unwrap();
            near.set_nonblocking(true).unwrap();
            let mut stream = Stream::new(near.into());
            let reader = Arc::<CountedWaker>::default();
            assert_eq!(read_as(&reader, &mut stream), None);
            far.write_all(b"why").unwrap();
            drop(far);
            assert_eq!(read_as(&reader, &mut stream), None);
            let cx = &mut Context::from_waker(Waker::noop());
            assert!(matches!(stream.poll_write(cx, &[IoSlice::new(b"a")]), Poll::Ready(Err(_))));
            assert_eq!(read_as(&reader, &mut stream), Some(3));
        })
        .unwrap();
    }

    /// A regular file cannot be watched, which simulates a full epoll set.
    #[test]
    fn a_stream_that_cannot_be_watched_stays_usable() {
        crate::run(async {
            let mut file =
                std::fs::File::create_new(::testing::Folder::new().join("file")).unwrap();
            let mut stream = Stream::new(file.try_clone().unwrap().into());
            let cx = &mut Context::from_waker(Waker::noop());
            for _ in 0..2 {
                assert!(matches!(stream.poll_writable(cx), Poll::Ready(Err(_))));
                assert!(stream.poll_closed(cx).is_ready() && stream.poll_disturbed(cx).is_ready());
                let slices = [IoSlice::new(b"a"), IoSlice::new(b"b")];
                assert!(matches!(stream.poll_write(cx, &slices), Poll::Ready(Ok(2))));
            }
            drop(stream.detach());
            file.flush().unwrap();
            assert_eq!(file.stream_position().unwrap(), 4);
        })
        .unwrap();
    }
}
