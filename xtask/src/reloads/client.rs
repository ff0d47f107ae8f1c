//! The clients: sessions that wait for the echo of each frame, and connections that ask and ask.

pub(super) mod frame;

use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use super::Tally;

/// Longer than anything should take, on a busy machine, too.
const SILENCE_MAX: Duration = Duration::from_secs(15);

/// Between two frames, and between two requests.
const PAUSE: Duration = Duration::from_millis(50);

/// One WebSocket session, from the first reload until after the last.
pub(super) fn converse(number: usize, address: SocketAddr, tally: &Tally) {
    if let Err(error) = session(number, address, tally) {
        tally.complain(format!("session {number}: {error}"));
    }
}

fn session(number: usize, address: SocketAddr, tally: &Tally) -> Result<()> {
    let mut peer = Peer::open(address)?;
    peer.stream.write_all(
        b"GET /chat HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
          Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
    )?;
    let head = peer.head()?;
    if !head.starts_with("HTTP/1.1 101 ") {
        return Err(Error::other(head));
    }
    let mut count = 0_u32;
    while !tally.has_ended() {
        let text = format!("frame {count} of session {number}");
        peer.stream.write_all(&frame::write(text.as_bytes(), Some(count.to_be_bytes())))?;
        let echo = loop {
            if let Some((echo, length)) = frame::read(&peer.bytes) {
                peer.bytes.drain(..length);
                break echo;
            }
            peer.fill()?;
        };
        if echo != text.as_bytes() {
            return Err(Error::other("another's frame"));
        }
        tally.hear(number);
        count += 1;
        thread::sleep(PAUSE);
    }
    Ok(())
}

/// One connection, opened again only where the server said that it closes it.
pub(super) fn ask_on(number: usize, address: SocketAddr, tally: &Tally) {
    let target = if number.is_multiple_of(2) { "/number" } else { "/proxied" };
    let mut peer = None;
    while !tally.has_ended() {
        match ask(&mut peer, address, target) {
            Ok(_) => {
                tally.requests.fetch_add(1, Ordering::Relaxed);
                if peer.is_none() {
                    tally.closed.fetch_add(1, Ordering::Relaxed);
                }
            }
            Err(error) => {
                tally.complain(format!("connection {number}: {error}"));
                peer = None;
            }
        }
        thread::sleep(PAUSE);
    }
}

/// The body of one reply, on a connection of its own.
pub(super) fn get(address: SocketAddr, target: &str) -> Option<String> {
    ask(&mut None, address, target).ok()
}

fn ask(slot: &mut Option<Peer>, address: SocketAddr, target: &str) -> Result<String> {
    let mut peer = match slot.take() {
        Some(peer) => peer,
        None => Peer::open(address)?,
    };
    write!(peer.stream, "GET {target} HTTP/1.1\r\nHost: h\r\n\r\n")?;
    let head = peer.head()?;
    if !head.starts_with("HTTP/1.1 200 ") {
        return Err(Error::other(head));
    }
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
    let length = length.and_then(|length| length.parse().ok());
    let length: usize = length.ok_or_else(|| Error::other("no length"))?;
    while peer.bytes.len() < length {
        peer.fill()?;
    }
    let body: Vec<u8> = peer.bytes.drain(..length).collect();
    if !head.contains("Connection: close") {
        *slot = Some(peer);
    }
    Ok(String::from_utf8_lossy(&body).into_owned())
}

struct Peer {
    stream: TcpStream,
    bytes: Vec<u8>,
}

impl Peer {
    fn open(address: SocketAddr) -> Result<Peer> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(SILENCE_MAX))?;
        Ok(Peer { stream, bytes: Vec::new() })
    }

    fn fill(&mut self) -> Result<()> {
        let mut buffer = [0; 4096];
        match self.stream.read(&mut buffer)? {
            0 => Err(ErrorKind::UnexpectedEof.into()),
            length => {
                self.bytes.extend_from_slice(&buffer[..length]);
                Ok(())
            }
        }
    }

    fn head(&mut self) -> Result<String> {
        loop {
            if let Some(end) = self.bytes.windows(4).position(|window| window == b"\r\n\r\n") {
                let head: Vec<u8> = self.bytes.drain(..end + 4).collect();
                return Ok(String::from_utf8_lossy(&head).into_owned());
            }
            self.fill()?;
        }
    }
}
