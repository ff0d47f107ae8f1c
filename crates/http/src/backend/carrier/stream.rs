//! A request as a stream of a shared HTTP/2 connection.
//!
//! The request's head arrives as HTTP/1 text and is encoded as fields. The reply's fields are
//! written as HTTP/1 text, because `ReplyHead` consists of offsets into such text.

use std::io;
use std::os::unix::fs::FileExt as _;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use ::upstream::pool::PooledConnection;
use http2_client::{ClientHead, ClientStream, StreamFailure};
use net::buffers;
use wire::http1::response::{ReplyBody, ResponseHeadParser};
use wire::http2::{FieldBlock, FieldWriter, Http2Code};
use wire::reply::ReplyHead;

use super::super::protocol::{
    DecodedBody, HeadEvent, ProtocolError, ReplyLength, ReplyReader, http1,
};
use super::multiplexed::MultiplexedConnection;
use super::{
    BackendCarrier, CarrierError, CarrierFactory, RequestSource, SendProgress, StreamedSource,
};
use crate::decimal;
use crate::exchange::{Fields, FileSlice};

/// Properties of a request that its carrier needs.
#[derive(Clone, Copy)]
pub(crate) struct StreamRequest {
    /// Whether it is a HEAD request: the reply has no body.
    pub(crate) to_head: bool,
    pub(crate) is_secured: bool,
    /// The most bytes of fields after the reply's body; `None`: they are not wanted, and those
    /// after the request's body are not sent.
    pub(crate) trailers_max: Option<u32>,
}

/// The same for gRPC, whose servers have other schemes in log lines.
pub(crate) struct GrpcRequest(pub(crate) StreamRequest);

/// A request on a stream.
pub(crate) struct StreamCarrier {
    connection: MultiplexedConnection,
    /// Set once the head is sent.
    stream: Option<ClientStream>,
    request: StreamRequest,
    source: RequestSource,
    /// A part of the file that was read but not sent completely.
    file_piece: Vec<u8>,
    /// How much of the piece in memory is sent.
    piece_sent: usize,
    progress: SendProgress,
    reply: StreamReplyReader,
}

pub(crate) struct StreamReplyReader {
    request: StreamRequest,
    parser: ResponseHeadParser,
    has_head: bool,
    /// Whether the reply ends with the head that was read last.
    ends_with_head: bool,
    /// The remaining length of the body, if known.
    left: Option<u64>,
    is_ended: bool,
    trailers: Option<Fields>,
    cut_short: Option<ProtocolError>,
}

impl StreamCarrier {
    pub(crate) fn new(
        connection: MultiplexedConnection,
        request: StreamRequest,
        mut body: RequestSource,
    ) -> Self {
        if let RequestSource::Streamed(streamed) = &mut body {
            streamed.keep_earlier();
        }
        let reply = StreamReplyReader {
            request,
            parser: ResponseHeadParser::default(),
            has_head: false,
            ends_with_head: false,
            left: None,
            is_ended: false,
            trailers: None,
            cut_short: None,
        };
        let progress = SendProgress::default();
        Self {
            connection,
            stream: None,
            request,
            source: body,
            file_piece: Vec::new(),
            piece_sent: 0,
            progress,
            reply,
        }
    }

    /// Opens the stream, with the head of the request.
    fn open(&mut self, head: &[u8]) -> Result<(), CarrierError> {
        let is_empty = match &self.source {
            RequestSource::Empty => true,
            RequestSource::Memory(body) | RequestSource::File(body, _) => body.len() == 0,
            RequestSource::Streamed(_) => false,
        };
        let ends_with_head = is_empty && self.trailers().is_none();
        let scheme: &[u8] = if self.request.is_secured { b"https" } else { b"http" };
        let mut write = |writer: &mut FieldWriter<'_>| write_head(head, scheme, writer);
        self.stream = self.connection.open(&mut write, ends_with_head);
        if self.stream.is_none() {
            return Err(CarrierError::Refused);
        }
        self.progress.written = head.len() as u64;
        self.progress.has_begun = true;
        self.progress.is_done = ends_with_head;
        Ok(())
    }

