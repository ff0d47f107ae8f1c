//! One connection to the control socket: requests and replies in turn.

use std::fmt::Write;
use std::future::poll_fn;
use std::io::IoSlice;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::time::Duration;

use net::{Stream, Timer};
use session::steering::{CHANGE_BODY_MAX, SteeringCall, SteeringReply, SteeringRequest};
use wire::http1::framing::{BodyLength, RequestFraming};
use wire::http1::request::{HeadProgress, RequestHeadParser};
use wire::request::{HeadLimits, RequestHead};

/// The longest head of a request.
const HEAD_BYTES_MAX: usize = 8 * 1024;
/// How long a request may take to arrive, and a reply to leave.
const TRANSFER_MAX: Duration = Duration::from_secs(10);
/// How long a connection may be idle.
const IDLE_MAX: Duration = Duration::from_secs(60);
/// How long a reload may take until it is answered.
const REPLY_MAX: Duration = Duration::from_secs(600);
/// The bytes that are read at once.
const READ_BYTES: usize = 4096;

/// Serves a connection to its end.
pub(super) async fn serve(
    socket: OwnedFd,
    pass_on: Rc<impl Fn(SteeringCall) + 'static>,
    _open: Rc<()>,
) {
    let who = net::users::peer(socket.as_fd()).map_or_else(
        || "the control socket".to_owned(),
        |peer| format!("user {} (process {}) at the control socket", peer.user, peer.process),
    );
    let mut connection = ControlConnection { stream: Stream::new(socket), input: Vec::new(), who };
    while let Some(goes_on) = connection.exchange(&*pass_on).await {
        if !goes_on {
            return;
        }
    }
}

struct ControlConnection {
    stream: Stream,
    input: Vec<u8>,
    who: String,
}

/// A complete request.
struct ControlRequest {
    request: SteeringRequest,
    keep_alive: bool,
    to_head: bool,
}

/// Why a request is refused.
struct BadRequest(u16);

impl ControlConnection {
    /// Serves one request. Returns whether another may follow; `None`: the client has gone.
    async fn exchange(&mut self, pass_on: &impl Fn(SteeringCall)) -> Option<bool> {
        if self.input.is_empty() {
            self.within(IDLE_MAX, Self::read).await??;
        }
        match self.within(TRANSFER_MAX, Self::request).await?? {
            Err(BadRequest(status)) => {
                let reply = SteeringReply { status, ..SteeringReply::default() };
                self.reply(&reply, false, false).await;
                None
            }
            Ok(ControlRequest { request, keep_alive, to_head }) => {
                let reply = ask(request, pass_on).await;
                self.reply(&reply, keep_alive, to_head).await.then_some(keep_alive)
            }
        }
    }

    async fn within<T>(
        &mut self,
        most: Duration,
        work: impl AsyncFnOnce(&mut Self) -> T,
    ) -> Option<T> {
        let timer = Timer::new();
        timer.set(most.as_millis() as u64);
        timer.limit(work(self)).await
    }

    /// Reads more input; `None` at its end.
    async fn read(&mut self) -> Option<()> {
        self.input.reserve(READ_BYTES);
        let read = poll_fn(|cx| self.stream.poll_read(cx, &mut self.input)).await;
        read.ok().filter(|count| *count > 0).map(|_| ())
    }

