//! A server made of the standard library: it does as a test says, and counts what it sees.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Result, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use testing::eventually;

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
    pub fn start(serve: impl Fn(Client) -> Result<()> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (seen, serve) = (Arc::<Mutex<Seen>>::default(), Arc::new(serve));
        let shared = seen.clone();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (seen, serve) = (shared.clone(), serve.clone());
                thread::spawn(move || serve(Client::new(stream, seen)));
            }
        });
        Self { address, seen }
    }

    /// Answers every request with these bytes.
    pub fn answering(reply: &'static [u8]) -> Self {
        Self::start(move |mut client| {
            while client.request()? {
                client.write(reply)?;
            }
            Ok(())
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
    stream: BufReader<TcpStream>,
    source: IpAddr,
    requests: u64,
    seen: Arc<Mutex<Seen>>,
}

impl Client {
    fn new(stream: TcpStream, seen: Arc<Mutex<Seen>>) -> Self {
        let source = stream.peer_addr().map_or([0, 0, 0, 0].into(), |address| address.ip());
        stream.set_nodelay(true).unwrap();
        Self { stream: BufReader::new(stream), source, requests: 0, seen }
    }

    /// Reads a request to its end, and counts it; whether there was one.
    pub fn request(&mut self) -> Result<bool> {
        let mut text = String::new();
        while !text.ends_with("\r\n\r\n") {
            if self.stream.read_line(&mut text)? == 0 {
                return Ok(false);
            }
        }
        let length = text
            .split("\r\nContent-Length: ")
            .nth(1)
            .map_or(0, |rest| rest.lines().next().unwrap().parse().unwrap());
        self.stream.by_ref().take(length).read_to_string(&mut text)?;
        self.count(text);
        Ok(true)
    }

    fn count(&mut self, text: String) {
        self.requests += 1;
        let mut seen = self.seen.lock().unwrap();
        seen.connections += u64::from(self.requests == 1);
        seen.requests += 1;
        *seen.lines.entry(text.lines().next().unwrap().to_owned()).or_default() += 1;
        *seen.sources.entry(self.source).or_default() += 1;
        seen.most = seen.most.max(self.requests);
        seen.last = text;
    }

    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    /// Waits for the first byte of a request, without reading it; whether there is one.
    pub fn is_asked(&self) -> Result<bool> {
        Ok(self.stream.get_ref().peek(&mut [0])? > 0)
    }

    /// Resets the connection once a request comes: what was not read is not taken in silence.
    pub fn reset(self) -> Result<()> {
        self.is_asked().map(|_| ())
    }

    /// Holds the connection until the other end lets go.
    pub fn hold(&mut self) -> Result<()> {
        std::io::copy(&mut self.stream, &mut std::io::sink()).map(|_| ())
    }
}
