//! Turns bytes into a request. The head is read within its limits. The server is chosen as soon as
//! the client has named it, so that its settings also apply to the reply to an invalid head.

use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::Poll;

use metrics::InRequest;
use net::buffers;
use net::memory::{self, OutOfMemory};
use observe::{Errno, Level, Text};
use wire::http1::framing::{BodyLength, RequestFraming};
use wire::http1::request::{HeadError, HeadProgress, RequestHeadParser};
use wire::{Method, Slice, Version};

use super::connection::{After, Connection};
use super::link::WaitsFor;
use super::request_stream::RequestStream;
use crate::drive::{self, choose_server};
use crate::exchange::{Announced, BadPath, CloseReason, Exchange, Request};

/// Why there is no request to run.
pub(super) enum NoRequest {
    /// The head is invalid, which is answered with this status.
    Refused(u16),
    /// No complete head was received.
    Over(After),
}

enum BadHead {
    Head(HeadError),
    /// The path cannot be decoded, or leads above the root.
    Path,
    /// There is no memory to read more of it.
    NoMemory(OutOfMemory),
}

/// Why no more of a head could be read.
enum ReadHeadError {
    Closed,
    TimedOut,
    Connection(io::Error),
}

const READING_LINE: &str = "reading client request line";
const READING_PIPELINED: &str = "reading client pipelined request line";
const READING_FIELDS: &str = "reading client request headers";

impl Connection {
    /// Reads a head into the exchange, and prepares the stream for the body that it announces.
    pub(super) async fn read_head(
        &self,
        x: &mut Exchange,
        request: &Rc<RequestStream>,
        counted: &mut InRequest,
    ) -> Result<(), NoRequest> {
        self.client.requests.set(self.client.requests.get() + 1);
        x.request.received = self.link.input.take();
        x.action = if x.request.pipelined { READING_PIPELINED } else { READING_LINE };
        let mut parser = RequestHeadParser::default();
        let complete = self.complete_head(x, &mut parser).await;
        let complete = complete.map_err(|failed| self.give_up(x, &parser, failed))?;
        let framing = complete.and_then(|()| {
            counted.head_complete();
            self.link.progress();
            self.link.keep_rest(&mut x.request.received, x.request.head_bytes);
            settle_framing(x)
        });
        match framing {
            Ok(RequestFraming { body, expects_continue, .. }) => {
                let version = x.request.head.version;
                request.begin_body(version, x.request.length, body, expects_continue);
                x.downstream = Some(request.clone());
                Ok(())
            }
            Err(refused) => {
                // The bytes after it belong to no request.
                request.abandon_body();
                Err(NoRequest::Refused(refuse(x, &parser, refused)))
            }
        }
    }

    /// Reads until the head is complete or found invalid.
    async fn complete_head(
        &self,
        x: &mut Exchange,
        parser: &mut RequestHeadParser,
    ) -> Result<Result<(), BadHead>, ReadHeadError> {
        loop {
            match parse(x, parser) {
                Ok(true) => return Ok(Ok(())),
                Ok(false) => {}
                Err(refused) => return Ok(Err(refused)),
            }
            if let Err(refused) = make_room(x) {
                return Ok(Err(refused));
            }
            self.read_more(x).await?;
            x.head_ms = u32::try_from(x.age_ms()).unwrap_or(u32::MAX);
        }
    }

    async fn read_more(&self, x: &mut Exchange) -> Result<(), ReadHeadError> {
        let timeout_ms = x.server().reading.client_header_timeout_ms;
        let received = &mut x.request.received;
        let read = poll_fn(|cx| {
            let read = self.link.stream.borrow_mut().poll_read(cx, received);
            match read {
                Poll::Ready(read) => Poll::Ready(Some(read)),
                Poll::Pending => {
                    self.link.poll_deadline(cx, WaitsFor::Head, timeout_ms).map(|()| None)
                }
            }
        });
        match read.await {
            Some(Ok(1..)) => Ok(()),
            Some(Ok(0)) => Err(ReadHeadError::Closed),
            Some(Err(error)) => Err(ReadHeadError::Connection(error)),
            None => Err(ReadHeadError::TimedOut),
        }
    }

