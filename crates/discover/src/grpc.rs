//! A small gRPC client that blocks: one call with messages in both directions on a connection of
//! its own, with a deadline for everything.
//!
//! Deliberately absent: compression, retries, and other calls on the same connection.

use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

use wire::grpc::{self, framed, write_framed};
use wire::http2::{
    FieldBlock, Http2Code, Http2Config, Http2Endpoint, Http2Event, Http2Role, StreamKey,
};

use crate::http::{HttpPlace, HttpStream};

/// The longest message that is kept.
const MESSAGE_BYTES_MAX: usize = 64 << 20;
/// The bytes that are read at once, and how much the other side may send unasked.
const READ_BYTES: usize = 64 * 1024;
const WINDOW: u32 = 1 << 20;

/// How long the other side may be silent.
#[derive(Clone, Copy, Debug)]
pub struct GrpcPatience {
    /// After how much silence each PING is sent.
    pub ping_after: [Duration; 3],
    /// How long the answer may take.
    pub pong_max: Duration,
    /// How long it may take no data.
    pub stall_max: Duration,
}

impl Default for GrpcPatience {
    fn default() -> Self {
        Self {
            // gRPC's servers end a connection at the third PING without a message within five
            // minutes, so the last is later.
            ping_after: [30, 60, 310].map(Duration::from_secs),
            pong_max: Duration::from_secs(20),
            stall_max: Duration::from_secs(20),
        }
    }
}

/// The names of the statuses of calls.
const STATUSES: [&str; grpc::STATUS_MAX as usize + 1] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

/// An event of a call.
#[derive(Debug, PartialEq)]
pub enum GrpcEvent {
    Message(Vec<u8>),
    /// The server has answered a PING.
    Alive,
    /// Nothing until the time that was asked for.
    Silence,
    /// The other side ends the call in good order, or is about to.
    Ending,
}

/// A call. It cannot be used after an error or its end.
pub struct GrpcStreamCall {
    pub patience: GrpcPatience,
    stream: HttpStream,
    endpoint: Http2Endpoint,
    call: StreamKey,
    /// Bytes of the connection that are not processed yet.
    input: Vec<u8>,
    /// Received bytes of messages, the last of which may be incomplete.
    received: Vec<u8>,
    /// Messages that wait for the other side to take data.
    unsent: Vec<u8>,
    last_received: Instant,
    /// PINGs since the last message.
    pings: usize,
    asked: Option<Instant>,
    stalled: Option<Instant>,
    replenished: Instant,
}

impl GrpcStreamCall {
    /// Begins a call; `fields` are metadata.
    pub fn open(place: &HttpPlace, path: &str, fields: &[(&str, &str)]) -> Result<Self, String> {
        let patience = GrpcPatience::default();
        let now = Instant::now();
        let stream = place.connect(now + patience.stall_max).map_err(|error| error.to_string())?;
        let config = Http2Config { stream_window: WINDOW, ..Http2Config::default() };
        let mut endpoint = Http2Endpoint::new(Http2Role::Client, config);
        let call = endpoint.open().ok_or("no call can be made")?;
        let scheme = if place.is_secure() { "https" } else { "http" };
        let path = format!("{}{path}", place.base);
        let mut head = endpoint.begin_fields(call).ok_or("no call can be made")?;
        let own = [
            (":method", "POST"),
            (":scheme", scheme),
            (":authority", &place.host),
            (":path", &path),
            ("te", "trailers"),
            ("content-type", "application/grpc"),
            ("user-agent", concat!("weir-discover/", env!("CARGO_PKG_VERSION"))),
        ];
        for (name, value) in own.iter().chain(fields) {
            head.field(name.as_bytes(), value.as_bytes());
        }
        head.finish(false);
        Ok(Self {
            patience,
            stream,
            endpoint,
            call,
            input: Vec::new(),
            received: Vec::new(),
            unsent: Vec::new(),
            last_received: now,
            pings: 0,
            asked: None,
            stalled: None,
            replenished: now,
        })
    }