    /// Reads a request; `None`: the client has gone.
    async fn request(&mut self) -> Option<Result<ControlRequest, BadRequest>> {
        let (mut parser, mut head) = (RequestHeadParser::default(), RequestHead::default());
        let limits = HeadLimits {
            client_header_buffer_size: HEAD_BYTES_MAX,
            large_client_header_buffers: (0, HEAD_BYTES_MAX),
            max_headers: 100,
            ..HeadLimits::default()
        };
        let length = loop {
            match parser.parse(&mut head, &self.input, &limits) {
                Ok(HeadProgress::Complete { len }) => break len,
                Ok(_) if self.input.len() < HEAD_BYTES_MAX => self.read().await?,
                Ok(_) | Err(_) => return Some(Err(BadRequest(400))),
            }
        };
        let Ok(framing) = RequestFraming::of(&head, &self.input, false) else {
            return Some(Err(BadRequest(400)));
        };
        let body = match framing.body {
            BodyLength::None => 0,
            BodyLength::Length(body) if body <= CHANGE_BODY_MAX as u64 => body as usize,
            BodyLength::Length(_) => return Some(Err(BadRequest(413))),
            BodyLength::Chunked => return Some(Err(BadRequest(411))),
        };
        if framing.expects_continue && self.input.len() == length {
            self.write(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
        }
        while self.input.len() < length + body {
            self.read().await?;
        }
        let request = self.taken(&head, length, body);
        let to_head = &*request.method == b"HEAD";
        Some(Ok(ControlRequest { request, keep_alive: framing.keep_alive, to_head }))
    }

    /// Takes a request out of the input.
    fn taken(&mut self, head: &RequestHead, length: usize, body: usize) -> SteeringRequest {
        let input = &self.input;
        let field = |name: &[u8]| {
            let mut fields = head.fields.iter();
            let found = fields.find(|field| field.name.of(input).eq_ignore_ascii_case(name));
            found.map_or(Box::default(), |field| Box::from(field.value.of(input)))
        };
        let request = SteeringRequest {
            method: head.method_text.of(input).into(),
            path: head.path.of(input).into(),
            args: head.args.map_or(Box::default(), |args| args.of(input).into()),
            body: input[length..length + body].into(),
            content_type: field(b"content-type"),
            origin: field(b"origin"),
            host: Box::default(),
            owner: field(b"weir-owner"),
            version: field(b"weir-version"),
            who: self.who.as_bytes().into(),
            request_id: request_id(),
            store: Box::default(),
        };
        self.input.drain(..length + body);
        request
    }

    /// Returns whether the reply was written.
    async fn reply(&mut self, reply: &SteeringReply, keep_alive: bool, to_head: bool) -> bool {
        let written = async |connection: &mut Self| {
            connection.write(head(reply, keep_alive).as_bytes()).await?;
            if !to_head {
                connection.write(&reply.json).await?;
            }
            Some(())
        };
        self.within(TRANSFER_MAX, written).await.flatten().is_some()
    }

    async fn write(&mut self, mut bytes: &[u8]) -> Option<()> {
        while !bytes.is_empty() {
            let write = poll_fn(|cx| self.stream.poll_write(cx, &[IoSlice::new(bytes)]));
            bytes = &bytes[write.await.ok()?..];
        }
        Some(())
    }
}

async fn ask(request: SteeringRequest, pass_on: &impl Fn(SteeringCall)) -> SteeringReply {
    let (reply, mut answers) = net::mailbox();
    pass_on(SteeringCall { request, reply });
    let timer = Timer::new();
    timer.set(REPLY_MAX.as_millis() as u64);
    let unanswered = SteeringReply { status: 503, ..SteeringReply::default() };
    timer.limit(answers.next()).await.flatten().unwrap_or(unanswered)
}

fn head(reply: &SteeringReply, keep_alive: bool) -> String {
    let SteeringReply { status, json, fields } = reply;
    let connection = if keep_alive { "keep-alive" } else { "close" };
    let line = wire::status_text(*status).map_or(status.to_string(), str::to_owned);
    let mut head = format!("HTTP/1.1 {line}\r\nConnection: {connection}\r\n");
    if *status != 204 {
        let _ = write!(head, "Content-Length: {}\r\n", json.len());
        if !fields.iter().any(|field| field.starts_with("Content-Type: ")) {
            head.push_str("Content-Type: application/json\r\n");
        }
    }
    head.push_str("Cache-Control: no-store\r\n");
    fields.iter().for_each(|field| head.extend([field, "\r\n"]));
    head.push_str("\r\n");
    head
}

/// An id for the log of the client; unique in this process.
fn request_id() -> Box<[u8]> {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    format!("{:08x}{:024x}", std::process::id(), number).into_bytes().into()
}
