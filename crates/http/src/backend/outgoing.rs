//! A request on its way to a server: its head, and its body from memory, from a file, or as it
//! comes from the client.
//!
//! Head and beginning of the body go out in one write where both are there.

use std::io::{self, IoSlice};
use std::os::fd::AsFd;
use std::task::{Context, Poll, ready};

use net::{Stream, buffers};
use wire::http1::chunked::{ChunkHead, LAST_CHUNK};

use crate::exchange::{Exchange, FileSlice, Kept, RequestBodyError};

/// What follows the head of a request.
pub(super) enum Body {
    None,
    /// Bytes that stand in the exchange: its body in memory.
    Kept,
    /// Bytes made for it.
    Made(Vec<u8>),
    File(FileSlice),
    /// As it comes from the client, chunked again where its length is not known.
    Streamed {
        chunked: bool,
    },
}

/// A request, and how much of it has been written.
pub(super) struct Outgoing<'a> {
    head: &'a [u8],
    body: &'a mut Body,
    /// Bytes written so far.
    pub(super) written: u64,
    /// In how many calls; counted up to two.
    writes: u8,
    piece: Piece,
    is_done: bool,
}

/// Why a request cannot be sent.
pub(super) enum Unsent {
    /// This call failed.
    Call(&'static str, io::Error),
    /// The client's body does not come.
    Client(RequestBodyError),
}

/// A piece of a streamed body, framed.
#[derive(Default)]
struct Piece {
    before: Option<ChunkHead>,
    bytes: Vec<u8>,
    after: &'static [u8],
    written: usize,
    /// Whether nothing follows it.
    is_last: bool,
}

const CHUNK_END: &[u8] = b"\r\n";
/// What ends a chunk and the body.
const CHUNK_AND_BODY_END: &[u8] = b"\r\n0\r\n\r\n";

impl<'a> Outgoing<'a> {
    pub(super) fn new(head: &'a [u8], body: &'a mut Body) -> Self {
        Self { head, body, written: 0, writes: 0, piece: Piece::default(), is_done: false }
    }

    /// Whether any of it is out of our hands: written, or taken from the client for it.
    pub(super) fn has_begun(&self) -> bool {
        self.written > 0 || !self.piece.bytes.is_empty()
    }

    /// Whether all of it is written.
    pub(super) fn is_done(&self) -> bool {
        self.is_done
    }

    /// Whether everything is written that has come from the client.
    pub(super) fn waits_for_client(&self) -> bool {
        matches!(self.body, Body::Streamed { .. })
            && self.written >= self.head.len() as u64
            && self.piece.is_written()
    }

    /// Writes on. Ready once all of it is written.
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        x: &mut Exchange,
        stream: &mut Stream,
    ) -> Poll<Result<(), Unsent>> {
        while !self.is_done {
            if let Body::Streamed { chunked } = *self.body
                && self.piece.is_written()
                && !self.piece.is_last
            {
                let piece = self.piece.poll_next(cx, x, chunked).map_err(Unsent::Client)?;
                if piece.is_pending() && self.written >= self.head.len() as u64 {
                    return Poll::Pending;
                }
            }
            ready!(self.poll_write(cx, x, stream))?;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        x: &Exchange,
        stream: &mut Stream,
    ) -> Poll<Result<(), Unsent>> {
        let head = &self.head[self.head.len().min(self.written as usize)..];
        let rest = self.in_memory(x);
        let parts = [head, rest[0], rest[1], rest[2]].map(IoSlice::new);
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
        self.piece.written += written.saturating_sub(in_head);
        Poll::Ready(Ok(()))
    }

    /// What is still to be written of the body, as far as it is in memory.
    fn in_memory<'s>(&'s self, x: &'s Exchange) -> [&'s [u8]; 3] {
        let memory: &[u8] = match &*self.body {
            Body::Made(bytes) => bytes,
            Body::Kept => kept(x),
            Body::None | Body::File(_) => &[],
            Body::Streamed { .. } => return self.piece.rest(),
        };
        let written = (self.written as usize).saturating_sub(self.head.len());
        [&memory[written.min(memory.len())..], &[], &[]]
    }