    /// Sends the next piece of the body.
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), CarrierError>> {
        let mut is_last = true;
        match &mut self.source {
            RequestSource::File(_, slice) => {
                if self.piece_sent == self.file_piece.len() {
                    read_piece(slice, &mut self.file_piece)?;
                    self.piece_sent = 0;
                }
                is_last = slice.is_empty();
            }
            RequestSource::Streamed(streamed) => {
                if self.piece_sent == streamed.bytes().len() && !streamed.is_last() {
                    self.piece_sent = 0;
                    self.progress.waits_for_client = true;
                    ready!(streamed.poll_read(cx)).map_err(CarrierError::Client)?;
                    self.progress.waits_for_client = false;
                }
                is_last = streamed.is_last();
            }
            RequestSource::Empty | RequestSource::Memory(_) => {}
        }
        let trailers = if is_last { self.trailers() } else { None };
        let piece = match &self.source {
            RequestSource::File(..) => &self.file_piece,
            source => source.bytes(),
        };
        let rest = &piece[self.piece_sent..];
        let left = rest.len();
        let Some(stream) = &mut self.stream else { return Poll::Ready(Err(CarrierError::Refused)) };
        let ends = is_last && trailers.is_none();
        let sent = ready!(stream.poll_send(cx, rest, ends)).map_err(send_error)?;
        self.piece_sent += sent;
        self.progress.written += sent as u64;
        self.progress.is_done = ends && sent == left;
        if let Some(trailers) = trailers.filter(|_| sent == left) {
            let mut write = |writer: &mut FieldWriter<'_>| {
                trailers.iter().for_each(|(name, value)| writer.field(name, value));
            };
            ready!(stream.poll_end(cx, &mut write)).map_err(send_error)?;
            self.progress.is_done = true;
        }
        Poll::Ready(Ok(()))
    }

    /// The fields after the body that are to be sent.
    fn trailers(&self) -> Option<Rc<Fields>> {
        self.request.trailers_max.and_then(|_| self.source.trailers())
    }
}

impl CarrierFactory for StreamRequest {
    type Connection = MultiplexedConnection;
    type Carrier = StreamCarrier;
    const SCHEMA: &'static str = "http://";
    const SECURE_SCHEMA: &'static str = "https://";

    fn carrier(&self, connection: MultiplexedConnection, body: RequestSource) -> StreamCarrier {
        StreamCarrier::new(connection, *self, body)
    }
}

impl CarrierFactory for GrpcRequest {
    type Connection = MultiplexedConnection;
    type Carrier = StreamCarrier;
    const SCHEMA: &'static str = "grpc://";
    const SECURE_SCHEMA: &'static str = "grpcs://";

    fn carrier(&self, connection: MultiplexedConnection, body: RequestSource) -> StreamCarrier {
        self.0.carrier(connection, body)
    }
}

/// Replaces the piece by the next bytes of the file, which leave the slice.
fn read_piece(slice: &mut FileSlice, piece: &mut Vec<u8>) -> Result<(), CarrierError> {
    if piece.capacity() == 0 {
        *piece = buffers::lend();
    }
    let length = slice.len().min(piece.capacity() as u64);
    piece.resize(length as usize, 0);
    let read = slice.file.read_exact_at(piece, slice.start);
    read.map_err(|error| CarrierError::Call("pread()", error))?;
    slice.start += length;
    Ok(())
}

impl Drop for StreamCarrier {
    fn drop(&mut self) {
        buffers::give_back(std::mem::take(&mut self.file_piece));
    }
}

fn send_error(failure: StreamFailure) -> CarrierError {
    match failure {
        StreamFailure::Unprocessed => CarrierError::Refused,
        StreamFailure::GoneAway => CarrierError::Leaving,
        // The reader reports the cause, or an earlier reply.
        _ => CarrierError::Call("write()", io::ErrorKind::BrokenPipe.into()),
    }
}

impl BackendCarrier for StreamCarrier {
    type Reply = StreamReplyReader;