    /// Logs why a head did not arrive; the connection is closed.
    fn give_up(
        &self,
        x: &mut Exchange,
        parser: &RequestHeadParser,
        failed: ReadHeadError,
    ) -> NoRequest {
        x.reply.status = 400;
        note_host(x);
        if !parser.expects_line() {
            note_length(x, parser.parsed_to() as u32);
        }
        match failed {
            ReadHeadError::Closed => {
                x.action = READING_FIELDS;
                x.log(Level::Info, format_args!("client prematurely closed connection"));
            }
            ReadHeadError::Connection(error) => {
                x.log(Level::Info, format_args!("recv() failed{}", Errno(&error)));
            }
            ReadHeadError::TimedOut => {
                let error = net::timed_out();
                x.log(Level::Info, format_args!("client timed out{}", Errno(&error)));
                return NoRequest::Over(drive::dropped(x, 408).into());
            }
        }
        NoRequest::Over(After::Close)
    }
}

/// Makes room for more of a head. An empty buffer is left alone: reading lends one.
fn make_room(x: &mut Exchange) -> Result<(), BadHead> {
    let received = &mut x.request.received;
    if received.is_empty() || received.len() < received.capacity() {
        return Ok(());
    }
    memory::try_reserve(received, buffers::BUFFER_SIZE).map_err(BadHead::NoMemory)
}

/// Parses the received bytes. Returns whether the head is complete.
fn parse(x: &mut Exchange, parser: &mut RequestHeadParser) -> Result<bool, BadHead> {
    loop {
        let mut limits = x.server().reading.head;
        let generation = x.generation.clone();
        let listen = generation.listen(x.client.listen);
        limits.pause_at_host = listen.is_some_and(|listen| listen.names.are_several());
        let Request { head, received, .. } = &mut x.request;
        if parser.expects_line() {
            match parser.parse_line(head, received, &limits).map_err(BadHead::Head)? {
                HeadProgress::Complete { .. } => settle_target(x)?,
                HeadProgress::Partial | HeadProgress::Host => return Ok(false),
            }
        }
        let Request { head, received, .. } = &mut x.request;
        match parser.parse(head, received, &limits).map_err(BadHead::Head)? {
            HeadProgress::Partial => return Ok(false),
            // The limits of the named server apply to the rest of the head.
            HeadProgress::Host => choose_server(x),
            HeadProgress::Complete { len } => {
                x.request.head_bytes = len;
                return Ok(true);
            }
        }
    }
}

/// After the request line: normalises the path, and chooses the server if the line names it.
fn settle_target(x: &mut Exchange) -> Result<(), BadHead> {
    let merge_slashes = x.server().reading.merge_slashes;
    x.request.decode_target(merge_slashes).map_err(|BadPath| BadHead::Path)?;
    if !x.request.head.host.is_empty() {
        choose_server(x);
    }
    x.action = READING_FIELDS;
    Ok(())
}

/// After the last field: determines the length of the body and whether the connection is kept.
fn settle_framing(x: &mut Exchange) -> Result<RequestFraming, BadHead> {
    let head = &x.request.head;
    x.request.length = x.request.head_bytes as u64 - u64::from(head.line.start);
    x.request.header_only = head.method == Method::Head;
    log_ignored(x);
    if x.request.host.is_empty() {
        choose_server(x);
    }
    let framing = RequestFraming::of(&x.request.head, &x.request.received, false);
    let framing = framing.map_err(BadHead::Head)?;
    x.action = "";
    x.keep_connection();
    if !framing.keep_alive {
        x.close_after(CloseReason::Client);
    }
    x.request.body.announce(match framing.body {
        BodyLength::None => Announced::None,
        BodyLength::Length(length) => Announced::Length(length),
        BodyLength::Chunked => Announced::Unknown,
    });
    Ok(framing)
}