    /// Sends a message as soon as the other side takes it, at the latest while receiving.
    pub fn send(&mut self, message: &[u8]) -> Result<(), String> {
        write_framed(&mut self.unsent, |out| out.extend_from_slice(message));
        self.flush().map_err(|error| error.to_string())
    }

    /// Waits until something happens.
    pub fn receive(&mut self, until: Instant) -> Result<GrpcEvent, String> {
        loop {
            if let Some(message) = self.next_message()? {
                return Ok(GrpcEvent::Message(message));
            }
            if let Some(event) = self.process()? {
                return Ok(event);
            }
            self.flush().map_err(|error| error.to_string())?;
            if self.received_whole()? || !self.input.is_empty() {
                continue;
            }
            let now = Instant::now();
            let due = self.next_deadline(now)?;
            if now >= until {
                return Ok(GrpcEvent::Silence);
            }
            if due <= now {
                self.endpoint.ping(*b"weirxds?");
                (self.asked, self.pings) = (Some(now), self.pings + 1);
                continue;
            }
            self.read(due.min(until) - now)?;
        }
    }

    /// When to do something although nothing comes.
    fn next_deadline(&self, now: Instant) -> Result<Instant, String> {
        let GrpcPatience { ping_after, pong_max, stall_max } = self.patience;
        let ends = [(self.asked, pong_max), (self.stalled, stall_max)];
        let ends = ends.into_iter().filter_map(|(since, most)| since.map(|since| since + most));
        let end = ends.min();
        if end.is_some_and(|end| end <= now) {
            return Err("the other side does not answer".to_owned());
        }
        let silence = ping_after[self.pings.min(ping_after.len() - 1)];
        Ok(end.unwrap_or(self.last_received + silence))
    }

    fn received_whole(&self) -> Result<bool, String> {
        let found = framed(&self.received).map_err(|_| "a message is compressed".to_owned())?;
        let Some(range) = found else { return Ok(false) };
        if range.len() > MESSAGE_BYTES_MAX {
            return Err(format!("a message of {} bytes is too long", range.len()));
        }
        Ok(range.end <= self.received.len())
    }

    fn next_message(&mut self) -> Result<Option<Vec<u8>>, String> {
        if !self.received_whole()? {
            return Ok(None);
        }
        let range = framed(&self.received).ok().flatten().unwrap_or_default();
        let message = self.received[range.clone()].to_vec();
        self.received.drain(..range.end);
        self.pings = 0;
        Ok(Some(message))
    }

    /// Processes input up to the end of it, of a message, or up to an event that the caller has to
    /// know.
    fn process(&mut self) -> Result<Option<GrpcEvent>, String> {
        let input = std::mem::take(&mut self.input);
        let mut rest = &input[..];
        loop {
            let received = self.endpoint.receive(rest).map_err(|error| {
                // The other side may want to know why, but it need not.
                let _ = self.flush();
                format!("the other side {}", error.what)
            })?;
            let Some(event) = received.event else { return Ok(None) };
            let told = self.take(event, rest)?;
            rest = &rest[received.consumed..];
            if told.is_some() || self.received_whole()? {
                self.input = rest.to_vec();
                return Ok(told);
            }
        }
    }