    /// Nothing is left in memory: a file follows, or nothing.
    fn poll_rest(&mut self, cx: &mut Context<'_>, stream: &mut Stream) -> Poll<Result<(), Unsent>> {
        let slice = match &mut *self.body {
            Body::File(slice) if !slice.is_empty() => slice,
            Body::Streamed { .. } if !self.piece.is_last => return Poll::Ready(Ok(())),
            _ => {
                self.is_done = true;
                return Poll::Ready(Ok(()));
            }
        };
        let count = usize::try_from(slice.len()).unwrap_or(usize::MAX);
        let file = slice.file.clone();
        let sent = ready!(stream.poll_sendfile(cx, file.as_fd(), &mut slice.start, count));
        let sent = match sent {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            sent => sent,
        };
        self.written += sent.map_err(|error| Unsent::Call("sendfile()", error))? as u64;
        Poll::Ready(Ok(()))
    }
}

/// The body of the request, where it is in memory.
fn kept(x: &Exchange) -> &[u8] {
    match x.request.body.kept() {
        Some(Kept::Memory(bytes)) => bytes,
        Some(Kept::File(_)) | None => &[],
    }
}

impl Piece {
    fn parts(&self) -> [&[u8]; 3] {
        [self.before.as_ref().map_or(&[], ChunkHead::as_ref), &self.bytes, self.after]
    }

    fn is_written(&self) -> bool {
        self.written == self.parts().iter().map(|part| part.len()).sum::<usize>()
    }

    /// What of each part is still to be written.
    fn rest(&self) -> [&[u8]; 3] {
        let mut written = self.written;
        self.parts().map(|part| {
            let skipped = written.min(part.len());
            written -= skipped;
            &part[skipped..]
        })
    }

    /// Takes what has come from the client: all of it, so that it goes in few pieces. Without any,
    /// no buffer is kept.
    fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
        x: &mut Exchange,
        chunked: bool,
    ) -> Poll<Result<(), RequestBodyError>> {
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.clear();
        self.written = 0;
        if bytes.capacity() == 0 {
            bytes = match x.request.body.length() {
                Some(length) if length >= buffers::LARGE_SIZE as u64 => buffers::lend_large(),
                _ => buffers::lend(),
            };
        }
        let mut read = Poll::Pending;
        while bytes.len() < bytes.capacity() {
            match x.poll_body(cx, &mut bytes) {
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
        if bytes.is_empty() {
            buffers::give_back(std::mem::take(&mut bytes));
        }
        self.frame(bytes, chunked);
        read
    }

    fn frame(&mut self, bytes: Vec<u8>, chunked: bool) {
        (self.before, self.after) = match (chunked, bytes.is_empty(), self.is_last) {
            (false, ..) | (true, true, false) => (None, &[][..]),
            (true, true, true) => (None, LAST_CHUNK),
            (true, false, true) => (Some(ChunkHead::new(bytes.len() as u64)), CHUNK_AND_BODY_END),
            (true, false, false) => (Some(ChunkHead::new(bytes.len() as u64)), CHUNK_END),
        };
        self.bytes = bytes;
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        buffers::give_back(std::mem::take(&mut self.bytes));
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::exchange::Flow;
    use crate::h1::tests::Server;

    fn to_a_closed_server(_: &mut Exchange) -> Flow {
        Flow::Wait(Box::new(|x| {
            Box::pin(async move {
                let (near, far) = UnixStream::pair().unwrap();
                near.set_nonblocking(true).unwrap();
                drop(far);
                let (mut stream, mut body) =
                    (Stream::new(near.into()), Body::Streamed { chunked: false });
                let mut outgoing = Outgoing::new(b"POST / HTTP/1.1\r\n", &mut body);
                let sent = poll_fn(|cx| outgoing.poll(cx, x, &mut stream)).await;
                assert!(matches!(sent, Err(Unsent::Call("writev()", _))));
                assert_eq!(outgoing.written, 0);
                Flow::Status(if outgoing.has_begun() { 201 } else { 500 })
            })
        }))
    }

    #[test]
    fn a_body_that_was_taken_cannot_be_sent_again_although_nothing_was_written() {
        let change = |site: &mut crate::site::Site| {
            let location = site.locations.iter_mut().find(|location| &*location.name == b"/");
            location.unwrap().exclusive = Some(Box::new(to_a_closed_server));
        };
        let server = Server::with("server { location / { } }", change, |_| {});
        let reply = server.ask("POST / HTTP/1.0\r\nContent-Length: 3\r\n\r\nabc");
        assert!(reply.starts_with("HTTP/1.1 201 "), "{reply}");
    }
}
