//! A message to a name server, and its response: over UDP, sent again once, and over TCP.

use std::io;
use std::net::SocketAddr;

use net::{Datagram, Timer};
use upstream::resolver::exchange_over_tcp;

/// How long each sending of a datagram waits for the response.
const WAITS_MS: [u64; 2] = [2000, 4000];
const TCP_MS_MAX: u64 = 5000;
/// The largest message that is sent in a datagram, as long as nothing else is agreed (RFC 1035,
/// section 4.2.1).
const DATAGRAM_BYTES_MAX: usize = 512;
/// The largest datagram received.
const RESPONSE_BYTES_MAX: usize = 4096;

/// A request that recognises its own response.
pub(super) trait DnsMessage {
    type Outcome;
    /// Whether to try TCP if the server does not answer over UDP.
    const TCP_AFTER_SILENCE: bool;

    fn bytes(&self) -> &[u8];
    fn read(&self, response: &[u8]) -> ReceivedMessage<Self::Outcome>;
}

/// How a request classifies a message that it has received.
pub(super) enum ReceivedMessage<T> {
    /// Not the response, which may still come: anyone can send datagrams.
    Other,
    /// The response, which does not fit into a datagram.
    Truncated,
    Response(T),
}

/// Why a datagram had no response.
enum NoDatagram {
    Truncated,
    Silent,
    Failed(&'static str, io::Error),
}

/// Sends a request and returns the response, or the reason why there is none.
pub(super) async fn exchange<M: DnsMessage>(
    server: SocketAddr,
    message: &M,
) -> Result<M::Outcome, String> {
    if message.bytes().len() <= DATAGRAM_BYTES_MAX {
        match over_udp(server, message).await {
            Ok(outcome) => return Ok(outcome),
            Err(NoDatagram::Silent) if !M::TCP_AFTER_SILENCE => return Err(silent(server)),
            Err(NoDatagram::Failed(call, error)) if !M::TCP_AFTER_SILENCE => {
                return Err(failed(call, &error, server));
            }
            Err(_) => {}
        }
    }
    let deadline = Timer::new();
    deadline.set(TCP_MS_MAX);
    match deadline.limit(exchange_over_tcp(server, message.bytes())).await {
        None => Err(silent(server)),
        Some(Err((call, error))) => Err(failed(call, &error, server)),
        Some(Ok(response)) => match message.read(&response) {
            ReceivedMessage::Response(outcome) => Ok(outcome),
            ReceivedMessage::Other | ReceivedMessage::Truncated => {
                Err(format!("name server {server} sends another response"))
            }
        },
    }
}

async fn over_udp<M: DnsMessage>(
    server: SocketAddr,
    message: &M,
) -> Result<M::Outcome, NoDatagram> {
    let failed = |(call, error)| NoDatagram::Failed(call, error);
    let socket = Datagram::connect(server).map_err(failed)?;
    let deadline = Timer::new();
    for wait_ms in WAITS_MS {
        socket.send(message.bytes()).map_err(|error| failed(("send()", error)))?;
        deadline.set(wait_ms);
        match deadline.limit(response(&socket, message)).await {
            None => {}
            Some(Ok(ReceivedMessage::Response(outcome))) => return Ok(outcome),
            Some(Ok(_)) => return Err(NoDatagram::Truncated),
            Some(Err(error)) => return Err(failed(("recv()", error))),
        }
    }
    Err(NoDatagram::Silent)
}

/// Waits for the response; other datagrams are ignored.
async fn response<M: DnsMessage>(
    socket: &Datagram,
    message: &M,
) -> io::Result<ReceivedMessage<M::Outcome>> {
    let mut buffer = [0; RESPONSE_BYTES_MAX];
    loop {
        let length = socket.receive(&mut buffer).await?;
        match message.read(&buffer[..length]) {
            ReceivedMessage::Other => {}
            received => return Ok(received),
        }
    }
}

fn silent(server: SocketAddr) -> String {
    format!("name server {server} does not answer")
}

fn failed(call: &str, error: &io::Error, server: SocketAddr) -> String {
    format!("{call} to name server {server} failed: {error}")
}
