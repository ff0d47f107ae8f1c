//! From bytes to an exchange under way: the head is read within its limits, the server is chosen as
//! soon as the client has named it, and what is wrong is answered by that server.

use std::future::poll_fn;
use std::io;
use std::task::Poll;

use net::buffers;
use observe::{Errno, InRequest, Level};
use wire::http1::framing::Framing;
use wire::http1::request::{HeadError, Progress};
use wire::{Method, Slice, Version};

use super::link::WaitsFor;
use super::{After, Connection};
use crate::exchange::{BadPath, Exchange, Flow};
use crate::phases::{self, Ran};

/// Why a head is not answered as the request it was meant to be.
enum Refused {
    Head(HeadError),
    /// The path cannot be decoded, or leads above the root.
    Path,
}

/// How reading more of a head ended.
enum Failed {
    Closed,
    TimedOut,
    Connection(io::Error),
}

const READING_LINE: &str = "reading client request line";
const READING_PIPELINED: &str = "reading client pipelined request line";
const READING_FIELDS: &str = "reading client request headers";

impl Connection {
    /// Reads a head and runs the phases.
    pub(super) async fn read_head(
        &self,
        x: &mut Exchange,
        counted: &mut InRequest,
    ) -> Result<Ran, After> {
        self.client.requests.set(self.client.requests.get() + 1);
        x.request.received = self.link.input.take();
        x.action = if x.request.pipelined { READING_PIPELINED } else { READING_LINE };
        match self.complete_head(x).await {
            Ok(Ok(())) => {
                counted.head_complete();
                Ok(self.begin(x))
            }
            Ok(Err(refused)) => Ok(self.refuse(x, refused)),
            Err(failed) => Err(self.give_up(x, failed)),
        }
    }

    /// Reads until the head is complete, or known not to be one.
    async fn complete_head(&self, x: &mut Exchange) -> Result<Result<(), Refused>, Failed> {
        loop {
            match parse(x) {
                Ok(true) => return Ok(Ok(())),
                Ok(false) => self.read_more(x).await?,
                Err(refused) => return Ok(Err(refused)),
            }
        }
    }

    async fn read_more(&self, x: &mut Exchange) -> Result<(), Failed> {
        let timeout_ms = x.server().reading.client_header_timeout_ms;
        let received = &mut x.request.received;
        if received.len() == received.capacity() {
            received.reserve(buffers::BUFFER_SIZE);
        }
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
            Some(Ok(0)) => Err(Failed::Closed),
            Some(Err(error)) => Err(Failed::Connection(error)),
            None => Err(Failed::TimedOut),
        }
    }

    fn begin(&self, x: &mut Exchange) -> Ran {
        self.link.progress();
        self.link.keep_rest(&mut x.request.received, x.request.head_bytes);
        match settle_framing(x) {
            Ok(framing) => {
                self.link.begin_body(x.request.length, framing.body, framing.expects_continue);
                x.downstream = Some(self.link.clone());
                phases::run(x)
            }
            Err(refused) => self.refuse(x, refused),
        }
    }

    /// Answers what is no request, and closes the connection after it.
    fn refuse(&self, x: &mut Exchange, refused: Refused) -> Ran {
        self.link.lose_body();
        refuse(x, refused)
    }

    /// Closes a connection whose request does not come.
    fn give_up(&self, x: &mut Exchange, failed: Failed) -> After {
        x.reply.status = 400;
        note_host(x);
        if x.action == READING_FIELDS {
            note_length(x, x.request.head.parsed_to() as u32);
        }
        match failed {
            Failed::Closed => {
                x.action = READING_FIELDS;
                x.log(Level::Info, format_args!("client prematurely closed connection"));
            }
            Failed::Connection(error) => {
                x.log(Level::Info, format_args!("recv() failed{}", Errno(&error)));
            }
            Failed::TimedOut => {
                let error = net::timed_out();
                x.log(Level::Info, format_args!("client timed out{}", Errno(&error)));
                return self.dropped(x, 408);
            }
        }
        After::Close
    }
}

