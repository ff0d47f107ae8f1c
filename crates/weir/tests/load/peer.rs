//! A server that does as a test says, and counts what it sees.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};

use testing::{PeerConnection, eventually, field};

/// A reply that goes on.
pub const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// A running one. It runs on until the tests end.
pub struct Peer {
    pub address: SocketAddr,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Connections on which something was asked.
    pub connections: u64,
    pub requests: u64,
    /// Requests by their first lines.
    pub lines: BTreeMap<String, u64>,
    /// Requests by where they came from.
    pub sources: BTreeMap<IpAddr, u64>,
    /// The most requests of one connection.
    pub most: u64,
    /// Head and body of the last one.
    pub last: String,
}

impl Peer {
    /// Every connection has a thread that does this.
    pub fn start(serve: impl Fn(Client) -> Option<()> + Send + Sync + 'static) -> Self {
        let seen = Arc::<Mutex<Seen>>::default();
        let shared = seen.clone();
        let peer = testing::Peer::playing(move |connection| {
            let source = connection.stream().peer_addr().ok()?.ip();
            connection.stream().set_nodelay(true).ok()?;
            serve(Client { connection, source, requests: 0, seen: shared.clone() })
        });
        Self { address: peer.address, seen }
    }

    /// Answers every request with these bytes.
    pub fn answering(reply: &'static [u8]) -> Self {
        Self::start(move |mut client| {
            loop {
                client.request()?;
                client.write(reply)?;
            }
        })
    }

    /// What it has seen so far.
    pub fn seen(&self) -> Seen {
        self.seen.lock().unwrap().clone()
    }

    /// What it has seen since this was asked last.
    pub fn take(&self) -> Seen {
        std::mem::take(&mut self.seen.lock().unwrap())
    }

    /// Waits until it has seen that many requests.
    pub fn await_requests(&self, count: u64) {
        eventually("requests", || (self.seen().requests >= count).then_some(()));
    }
}

/// A connection, from the server's side.
pub struct Client {
    pub connection: PeerConnection,
    source: IpAddr,
    requests: u64,
    seen: Arc<Mutex<Seen>>,
}

impl Client {
    /// Reads a request to its end, and counts it.
    pub fn request(&mut self) -> Option<()> {
        let mut text = String::from_utf8(self.connection.until(b"\r\n\r\n")?).unwrap();
        let length = field(&text, "Content-Length").map_or(0, |length| length.parse().unwrap());
        text += std::str::from_utf8(&self.connection.exactly(length)?).unwrap();
        self.requests += 1;
        let mut seen = self.seen.lock().unwrap();
        seen.connections += u64::from(self.requests == 1);
        seen.requests += 1;
        *seen.lines.entry(text.lines().next().unwrap().to_owned()).or_default() += 1;
        *seen.sources.entry(self.source).or_default() += 1;
        seen.most = seen.most.max(self.requests);
        seen.last = text;
        Some(())
    }

    pub fn write(&mut self, bytes: &[u8]) -> Option<()> {
        self.connection.send_raw(bytes)
    }

    /// Resets the connection once a request comes: what was not read is not taken in silence.
    pub fn reset(self) -> Option<()> {
        self.connection.reset();
        Some(())
    }

    /// Holds the connection until the other end lets go.
    pub fn hold(&mut self) -> Option<()> {
        self.connection.wait_for_end();
        Some(())
    }
}
