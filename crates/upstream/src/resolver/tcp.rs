//! A question over TCP (RFC 7766), for an answer that is too long for a datagram.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::net::SocketAddr;

use net::{Address, Connect, Stream};
use observe::Level;
use wire::dns::{self, DnsQuestion, Response};

use super::line::failed;
use super::within::within;

/// The timeout of one question; nginx's time.
const TIMEOUT_MS: u64 = 5000;
/// Bytes before a message: its length.
const LENGTH_BYTES: usize = 2;

/// Sends a question and reads the response; `None` after a failure, which is logged here.
pub(super) async fn ask(server: SocketAddr, question: &DnsQuestion) -> Option<Response> {
    let id = net::system::random() as u16;
    let mut query = Vec::new();
    question.write(id, &mut query);
    let message = match within(TIMEOUT_MS, exchange_over_tcp(server, &query)).await {
        Some(Ok(message)) => message,
        Some(Err((call, error))) => {
            failed(Level::Error, call, &error, server);
            return None;
        }
        None => return None,
    };
    match dns::parse(&message, question, id) {
        Ok(Response::Truncated) => log(question, id, &"truncated TCP DNS response"),
        Ok(response) => return Some(response),
        Err(error) => log(question, id, &error),
    }
    None
}

fn log(question: &DnsQuestion, id: u16, what: &dyn std::fmt::Display) {
    let name = &question.name;
    observe::log(Level::Error, format_args!("{what}, query id:{id}, name:\"{name}\""));
}

/// Sends a message and reads one. The error includes the name of the call. There is no deadline.
pub async fn exchange_over_tcp(
    server: SocketAddr,
    message: &[u8],
) -> Result<Vec<u8>, (&'static str, io::Error)> {
    let mut connecting = Connect::default().begin(&Address::Ip(server))?;
    let connected = poll_fn(|cx| connecting.poll(cx)).await;
    let mut stream = connected.map_err(|error| ("connect()", error))?;
    let framed = [&(message.len() as u16).to_be_bytes()[..], message].concat();
    write(&mut stream, &framed).await.map_err(|error| ("send()", error))?;
    read(&mut stream).await.map_err(|error| ("recv()", error))
}

async fn write(stream: &mut Stream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = poll_fn(|cx| stream.poll_write(cx, &[IoSlice::new(bytes)])).await?;
        bytes = &bytes[written..];
    }
    Ok(())
}

/// One message, which follows its length.
async fn read(stream: &mut Stream) -> io::Result<Vec<u8>> {
    let mut length = Vec::with_capacity(LENGTH_BYTES);
    read_exactly(stream, &mut length, LENGTH_BYTES).await?;
    let length = u16::from_be_bytes([length[0], length[1]]).into();
    let mut message = Vec::with_capacity(length);
    read_exactly(stream, &mut message, length).await?;
    Ok(message)
}

async fn read_exactly(stream: &mut Stream, into: &mut Vec<u8>, length: usize) -> io::Result<()> {
    while into.len() < length {
        let left = length - into.len();
        if poll_fn(|cx| stream.poll_read_most(cx, into, left)).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(())
}