    fn reply(&self) -> &StreamReplyReader {
        &self.reply
    }

    fn reply_mut(&mut self) -> &mut StreamReplyReader {
        &mut self.reply
    }

    fn poll_send(&mut self, cx: &mut Context<'_>, head: &[u8]) -> Poll<Result<(), CarrierError>> {
        if self.stream.is_none() {
            self.open(head)?;
        }
        while !self.progress.is_done {
            ready!(net::poll_share(cx));
            ready!(self.poll_piece(cx))?;
        }
        Poll::Ready(Ok(()))
    }

    fn progress(&self) -> &SendProgress {
        &self.progress
    }

    fn continue_beside_reply(&mut self) -> bool {
        if let RequestSource::Streamed(streamed) = &mut self.source {
            streamed.continue_beside_reply();
        }
        !self.reply.is_ended
    }

    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut Vec<u8>,
        most: usize,
    ) -> Poll<Result<usize, CarrierError>> {
        let Some(stream) = &mut self.stream else { return Poll::Pending };
        if !self.reply.has_head {
            let head = match ready!(stream.poll_head(cx)) {
                Ok(head) => head,
                Err(failure) => return Poll::Ready(end_of_read(failure)),
            };
            let before = buffer.len();
            write_text(&head, buffer);
            self.reply.ends_with_head = head.end_stream;
            return Poll::Ready(Ok(buffer.len() - before));
        }
        let most = most.min(buffer.capacity() - buffer.len());
        let count = match ready!(stream.poll_body(cx, buffer, most)) {
            Ok(count) => count,
            Err(failure) => return Poll::Ready(end_of_read(failure)),
        };
        if count == 0 {
            self.reply.end(stream.take_trailers());
        }
        Poll::Ready(Ok(count))
    }

    fn is_cut(&self) -> bool {
        false
    }

    fn take_source(&mut self) -> Option<Box<StreamedSource>> {
        match std::mem::replace(&mut self.source, RequestSource::Empty) {
            RequestSource::Streamed(mut streamed) => streamed.rewind().then_some(streamed),
            _ => None,
        }
    }

    fn take_connection(&mut self) -> Option<PooledConnection> {
        None
    }
}

/// The result of a read that failed: 0 if the connection was closed, else the error.
fn end_of_read(failure: StreamFailure) -> Result<usize, CarrierError> {
    Err(match failure {
        StreamFailure::Closed => return Ok(0),
        StreamFailure::Unprocessed => CarrierError::Refused,
        StreamFailure::GoneAway => CarrierError::Leaving,
        StreamFailure::Connection(error) => CarrierError::Call("recv()", error),
        StreamFailure::Malformed(what) | StreamFailure::Protocol(what) => {
            CarrierError::Peer(format!("upstream {what}").into())
        }
        StreamFailure::Reset(Http2Code::HTTP_1_1_REQUIRED) => {
            CarrierError::Peer("upstream requires HTTP/1.1 for this request".into())
        }
        StreamFailure::Reset(Http2Code(code)) => {
            CarrierError::Peer(format!("upstream rejected request with error {code}").into())
        }
    })
}

/// Writes the fields of a request: the lines of its head except those about the connection.
fn write_head(head: &[u8], scheme: &[u8], writer: &mut FieldWriter<'_>) {
    let mut lines =
        head.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let mut words = lines.next().unwrap_or_default().split(|byte| *byte == b' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let fields = lines.filter_map(|line| {
        let colon = line.iter().position(|byte| *byte == b':')?;
        Some((&line[..colon], line[colon + 1..].trim_ascii_start()))
    });
    let host = fields.clone().find(|(name, _)| name.eq_ignore_ascii_case(b"host"));
    writer.field(b":method", method);
    writer.field(b":scheme", scheme);
    writer.field(b":path", target);
    if let Some((_, host)) = host {
        writer.field(b":authority", host);
    }
    for (name, value) in fields.filter(|(name, value)| !is_of_connection(name, value)) {
        writer.field(name, value);
    }
}

