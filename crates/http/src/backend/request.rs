//! A request on its way to a server: its head, and its body from memory, from a file, or as it
//! comes from the client, framed by the protocol.
//!
//! Head and beginning of the body go out in one write where both are there.

use std::io::{self, IoSlice};
use std::os::fd::AsFd;
use std::task::{Context, Poll, ready};

use net::{Stream, buffers};

use super::Conf;
use super::caller::Caller;
use super::protocol::{Frame, Protocol};
use crate::exchange::{Exchange, FileSlice, Flow, RequestBodyError};

/// What follows the head of a request.
pub(crate) enum BackendRequestBody {
    /// Nothing.
    None,
    /// The client's, which has been read.
    Client,
    /// The client's, as it comes.
    Streamed,
    /// Bytes made for the request.
    Made(Vec<u8>),
}

impl BackendRequestBody {
    /// The client's body if the family passes it on. It is read first, unless the family's settings
    /// and `can_stream` allow to pass it on as it arrives.
    pub(crate) async fn of_client(
        x: &mut Exchange,
        family: &Conf,
        can_stream: bool,
    ) -> Result<Self, Flow> {
        if x.request.body.is_announced() && x.request.body.is_unread() {
            let streams = can_stream && family.passes_body() && !family.reads_body_first();
            match streams {
                true if is_read_at_once(x) => x.read_arrived_body().await?,
                true => return Ok(Self::Streamed),
                false => x.read_body().await?,
            }
        }
        Ok(if family.passes_body() { Self::Client } else { Self::None })
    }
}

/// Whether all of the client's body has already arrived, and fits into memory.
fn is_read_at_once(x: &Exchange) -> bool {
    let Some(downstream) = &x.downstream else { return true };
    let rules = &x.location().core.client_body;
    let version = x.request.head.version;
    let has_room = |length| length <= rules.memory_max(version, Some(length)) as u64;
    downstream.whole_body().is_some_and(has_room)
}

/// Where the body of one request comes from.
pub(super) enum BodySource<'a> {
    Memory(&'a [u8]),
    /// The caller's memory.
    Caller,
    File(FileSlice),
    Streamed(Streamed),
}

/// What has come from the client, and is not written yet.
#[derive(Default)]
pub(super) struct Streamed {
    bytes: Vec<u8>,
    /// Whether nothing comes after them.
    is_last: bool,
}

/// A request, and how much of it has been written.
pub(super) struct Outgoing<'a> {
    head: &'a [u8],
    source: BodySource<'a>,
    /// Bytes written so far.
    pub(super) written: u64,
    /// In how many calls; counted up to two.
    writes: u8,
    frame: Frame,
    /// Bytes of the frame that are written, envelopes included.
    frame_written: u64,
    /// Where in the source's memory the frame begins.
    frame_start: usize,
    /// Whether no frame follows.
    is_last: bool,
    is_done: bool,
}

/// Why a request cannot be sent.
pub(super) enum Unsent {
    /// This call failed.
    Call(&'static str, io::Error),
    /// The client's body does not come.
    Client(RequestBodyError),
}

impl<'a> Outgoing<'a> {
    pub(super) fn new(head: &'a [u8], source: BodySource<'a>) -> Self {
        Self {
            head,
            source,
            written: 0,
            writes: 0,
            frame: Frame::bare(0),
            frame_written: 0,
            frame_start: 0,
            is_last: false,
            is_done: false,
        }
    }

    /// Whether any of it is out of our hands: written, or taken from the client for it.
    pub(super) fn has_begun(&self) -> bool {
        let is_taken = || match &self.source {
            BodySource::Streamed(streamed) => !streamed.bytes.is_empty(),
            _ => false,
        };
        self.written > 0 || is_taken()
    }

    /// Whether all of it is written.
    pub(super) fn is_done(&self) -> bool {
        self.is_done
    }

    /// Whether everything is written that has come from the client.
    pub(super) fn waits_for_client(&self) -> bool {
        matches!(self.source, BodySource::Streamed(_))
            && self.head_is_written()
            && self.frame_is_written()
    }

