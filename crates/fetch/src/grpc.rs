//! Unary calls of gRPC: one message in a request of HTTP/2, whose reply says in its trailers
//! whether the call succeeded.
//!
//! The request is a [`FetchRequest`], whose target names the method and whose body is the message.
//! Deliberately absent: streams of messages, compression, retries.

use std::cell::RefCell;
use std::future::poll_fn;
use std::task::{Context, Poll, ready};

use http2_client::{ClientStream, Http2Client, Http2ClientLimits, StreamFailure};
use net::Timer;
use upstream::ResolverPolicy;
use wire::http2::{FieldBlock, FieldWriter};

use crate::error::{FetchError, FetchFault, FetchStep};
use crate::limits::FetchLimits;
use crate::opening::FetchOpening;
use crate::progress::FetchProgress;
use crate::request::FetchRequest;

/// Says before a message that it is not compressed, and how long it is.
const PREFIX_BYTES: usize = 5;
/// Bytes that are taken from a reply's body at once.
const PIECE_BYTES: usize = 16 * 1024;

/// Calls methods of one origin, on one worker and over one connection.
#[derive(Default)]
pub struct GrpcCaller {
    names: ResolverPolicy,
    connection: RefCell<Option<Http2Client>>,
}

/// The end of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrpcReply {
    /// 0 if the call succeeded.
    pub status: u32,
    /// What went wrong, as the server says it, percent-encoded.
    pub text: Vec<u8>,
    /// The message of the reply, with its prefix.
    pub body: Vec<u8>,
}

impl GrpcCaller {
    pub fn new(names: ResolverPolicy) -> Self {
        Self { names, connection: RefCell::default() }
    }

    /// Sends a message and waits for the end of the call. Every request of a caller has the same
    /// origin. Of the limits, [`FetchLimits::silence_ms`] does not apply.
    ///
    /// Must be polled on a worker. Dropping the future ends the call.
    pub async fn call(
        &self,
        request: &FetchRequest,
        limits: &FetchLimits,
    ) -> Result<GrpcReply, FetchError> {
        let progress = FetchProgress::new(&request.origin.place);
        let timer = Timer::new();
        timer.set(limits.total_ms);
        let calling = GrpcCall { caller: self, request, limits, progress: &progress };
        let done = timer.limit(calling.run()).await;
        let done = done.unwrap_or(Err(FetchFault::NotDone(limits.total_ms)));
        done.map_err(|fault| progress.error(fault))
    }
}

struct GrpcCall<'a> {
    caller: &'a GrpcCaller,
    request: &'a FetchRequest,
    limits: &'a FetchLimits,
    progress: &'a FetchProgress<'a>,
}

