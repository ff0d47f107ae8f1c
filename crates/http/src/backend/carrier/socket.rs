//! A request on a connection of its own: sends head and body, framed by the protocol, and reads the
//! bytes of the reply.
//!
//! Head and beginning of the body are sent in one write if both are available. If the reply arrives
//! early, the rest of the request is dropped, and the connection is not used again.

use std::io::{self, IoSlice};
use std::os::fd::AsFd;
use std::task::{Context, Poll, ready};

use ::upstream::pool::{GroupPool, PoolKey, PoolProtocol, PooledConnection};
use net::Stream;

use super::super::protocol::{Frame, Protocol, Start};
use super::{
    BackendCarrier, CarrierConnection, CarrierError, CarrierFactory, RequestSource, SendProgress,
};
use crate::exchange::RequestBodyError;

/// A request of one of the protocols on its connection.
pub(crate) struct SocketCarrier<P> {
    /// `None` once it was taken out.
    connection: Option<PooledConnection>,
    outgoing: Outgoing,
    protocol: P,
}

/// The sending side of a request.
struct Outgoing {
    source: RequestSource,
    progress: SendProgress,
    /// The number of writes; counted up to two.
    writes: u8,
    head_is_written: bool,
    frame: Frame,
    /// Bytes of the frame that are written, envelopes included.
    frame_written: u64,
    /// The start of the frame in the source's memory.
    frame_start: usize,
    /// Whether no frame follows.
    is_last: bool,
}

impl<P> SocketCarrier<P> {
    pub(crate) fn new(connection: PooledConnection, protocol: P, body: RequestSource) -> Self {
        Self { connection: Some(connection), outgoing: Outgoing::new(body), protocol }
    }
}

impl CarrierConnection for PooledConnection {
    const POOLED_AS: PoolProtocol = PoolProtocol::Exclusive;
    const PROTOCOLS: &'static [&'static [u8]] = &[];

    fn take(pool: &GroupPool, key: &PoolKey) -> Option<Self> {
        pool.take(key)
    }

    fn alone(connection: PooledConnection) -> Self {
        connection
    }

    type Opening = ();
    type OpeningWait = std::future::Ready<bool>;

    fn opening(_: &GroupPool, _: &PoolKey) {}

    fn join_opening(_: &GroupPool, _: &PoolKey) -> Option<Self::OpeningWait> {
        None
    }

    fn begin(stream: Stream, _: &GroupPool, _: impl FnOnce() -> PoolKey, (): ()) -> Self {
        Self::new(stream)
    }

    fn is_reused(&self) -> bool {
        self.requests > 0
    }
}

impl<S: Start> CarrierFactory for S {
    type Connection = PooledConnection;
    type Carrier = SocketCarrier<S::Protocol>;
    const SCHEMA: &'static str = S::SCHEMA;
    const SECURE_SCHEMA: &'static str = S::SECURE_SCHEMA;

    fn carrier(&self, mut connection: PooledConnection, body: RequestSource) -> Self::Carrier {
        connection.requests += 1;
        SocketCarrier::new(connection, self.start(), body)
    }
}

impl<P: Protocol> BackendCarrier for SocketCarrier<P> {
    type Reply = P;

    fn reply(&self) -> &P {
        &self.protocol
    }

    fn reply_mut(&mut self) -> &mut P {
        &mut self.protocol
    }

    #[inline]
    fn poll_send(&mut self, cx: &mut Context<'_>, head: &[u8]) -> Poll<Result<(), CarrierError>> {
        match &mut self.connection {
            Some(connection) => {
                self.outgoing.poll(cx, head, &mut self.protocol, &mut connection.stream)
            }
            None => Poll::Ready(Ok(())),
        }
    }