    fn take(&mut self, event: Http2Event, input: &[u8]) -> Result<Option<GrpcEvent>, String> {
        match event {
            Http2Event::Head { end_stream, .. } => self.take_head(end_stream),
            Http2Event::Data { range, end_stream, .. } => {
                self.received.extend_from_slice(&input[range]);
                if self.endpoint.receive_window(self.call) < i64::from(WINDOW / 2) {
                    self.endpoint.raise_window(self.call, WINDOW);
                }
                match end_stream {
                    true => Err("the call ended without a status".to_owned()),
                    false => Ok(None),
                }
            }
            Http2Event::Trailers { .. } => ended(self.endpoint.fields()).map(Some),
            Http2Event::Malformed { what, .. } => Err(format!("the other side {what}")),
            Http2Event::Reset { code, .. } | Http2Event::Provoked { code, .. } => {
                Err(format!("the call was reset (HTTP/2 error {})", code.0))
            }
            Http2Event::GoAway { code: Http2Code::NO_ERROR, .. } => Ok(Some(GrpcEvent::Ending)),
            Http2Event::GoAway { code, .. } => {
                Err(format!("the other side ended the connection (HTTP/2 error {})", code.0))
            }
            Http2Event::Pong { .. } => {
                self.asked = None;
                Ok(Some(GrpcEvent::Alive))
            }
            Http2Event::Interim { .. }
            | Http2Event::Writable { .. }
            | Http2Event::SettingsAcked => Ok(None),
        }
    }

    fn take_head(&mut self, end_stream: bool) -> Result<Option<GrpcEvent>, String> {
        let status = self.endpoint.reply().status;
        let fields = self.endpoint.fields();
        let is_grpc =
            fields.get(b"content-type").is_some_and(|kind| kind.starts_with(b"application/grpc"));
        match (status, is_grpc, end_stream) {
            (200, _, true) => ended(fields).map(Some),
            (200, true, false) => Ok(None),
            (200, false, false) => Err("the other side does not speak gRPC".to_owned()),
            _ => Err(format!("the other side answered {status}")),
        }
    }

    /// Writes as much as the flow-control windows allow.
    fn flush(&mut self) -> io::Result<()> {
        let count = self.unsent.len().min(self.endpoint.sendable(self.call));
        if count > 0 {
            let piece: Vec<u8> = self.unsent.drain(..count).collect();
            self.endpoint.send_data(self.call, &piece, false, usize::MAX);
        }
        self.stalled = match (self.unsent.is_empty(), count, self.stalled) {
            (true, ..) => None,
            (false, 0, Some(since)) => Some(since),
            (false, ..) => Some(Instant::now()),
        };
        let output = self.endpoint.output().len();
        if output > 0 {
            self.stream.set_deadline(Instant::now() + self.patience.stall_max);
            self.stream.write_all(self.endpoint.output())?;
            self.stream.flush()?;
            self.endpoint.advance_output(output);
        }
        Ok(())
    }

    fn read(&mut self, most: Duration) -> Result<(), String> {
        let seconds = self.replenished.elapsed().as_secs();
        if seconds > 0 {
            self.replenished += Duration::from_secs(seconds);
            self.endpoint.replenish(u32::try_from(seconds).unwrap_or(u32::MAX));
        }
        let mut buffer = vec![0; READ_BYTES];
        self.stream.set_deadline(Instant::now() + most);
        match self.stream.read(&mut buffer) {
            Ok(0) => Err("the other side closed the connection".to_owned()),
            Ok(count) => {
                self.input.extend_from_slice(&buffer[..count]);
                self.last_received = Instant::now();
                Ok(())
            }
            Err(error) => match error.kind() {
                io::ErrorKind::TimedOut | io::ErrorKind::Interrupted => Ok(()),
                io::ErrorKind::UnexpectedEof => {
                    Err("the other side closed the connection".to_owned())
                }
                _ => Err(error.to_string()),
            },
        }
    }
}

/// The end of a call with these trailers.
fn ended(fields: &FieldBlock) -> Result<GrpcEvent, String> {
    let text = |name: &str| {
        fields.get(name.as_bytes()).map(|value| String::from_utf8_lossy(value).into_owned())
    };
    let status = text("grpc-status").ok_or("the call ended without a status")?;
    let name = status.parse::<usize>().ok().and_then(|status| STATUSES.get(status));
    match (name, text("grpc-message")) {
        (Some(&"OK"), _) => Ok(GrpcEvent::Ending),
        (name, message) => {
            let name = name.copied().unwrap_or(&status);
            let message = message.unwrap_or_default();
            Err(format!("the call ended: {name} {message}").trim_end().to_owned())
        }
    }
}