impl GrpcCall<'_> {
    async fn run(&self) -> Result<GrpcReply, FetchFault> {
        self.request.check().map_err(FetchFault::InvalidRequest)?;
        let mut stream = self.open(&self.connection().await?)?;
        self.progress.step.set(FetchStep::Sending);
        let sent = self.send(&mut stream).await;
        self.progress.step.set(FetchStep::Waiting);
        // A server that refuses a message may not read it to its end, and says why in its reply.
        let received = self.receive(&mut stream).await;
        received.map_err(|failure| fault(sent.err().unwrap_or(failure)))?
    }

    /// The connection, or a new one.
    async fn connection(&self) -> Result<Http2Client, FetchFault> {
        let usable = |client: &&Http2Client| !client.is_over() && client.free_streams() > 0;
        if let Some(client) = self.caller.connection.borrow().as_ref().filter(usable) {
            return Ok(client.clone());
        }
        let opening = FetchOpening {
            names: &self.caller.names,
            origin: &self.request.origin,
            limits: self.limits,
            progress: self.progress,
        };
        let limits = Http2ClientLimits {
            head_bytes_max: u32::try_from(self.limits.head_bytes_max).unwrap_or(u32::MAX),
            ..Http2ClientLimits::default()
        };
        let client = Http2Client::start(opening.connect().await?.stream, limits);
        self.caller.connection.replace(Some(client.clone()));
        Ok(client)
    }

    fn open(&self, client: &Http2Client) -> Result<ClientStream, FetchFault> {
        let opened = client.open(&mut |writer| write_head(self.request, writer), false);
        opened.ok_or(FetchFault::Closed)
    }

    async fn send(&self, stream: &mut ClientStream) -> Result<(), StreamFailure> {
        let body = &self.request.body;
        let length = u32::try_from(body.len()).unwrap_or(u32::MAX).to_be_bytes();
        let mut prefix = [0; PREFIX_BYTES];
        prefix[1..].copy_from_slice(&length);
        send_all(stream, &prefix, false).await?;
        send_all(stream, body, true).await
    }

    async fn receive(
        &self,
        stream: &mut ClientStream,
    ) -> Result<Result<GrpcReply, FetchFault>, StreamFailure> {
        let mut head = poll_fn(|cx| stream.poll_head(cx)).await?;
        while head.is_interim {
            head = poll_fn(|cx| stream.poll_head(cx)).await?;
        }
        self.progress.step.set(FetchStep::Reading);
        if head.status != 200 {
            return Ok(Err(FetchFault::InvalidReply(format!("HTTP status {}", head.status))));
        }
        if head.end_stream {
            return Ok(reply(&head.fields, Vec::new()));
        }
        let mut body = Vec::new();
        while poll_fn(|cx| stream.poll_body(cx, &mut body, PIECE_BYTES)).await? > 0 {
            if body.len() > self.limits.body_bytes_max {
                return Ok(Err(FetchFault::TooLargeBody(self.limits.body_bytes_max)));
            }
        }
        let trailers = stream.take_trailers().unwrap_or_default();
        Ok(reply(&trailers, body))
    }
}

fn write_head(request: &FetchRequest, writer: &mut FieldWriter<'_>) {
    let origin = &request.origin;
    writer.field(b":method", b"POST");
    writer.field(b":scheme", if origin.transport.is_some() { b"https" } else { b"http" });
    writer.field(b":path", &request.target);
    writer.field(b":authority", &origin.host);
    writer.field(b"content-type", b"application/grpc");
    writer.field(b"te", b"trailers");
    for (name, value) in &request.fields {
        writer.field(&name.to_ascii_lowercase(), value);
    }
}

async fn send_all(
    stream: &mut ClientStream,
    bytes: &[u8],
    is_last: bool,
) -> Result<(), StreamFailure> {
    let mut sent = 0;
    poll_fn(|cx: &mut Context<'_>| {
        loop {
            ready!(net::poll_share(cx));
            let count = ready!(stream.poll_send(cx, &bytes[sent..], is_last))?;
            net::spend(count);
            sent += count;
            if sent == bytes.len() {
                return Poll::Ready(Ok(()));
            }
        }
    })
    .await
}

/// The end of a call by its trailers, or by its head if the reply has no body.
fn reply(trailers: &FieldBlock, body: Vec<u8>) -> Result<GrpcReply, FetchFault> {
    let status = trailers.get(b"grpc-status").and_then(|status| std::str::from_utf8(status).ok());
    let status = status.and_then(|status| status.parse().ok());
    let missing = || FetchFault::InvalidReply("the reply has no grpc-status".into());
    let text = trailers.get(b"grpc-message").unwrap_or_default().to_vec();
    Ok(GrpcReply { status: status.ok_or_else(missing)?, text, body })
}

fn fault(failure: StreamFailure) -> FetchFault {
    match failure {
        StreamFailure::Connection(error) => FetchFault::Connection(error),
        StreamFailure::Closed | StreamFailure::Unprocessed | StreamFailure::GoneAway => {
            FetchFault::Closed
        }
        StreamFailure::Reset(code) => {
            FetchFault::InvalidReply(format!("the stream was reset ({code:?})"))
        }
        StreamFailure::Malformed(what) | StreamFailure::Protocol(what) => {
            FetchFault::InvalidReply(format!("the server {what}"))
        }
    }
}