/// Whether a field is specific to a connection (RFC 9113, section 8.2.2), or is `Host`.
fn is_of_connection(name: &[u8], value: &[u8]) -> bool {
    const NAMES: [&[u8]; 6] = [
        b"host",
        b"connection",
        b"keep-alive",
        b"proxy-connection",
        b"transfer-encoding",
        b"upgrade",
    ];
    NAMES.iter().any(|known| name.eq_ignore_ascii_case(known))
        || name.eq_ignore_ascii_case(b"te") && !value.eq_ignore_ascii_case(b"trailers")
}

/// Writes the head of a reply as HTTP/1 text.
fn write_text(head: &ClientHead, out: &mut Vec<u8>) {
    out.extend_from_slice(b"HTTP/1.1 ");
    match wire::status_text(head.status) {
        Some(text) => out.extend_from_slice(text.as_bytes()),
        None => decimal::write(head.status.into(), out),
    }
    out.extend_from_slice(b"\r\n");
    for (name, value) in head.fields.iter().filter(|(name, _)| !name.starts_with(b":")) {
        out.extend_from_slice(name);
        out.extend_from_slice(b": ");
        out.extend_from_slice(value);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"\r\n");
}

impl StreamReplyReader {
    /// Marks the end of the reply.
    fn end(&mut self, trailers: Option<FieldBlock>) {
        self.is_ended = true;
        if self.left.is_some_and(|left| left > 0) {
            self.cut_short = Some("upstream prematurely closed stream".into());
        }
        let (Some(block), Some(bytes_max)) = (trailers, self.request.trailers_max) else { return };
        // As text, each field has 4 bytes more than name and value.
        let bytes: usize = block.iter().map(|(name, value)| name.len() + value.len() + 4).sum();
        if bytes > bytes_max as usize {
            self.cut_short = Some("upstream sent too big trailers".into());
            return;
        }
        let mut fields = Fields::default();
        block.iter().for_each(|(name, value)| fields.append(name, value));
        self.trailers = Some(fields);
    }
}

impl ReplyReader for StreamReplyReader {
    fn head(
        &mut self,
        input: &mut Vec<u8>,
        head: &mut ReplyHead,
    ) -> Result<HeadEvent, ProtocolError> {
        let refused = |error| http1::describe(error, input);
        let Some(bytes) = self.parser.parse(head, input).map_err(refused)? else {
            return Ok(HeadEvent::Partial);
        };
        if head.status < 200 {
            self.parser = ResponseHeadParser::default();
            return Ok(HeadEvent::Interim(bytes));
        }
        self.has_head = true;
        let body = ReplyBody::of(head, input, self.request.to_head).map_err(refused)?;
        let body = match body {
            ReplyBody::None => ReplyLength::None,
            ReplyBody::Length(length) => ReplyLength::Known(length),
            _ if self.ends_with_head => ReplyLength::Known(0),
            _ => ReplyLength::Unknown,
        };
        if let ReplyLength::Known(length) = body {
            self.left = Some(length);
        }
        if self.ends_with_head {
            self.end(None);
        }
        Ok(HeadEvent::Complete { bytes, body })
    }

    fn body(&mut self, buffer: &mut [u8], start: usize) -> DecodedBody {
        if let Some(left) = &mut self.left {
            let count = (buffer.len() - start) as u64;
            let Some(rest) = left.checked_sub(count) else {
                let what = "upstream sent response body larger than indicated content length";
                return DecodedBody::invalid(start, what.into());
            };
            *left = rest;
        }
        let error = self.cut_short.take();
        DecodedBody {
            trailers: self.trailers.take(),
            is_cut_short: error.is_some(),
            error,
            ..DecodedBody::up_to(buffer.len())
        }
    }

    fn is_ended(&self) -> bool {
        self.is_ended
    }

    fn ends_at_close(&self) -> bool {
        false
    }

    fn body_left(&self) -> u64 {
        self.left.unwrap_or(0)
    }

    fn is_between_pieces(&self) -> bool {
        true
    }

    fn may_reuse(&self) -> bool {
        false
    }
}