    fn head_is_written(&self) -> bool {
        self.written >= self.head.len() as u64
    }

    fn frame_is_written(&self) -> bool {
        self.frame_written == self.frame.total()
    }

    /// Writes on. Ready once all of it is written.
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        protocol: &mut (impl Protocol + ?Sized),
        caller: &mut impl Caller,
        stream: &mut Stream,
    ) -> Poll<Result<(), Unsent>> {
        while !self.is_done {
            if self.frame_is_written() && !self.is_last {
                let next = self.poll_frame(cx, protocol, caller).map_err(Unsent::Client)?;
                if next.is_pending() && self.head_is_written() {
                    return Poll::Pending;
                }
            }
            if self.writes > 0 {
                ready!(net::poll_share(cx));
            }
            ready!(self.poll_write(cx, caller, stream))?;
        }
        Poll::Ready(Ok(()))
    }

    /// Frames the next piece of the body.
    fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
        protocol: &mut (impl Protocol + ?Sized),
        caller: &mut impl Caller,
    ) -> Poll<Result<(), RequestBodyError>> {
        self.frame_start += self.frame.length as usize;
        (self.frame, self.frame_written) = (Frame::bare(0), 0);
        let (available, is_last) = match &mut self.source {
            BodySource::Memory(bytes) => (bytes.len() - self.frame_start, true),
            BodySource::Caller => (caller.body_in_memory().len() - self.frame_start, true),
            // What is sent of a file is no longer in the slice.
            BodySource::File(slice) => (usize::try_from(slice.len()).unwrap_or(usize::MAX), true),
            BodySource::Streamed(streamed) => {
                if self.frame_start >= streamed.bytes.len() {
                    self.frame_start = 0;
                    ready!(streamed.poll_read(cx, caller))?;
                }
                (streamed.bytes.len() - self.frame_start, streamed.is_last)
            }
        };
        self.frame = protocol.frame(available as u64, is_last);
        self.is_last = is_last && self.frame.length == available as u64;
        Poll::Ready(Ok(()))
    }

    fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        caller: &impl Caller,
        stream: &mut Stream,
    ) -> Poll<Result<(), Unsent>> {
        let head = &self.head[self.head.len().min(self.written as usize)..];
        let [before, bytes, after] = self.frame_rest(caller);
        let parts = [head, before, bytes, after].map(IoSlice::new);
        let first = parts.iter().position(|part| !part.is_empty());
        let Some(first) = first else { return self.poll_rest(cx, stream) };
        let end = parts.iter().rposition(|part| !part.is_empty()).map_or(first, |last| last + 1);
        let in_head = head.len();
        if self.writes == 1 {
            // What the server has not acknowledged yet must not hold back what follows.
            stream.set_nodelay();
        }
        let written = ready!(stream.poll_write(cx, &parts[first..end]));
        let written = written.map_err(|error| Unsent::Call("writev()", error))?;
        self.writes = self.writes.saturating_add(1);
        self.written += written as u64;
        self.frame_written += written.saturating_sub(in_head) as u64;
        self.is_done = self.is_last && self.head_is_written() && self.frame_is_written();
        Poll::Ready(Ok(()))
    }

    /// What is still to be written of the frame from memory. After the piece of a file comes
    /// nothing before that is sent.
    fn frame_rest<'s>(&'s self, caller: &'s impl Caller) -> [&'s [u8]; 3] {
        let bytes: &[u8] = match &self.source {
            BodySource::Memory(bytes) => bytes,
            BodySource::Caller => caller.body_in_memory(),
            BodySource::Streamed(streamed) => &streamed.bytes,
            BodySource::File(_) => return self.frame_rest_of_file(),
        };
        let bytes = &bytes[self.frame_start..][..self.frame.length as usize];
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

    /// Nothing is to be written from memory: a piece of a file follows, or nothing.
    fn poll_rest(&mut self, cx: &mut Context<'_>, stream: &mut Stream) -> Poll<Result<(), Unsent>> {
        if self.frame_is_written() {
            self.is_done = self.is_last;
            return Poll::Ready(Ok(()));
        }
        let BodySource::File(slice) = &mut self.source else { return Poll::Ready(Ok(())) };
        let before = self.frame.before.as_ref().len() as u64;
        let left = before + self.frame.length - self.frame_written;
        let file = slice.file.clone();
        let count = usize::try_from(left).unwrap_or(usize::MAX);
        let sent = match ready!(stream.poll_sendfile(cx, file.as_fd(), &mut slice.start, count)) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            sent => sent,
        };
        let sent = sent.map_err(|error| Unsent::Call("sendfile()", error))? as u64;
        self.writes = self.writes.saturating_add(1);
        self.written += sent;
        self.frame_written += sent;
        net::spend(sent as usize);
        Poll::Ready(Ok(()))
    }
}