/// Parses what has arrived; whether the head is complete.
fn parse(x: &mut Exchange) -> Result<bool, Refused> {
    let mut limits = x.server().reading.head;
    let generation = x.generation.clone();
    let listen = generation.listen(x.client.listen);
    limits.pause_at_host = listen.is_some_and(|listen| listen.names.are_several());
    if x.action != READING_FIELDS {
        match x.request.head.parse_line(&x.request.received, &limits).map_err(Refused::Head)? {
            Progress::Complete { .. } => settle_target(x)?,
            Progress::Partial | Progress::Host => return Ok(false),
        }
    }
    match x.request.head.parse(&x.request.received, &limits).map_err(Refused::Head)? {
        Progress::Partial => Ok(false),
        Progress::Host => {
            choose_server(x);
            parse(x)
        }
        Progress::Complete { len } => {
            x.request.head_bytes = len;
            Ok(true)
        }
    }
}

/// The request line is there: its path in normal form, and the server where the line names it.
fn settle_target(x: &mut Exchange) -> Result<(), Refused> {
    let merge_slashes = x.server().reading.merge_slashes;
    x.request.decode_target(merge_slashes).map_err(|BadPath| Refused::Path)?;
    if !x.request.head.host.is_empty() {
        choose_server(x);
    }
    x.action = READING_FIELDS;
    Ok(())
}

/// The head is complete: what it says of the connection and of the body.
fn settle_framing(x: &mut Exchange) -> Result<Framing, Refused> {
    let head = &x.request.head;
    x.request.length = x.request.head_bytes as u64 - u64::from(head.line.start);
    x.request.header_only = head.method == Method::Head;
    log_ignored(x);
    if x.request.host.is_empty() {
        choose_server(x);
    }
    let framing = Framing::of(&x.request.head, &x.request.received, false);
    let framing = framing.map_err(Refused::Head)?;
    x.action = "";
    x.keepalive = framing.keep_alive;
    x.request.body.announce(framing.body);
    Ok(framing)
}

/// Runs the phases of a request whose head is there, and which nobody drives.
#[cfg(test)]
pub(crate) fn begin(x: &mut Exchange) -> Ran {
    match settle_target(x).and_then(|()| settle_framing(x)) {
        Ok(_) => phases::run(x),
        Err(refused) => refuse(x, refused),
    }
}

fn refuse(x: &mut Exchange, refused: Refused) -> Ran {
    let status = match refused {
        Refused::Head(error) => {
            note_host(x);
            log_refused(x, &error);
            settle_refused(x, error);
            error.status()
        }
        Refused::Path => {
            x.log(Level::Info, format_args!("client sent invalid request"));
            note_length(x, x.request.head.parsed_to() as u32);
            400
        }
    };
    x.action = "";
    phases::step(x, Flow::Status(status))
}

/// What is left of a head that is refused, for its page and its log lines.
fn settle_refused(x: &mut Exchange, error: HeadError) {
    if x.action != READING_FIELDS {
        return settle_refused_line(x, error);
    }
    let parsed_to = match error {
        HeadError::TooLongFieldLine(line) | HeadError::InvalidFieldLine(line) => line.start,
        _ => x.request.head.parsed_to() as u32,
    };
    note_length(x, parsed_to);
}

/// Of a line without an end no more is shown than nginx would have read; of one that was not
/// understood to its end nothing else is believed but that `HEAD` wants no body.
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

/// `$request_length` of a head that is not complete: the lines that were read.
fn note_length(x: &mut Exchange, parsed_to: u32) {
    x.request.length = parsed_to.saturating_sub(x.request.head.line.start).into();
}

/// Of a head that is not complete: the host, if it was said by then.
fn note_host(x: &mut Exchange) {
    if x.request.host.is_empty() && !x.request.head.host.is_empty() {
        choose_server(x);
    }
}

/// Chooses the virtual server by the host that the client named, if any.
fn choose_server(x: &mut Exchange) {
    let request = &mut x.request;
    let host = request.head.host.of(&request.received);
    request.host.clear();
    request.host.extend(host.iter().map(u8::to_ascii_lowercase));
    let generation = x.generation.clone();
    x.server = generation.listen(x.client.listen).map_or(x.server, |l| l.names.choose(x));
    x.location = phases::outer(x);
}

fn log_ignored(x: &Exchange) {
    if x.request.head.ignored.is_empty() || !x.logs(Level::Info) {
        return;
    }
    for line in &x.request.head.ignored {
        let line = String::from_utf8_lossy(x.request.text(*line));
        x.log(Level::Info, format_args!("client sent invalid header line: \"{line}\""));
    }
}

fn log_refused(x: &Exchange, error: &HeadError) {
    if !x.logs(Level::Info) {
        return;
    }
    let mut message = Vec::new();
    error.write_message(&x.request.received, &mut message);
    x.log(Level::Info, format_args!("{}", String::from_utf8_lossy(&message)));
}