    fn progress(&self) -> &SendProgress {
        &self.outgoing.progress
    }

    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut Vec<u8>,
        most: usize,
    ) -> Poll<Result<usize, CarrierError>> {
        match &mut self.connection {
            Some(connection) => {
                let read = connection.stream.poll_read_most(cx, buffer, most);
                read.map_err(|error| CarrierError::Call("recv()", error))
            }
            None => Poll::Ready(Ok(0)),
        }
    }

    fn is_cut(&self) -> bool {
        self.connection.as_ref().is_some_and(|connection| connection.stream.is_cut())
    }

    fn take_connection(&mut self) -> Option<PooledConnection> {
        self.connection.take()
    }
}

impl Outgoing {
    fn new(source: RequestSource) -> Self {
        Self {
            source,
            progress: SendProgress::default(),
            writes: 0,
            head_is_written: false,
            frame: Frame::bare(0),
            frame_written: 0,
            frame_start: 0,
            is_last: false,
        }
    }

    fn frame_is_written(&self) -> bool {
        self.frame_written == self.frame.total()
    }

    /// Writes more. Ready once the whole request is written.
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        head: &[u8],
        protocol: &mut impl Protocol,
        stream: &mut Stream,
    ) -> Poll<Result<(), CarrierError>> {
        self.progress.waits_for_client = false;
        while !self.progress.is_done {
            if self.frame_is_written() && !self.is_last {
                let next = self.poll_frame(cx, protocol).map_err(CarrierError::Client)?;
                if next.is_pending() && self.head_is_written {
                    self.progress.waits_for_client = true;
                    return Poll::Pending;
                }
            }
            if self.writes > 0 {
                ready!(net::poll_share(cx));
            }
            ready!(self.poll_write(cx, head, stream))?;
        }
        Poll::Ready(Ok(()))
    }

    /// Frames the next piece of the body.
    fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
        protocol: &mut impl Protocol,
    ) -> Poll<Result<(), RequestBodyError>> {
        self.frame_start += self.frame.length as usize;
        (self.frame, self.frame_written) = (Frame::bare(0), 0);
        let (available, is_last) = match &mut self.source {
            RequestSource::Empty => (0, true),
            // The part of a file that was sent is no longer in the slice.
            RequestSource::File(_, slice) => {
                (usize::try_from(slice.len()).unwrap_or(usize::MAX), true)
            }
            RequestSource::Streamed(streamed) => {
                if self.frame_start >= streamed.bytes().len() {
                    self.frame_start = 0;
                    ready!(streamed.poll_read(cx))?;
                    self.progress.has_begun |= !streamed.bytes().is_empty();
                }
                (streamed.bytes().len() - self.frame_start, streamed.is_last())
            }
            stored => (stored.bytes().len() - self.frame_start, true),
        };
        self.frame = protocol.frame(available as u64, is_last);
        self.is_last = is_last && self.frame.length == available as u64;
        Poll::Ready(Ok(()))
    }

    fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        head: &[u8],
        stream: &mut Stream,
    ) -> Poll<Result<(), CarrierError>> {
        let head = if self.head_is_written { &[] } else { &head[self.progress.written as usize..] };
        let [before, bytes, after] = self.frame_rest();
        let parts = [head, before, bytes, after].map(IoSlice::new);
        let first = parts.iter().position(|part| !part.is_empty());
        let Some(first) = first else { return self.poll_rest(cx, stream) };
        let end = parts.iter().rposition(|part| !part.is_empty()).map_or(first, |last| last + 1);
        let in_head = head.len();
        if self.writes == 1 {
            // Unacknowledged bytes must not delay the next ones.
            stream.set_nodelay();
        }
        let written = ready!(stream.poll_write(cx, &parts[first..end]));
        let written = written.map_err(|error| CarrierError::Call("writev()", error))?;
        self.writes = self.writes.saturating_add(1);
        self.note_written(written as u64);
        self.head_is_written = written >= in_head;
        self.frame_written += written.saturating_sub(in_head) as u64;
        self.progress.is_done = self.is_last && self.head_is_written && self.frame_is_written();
        Poll::Ready(Ok(()))
    }

    fn note_written(&mut self, count: u64) {
        self.progress.written += count;
        self.progress.has_begun |= count > 0;
    }

    /// The unwritten parts of the frame that are in memory. Bytes after the piece of a file wait
    /// for that piece.
    fn frame_rest(&self) -> [&[u8]; 3] {
        if let RequestSource::File(..) = self.source {
            return self.frame_rest_of_file();
        }
        let bytes = match self.frame.length {
            0 => &[],
            length => &self.source.bytes()[self.frame_start..][..length as usize],
        };
        let mut written = self.frame_written as usize;
        [self.frame.before.as_ref(), bytes, self.frame.after.as_ref()].map(|part| {
            let skipped = written.min(part.len());
            written -= skipped;
            &part[skipped..]
        })
    }

    fn frame_rest_of_file(&self) -> [&[u8]; 3] {
        let (before, after) = (self.frame.before.as_ref(), self.frame.after.as_ref());
        let (written, body_end) = (self.frame_written, before.len() as u64 + self.frame.length);
        if written < body_end {
            return [&before[before.len().min(written as usize)..], &[], &[]];
        }
        [&[], &[], &after[(written - body_end) as usize..]]
    }

    /// Sends the piece of a file, if the frame has one: nothing is left to be written from memory.
    fn poll_rest(
        &mut self,
        cx: &mut Context<'_>,
        stream: &mut Stream,
    ) -> Poll<Result<(), CarrierError>> {
        self.head_is_written = true;
        if self.frame_is_written() {
            self.progress.is_done = self.is_last;
            return Poll::Ready(Ok(()));
        }
        let RequestSource::File(_, slice) = &mut self.source else { return Poll::Ready(Ok(())) };
        let before = self.frame.before.as_ref().len() as u64;
        let left = before + self.frame.length - self.frame_written;
        let file = slice.file.clone();
        let count = usize::try_from(left).unwrap_or(usize::MAX);
        let sent = match ready!(stream.poll_sendfile(cx, file.as_fd(), &mut slice.start, count)) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            sent => sent,
        };
        let sent = sent.map_err(|error| CarrierError::Call("sendfile()", error))? as u64;
        self.writes = self.writes.saturating_add(1);
        self.note_written(sent);
        self.frame_written += sent;
        net::spend(sent as usize);
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::os::unix::net::UnixStream;

    use net::LentFuture;

    use super::super::super::protocol::http1::Http1Start;
    use super::*;
    use crate::exchange::{Exchange, Flow};
    use crate::h1::tests::Server;
    use crate::site::Exclusive;

    fn to_a_closed_server(_: &mut Exchange) -> Flow {
        Flow::wait(|x| {
            LentFuture::new(async move {
                let (near, far) = UnixStream::pair().unwrap();
                near.set_nonblocking(true).unwrap();
                drop(far);
                let connection = PooledConnection::new(Stream::new(near.into()));
                let body = RequestSource::streamed(x.arriving_body().unwrap());
                let mut carrier = Http1Start::default().carrier(connection, body);
                let sent = poll_fn(|cx| carrier.poll_send(cx, b"POST / HTTP/1.1\r\n")).await;
                assert!(matches!(sent, Err(CarrierError::Call("writev()", _))));
                let progress = carrier.progress();
                assert_eq!(progress.written, 0);
                Flow::Status(if progress.has_begun { 201 } else { 500 })
            })
        })
    }

    #[test]
    fn a_body_taken_from_the_client_cannot_be_sent_again() {
        let change = |site: &mut crate::site::Site| {
            let location = site.locations.iter_mut().find(|location| &*location.name == b"/");
            location.unwrap().exclusive = Some(Exclusive::Handler(Box::new(to_a_closed_server)));
        };
        let server = Server::with("server { location / { } }", change, |_| {});
        let reply = server.ask("POST / HTTP/1.0\r\nContent-Length: 3\r\n\r\nabc");
        assert!(reply.starts_with("HTTP/1.1 201 "), "{reply}");
    }
}
