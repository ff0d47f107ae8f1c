//! A client for `cargo xtask attacks` that changes its keys as often as the server permits.
//!
//!     key_updates ADDRESS together|apart SECONDS
//!
//! `together` puts thousands of messages into one record. `apart` sends one per record, and a
//! request after as many records as a server accepts without data, again and again. It prints how
//! that ended.

#![allow(clippy::print_stdout, reason = "a program's output")]

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use net::testing::tls::{RawRecords, TlsClient, TlsClientStream};

/// Changes the sender's key, and requests the same from the receiver (RFC 8446, 4.6.3).
const KEY_UPDATE: [u8; 5] = [24, 0, 0, 1, 1];
const MESSAGES: usize = 3200;

/// A server accepts one record more without data.
const UPDATES: usize = 31;
/// Requests sent before their replies are read.
const REQUESTS: usize = 100;
const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: one\r\n\r\n";
const REPLY_END: &[u8] = b"hello\n";
const ANSWER_MAX: Duration = Duration::from_secs(10);

fn main() -> io::Result<()> {
    let words: Vec<String> = std::env::args().collect();
    let [_, address, way, seconds] = &words[..] else {
        return Err(io::Error::other("key_updates ADDRESS together|apart SECONDS"));
    };
    let socket = TcpStream::connect(address)?;
    socket.set_read_timeout(Some(ANSWER_MAX))?;
    let mut client = TlsClient::new().connect("localhost", socket);
    client.write_all(REQUEST)?;
    await_replies(&mut client, 1)?;
    let end = match way.as_str() {
        "together" => send_together(client)?,
        _ => {
            let seconds = seconds.parse().map_err(io::Error::other)?;
            send_apart(client, Duration::from_secs(seconds))
        }
    };
    println!("{end}");
    Ok(())
}

fn send_together(client: TlsClientStream<TcpStream>) -> io::Result<String> {
    let mut client = client.into_records();
    client.send(RawRecords::<TcpStream>::HANDSHAKE, &KEY_UPDATE.repeat(MESSAGES))?;
    Ok(match client.receive()? {
        Some((21, alert)) => format!("alert {}", alert.last().copied().unwrap_or_default()),
        Some((kind, _)) => format!("record {kind}"),
        None => "closed".to_owned(),
    })
}

fn send_apart(mut client: TlsClientStream<TcpStream>, time: Duration) -> String {
    let begin = Instant::now();
    while begin.elapsed() < time {
        if let Err(error) = send_batch(&mut client) {
            return error.to_string();
        }
    }
    "served".to_owned()
}

fn send_batch(client: &mut TlsClientStream<TcpStream>) -> io::Result<()> {
    for _ in 0..REQUESTS {
        (0..UPDATES).for_each(|_| client.refresh_keys());
        client.write_all(REQUEST)?;
    }
    await_replies(client, REQUESTS)
}

fn await_replies(client: &mut TlsClientStream<TcpStream>, count: usize) -> io::Result<()> {
    let mut text = Vec::new();
    let mut buffer = [0; 16_384];
    while text.windows(REPLY_END.len()).filter(|bytes| *bytes == REPLY_END).count() < count {
        match client.read(&mut buffer)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => text.extend_from_slice(&buffer[..read]),
        }
    }
    Ok(())
}