impl Streamed {
    /// Takes what has come from the client: all of it, so that it goes in few pieces. Without any,
    /// no buffer is kept.
    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        caller: &mut impl Caller,
    ) -> Poll<Result<(), RequestBodyError>> {
        self.bytes.clear();
        if self.bytes.capacity() == 0 {
            self.bytes = match caller.body_length() {
                Some(length) if length >= buffers::LARGE_SIZE as u64 => buffers::lend_large(),
                _ => buffers::lend(),
            };
        }
        let mut read = Poll::Pending;
        while self.bytes.len() < self.bytes.capacity() {
            match caller.poll_body(cx, &mut self.bytes) {
                Poll::Ready(Ok(1..)) => read = Poll::Ready(Ok(())),
                Poll::Ready(Ok(0)) => {
                    self.is_last = true;
                    read = Poll::Ready(Ok(()));
                    break;
                }
                Poll::Ready(Err(error)) => {
                    read = Poll::Ready(Err(error));
                    break;
                }
                Poll::Pending => break,
            }
        }
        if self.bytes.is_empty() {
            buffers::give_back(std::mem::take(&mut self.bytes));
        }
        read
    }
}

impl Drop for Streamed {
    fn drop(&mut self) {
        buffers::give_back(std::mem::take(&mut self.bytes));
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::os::unix::net::UnixStream;

    use net::LentFuture;

    use super::super::pass::ForClient;
    use super::super::protocol::{Start, http1};
    use super::*;
    use crate::backend::HeaderFilter;
    use crate::h1::tests::Server;
    use crate::site::Exclusive;

    fn to_a_closed_server(_: &mut Exchange) -> Flow {
        Flow::wait(|x| {
            LentFuture::new(async move {
                let (near, far) = UnixStream::pair().unwrap();
                near.set_nonblocking(true).unwrap();
                drop(far);
                let mut stream = Stream::new(near.into());
                let mut protocol = http1::Http1Start::default().start();
                let source = BodySource::Streamed(Streamed::default());
                let mut outgoing = Outgoing::new(b"POST / HTTP/1.1\r\n", source);
                let sent = poll_fn(|cx| {
                    let mut caller = ForClient { x: &mut *x, filter: &HeaderFilter::default() };
                    outgoing.poll(cx, &mut protocol, &mut caller, &mut stream)
                });
                let sent = sent.await;
                assert!(matches!(sent, Err(Unsent::Call("writev()", _))));
                assert_eq!(outgoing.written, 0);
                Flow::Status(if outgoing.has_begun() { 201 } else { 500 })
            })
        })
    }

    #[test]
    fn a_body_that_was_taken_cannot_be_sent_again_although_nothing_was_written() {
        let change = |site: &mut crate::site::Site| {
            let location = site.locations.iter_mut().find(|location| &*location.name == b"/");
            location.unwrap().exclusive = Some(Exclusive::Handler(Box::new(to_a_closed_server)));
        };
        let server = Server::with("server { location / { } }", change, |_| {});
        let reply = server.ask("POST / HTTP/1.0\r\nContent-Length: 3\r\n\r\nabc");
        assert!(reply.starts_with("HTTP/1.1 201 "), "{reply}");
    }
}