/// Completes a request whose head a test has parsed. `Err` is the status to answer with.
#[cfg(test)]
pub(crate) fn settle(x: &mut Exchange, parser: &RequestHeadParser) -> Result<(), u16> {
    let settled = settle_target(x).and_then(|()| settle_framing(x));
    settled.map(drop).map_err(|refused| refuse(x, parser, refused))
}

/// Logs a refused request, and keeps its host and line for the access log. Returns the status.
fn refuse(x: &mut Exchange, parser: &RequestHeadParser, refused: BadHead) -> u16 {
    let status = match refused {
        BadHead::Head(error) => {
            note_host(x);
            log_refused(x, &error);
            settle_refused(x, parser, error);
            error.status()
        }
        BadHead::Path => {
            x.log(Level::Info, format_args!("client sent invalid request"));
            // As in nginx, `$request_uri` is empty.
            x.request.head.target = Slice::default();
            note_length(x, parser.parsed_to() as u32);
            400
        }
        BadHead::NoMemory(error) => {
            note_host(x);
            x.log(Level::Emerg, format_args!("{error}"));
            settle_refused(x, parser, HeadError::TooLargeRequest);
            500
        }
    };
    x.action = "";
    status
}

/// Records the parts of a refused head that its error page and log lines may show.
fn settle_refused(x: &mut Exchange, parser: &RequestHeadParser, error: HeadError) {
    if parser.expects_line() {
        return settle_refused_line(x, error);
    }
    let parsed_to = match error {
        HeadError::TooLongFieldLine(line) | HeadError::InvalidFieldLine(line) => line.start,
        _ => parser.parsed_to() as u32,
    };
    note_length(x, parsed_to);
}

/// The same for a request line. Of a line without an end, as much is shown as nginx would have
/// read. Of a line that was not parsed to its end, only a `HEAD` method counts: the reply has no
/// body.
fn settle_refused_line(x: &mut Exchange, error: HeadError) {
    let shown_max = x.server().reading.head.client_header_buffer_size;
    let request = &mut x.request;
    if request.head.line.is_empty() {
        let before = request.received.iter().take_while(|byte| matches!(byte, b'\r' | b'\n'));
        let start = before.count() as u32;
        let length = request.line().len().min(shown_max) as u32;
        request.head.line = Slice { start, end: start + length };
    }
    if request.head.protocol.is_empty() {
        let (line, protocol) = (request.head.line, request.head.protocol);
        request.head.reset();
        (request.head.line, request.head.protocol) = (line, protocol);
        if error != HeadError::InvalidMethod09 {
            request.head.version = Version::HTTP_10;
            request.header_only = request.line().starts_with(b"HEAD ");
        }
    }
}

/// Sets `$request_length` of an incomplete head to the length of the lines that were read.
fn note_length(x: &mut Exchange, parsed_to: u32) {
    x.request.length = parsed_to.saturating_sub(x.request.head.line.start).into();
}

/// Chooses the server of an incomplete head, if it names its host.
fn note_host(x: &mut Exchange) {
    if x.request.host.is_empty() && !x.request.head.host.is_empty() {
        choose_server(x);
    }
}

fn log_ignored(x: &Exchange) {
    if x.request.head.ignored.is_empty() || !x.logs(Level::Info) {
        return;
    }
    for line in &x.request.head.ignored {
        let line = Text(x.request.text(*line));
        x.log(Level::Info, format_args!("client sent invalid header line: \"{line}\""));
    }
}

fn log_refused(x: &Exchange, error: &HeadError) {
    if !x.logs(Level::Info) {
        return;
    }
    let mut message = Vec::new();
    error.write_message(&x.request.received, &mut message);
    x.log(Level::Info, format_args!("{}", Text(&message)));
}
