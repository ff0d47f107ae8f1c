//! A scripted server on an address of its own.
//!
//! ```
//! use std::io::{Read, Write};
//!
//! let peer = testing::Peer::replying("HTTP/1.1 200 OK\nContent-Length: 2\n\nhi");
//! let mut client = testing::connect(&peer.address);
//! client.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
//! assert_eq!(peer.asked(), "GET / HTTP/1.0\n\n");
//! client.read_exact(&mut [0; 15]).unwrap();
//! ```
//!
//! Line feeds of replies become CR LF in heads; requests are reported with line feeds. Every
//! connection has a thread, which ends with the process; requests are reported to the test in their
//! order. A method that reads returns `None` once the other side has closed the connection, so that
//! a script can end with `?`.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::{PATIENCE, connect};

/// How long a test waits for something that must not happen.
const ABSENCE: Duration = Duration::from_millis(50);

/// A scripted server. It serves until the process ends, unless it is killed.
#[derive(Debug)]
pub struct Peer {
    /// The address where it listens.
    pub address: SocketAddr,
    /// Those that it has accepted, open or not.
    connections: Arc<Mutex<Vec<Weak<TcpStream>>>>,
    is_killed: Arc<AtomicBool>,
    accepting: JoinHandle<()>,
    received: Mutex<Receiver<String>>,
}

impl Peer {
    /// Runs a script for every connection; the connection is closed when the script ends.
    pub fn playing<R>(script: impl Fn(PeerConnection) -> R + Send + Sync + 'static) -> Self {
        Self::at(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap(), script)
    }

    /// The same, on a listening socket.
    pub fn at<R>(
        listener: TcpListener,
        script: impl Fn(PeerConnection) -> R + Send + Sync + 'static,
    ) -> Self {
        let address = listener.local_addr().unwrap();
        let (sender, received) = channel();
        let (connections, is_killed) = (Arc::<Mutex<Vec<_>>>::default(), Arc::default());
        let (accepted, ends) = (connections.clone(), Arc::<AtomicBool>::clone(&is_killed));
        let script = Arc::new(script);
        let accepting = thread::spawn(move || {
            let streams = listener.incoming().map_while(Result::ok);
            for stream in streams.take_while(|_| !ends.load(Ordering::SeqCst)).map(Arc::new) {
                accepted.lock().unwrap().push(Arc::downgrade(&stream));
                let (script, reports) = (script.clone(), sender.clone());
                let connection = PeerConnection { stream, input: Vec::new(), reports };
                thread::spawn(move || _ = script(connection));
            }
        });
        Self { address, connections, is_killed, accepting, received: received.into() }
    }

    /// Answers each request with the function's result; the connection is kept if the length of the
    /// reply is known.
    pub fn answering(answer: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        Self::playing(move |connection| connection.answer(&answer))
    }

    /// Answers every request alike.
    pub fn replying(reply: &str) -> Self {
        let reply = reply.to_owned();
        Self::answering(move |_| reply.clone())
    }

    /// The number of connections that it has accepted.
    pub fn connections(&self) -> usize {
        self.connections.lock().unwrap().len()
    }

    /// Closes the listening socket and all connections.
    pub fn kill(self) {
        self.is_killed.store(true, Ordering::SeqCst);
        // The thread waits for a connection.
        let _ = TcpStream::connect(self.address);
        self.accepting.join().unwrap();
        for stream in self.connections.lock().unwrap().iter().filter_map(Weak::upgrade) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// The next request, body included; its lines end with line feeds.
    pub fn asked(&self) -> String {
        self.next(PATIENCE).expect("a request")
    }

    /// Fails if another request has arrived, or arrives shortly.
    pub fn expect_unasked(&self) {
        let asked = self.next(ABSENCE);
        assert_eq!(asked, Err(RecvTimeoutError::Timeout));
    }

    fn next(&self, within: Duration) -> Result<String, RecvTimeoutError> {
        self.received.lock().unwrap().recv_timeout(within)
    }
}

/// One connection, as a script uses it.
#[derive(Debug)]
pub struct PeerConnection {
    stream: Arc<TcpStream>,
    input: Vec<u8>,
    reports: Sender<String>,
}

impl PeerConnection {
    /// Connects to a server, as its client. Nothing takes its reports.
    pub fn to(address: &SocketAddr) -> Self {
        Self { stream: connect(address).into(), input: Vec::new(), reports: channel().0 }
    }

    /// Continues on another stream, for instance on the plain side of a TLS session.
    pub fn over(self, other: impl FnOnce(TcpStream) -> TcpStream) -> Self {
        Self { stream: Arc::new(other(Arc::into_inner(self.stream).unwrap())), ..self }
    }

    /// The stream, for what a script does not do otherwise.
    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Answers requests, as [`Peer::answering`] does.
    pub fn answer(mut self, answer: impl Fn(&str) -> String) {
        while let Some(request) = self.request() {
            let reply = answer(&request);
            self.send(&reply);
            if !has_length(&reply) {
                return;
            }
        }
    }

    /// The next request, its body as it was framed.
    pub fn request(&mut self) -> Option<String> {
        let head = self.find(0, b"\r\n\r\n")?;
        let text = String::from_utf8_lossy(&self.input[..head]).replace("\r\n", "\n");
        let end = match field(&text, "Content-Length") {
            Some(length) => head + length.parse::<usize>().ok()?,
            None if field(&text, "Transfer-Encoding") == Some("chunked") => {
                self.find(head - 2, b"\r\n0\r\n\r\n")?
            }
            None => head,
        };
        let request = String::from_utf8_lossy(&self.exactly(end)?).replace("\r\n", "\n");
        self.report(&request);
        Some(request)
    }

    /// Reports text to the test, like a request.
    pub fn report(&self, text: &str) {
        let _ = self.reports.send(text.to_owned());
    }

    /// Reads up to the end of a pattern.
    pub fn until(&mut self, pattern: &[u8]) -> Option<Vec<u8>> {
        let end = self.find(0, pattern)?;
        self.exactly(end)
    }

    /// Reads `count` bytes.
    pub fn exactly(&mut self, count: usize) -> Option<Vec<u8>> {
        while self.input.len() < count {
            self.read()?;
        }
        let rest = self.input.split_off(count);
        Some(std::mem::replace(&mut self.input, rest))
    }

    /// Reads at least one byte, unless there are unread ones.
    pub fn take(&mut self) -> Option<Vec<u8>> {
        if self.input.is_empty() {
            self.read()?;
        }
        Some(std::mem::take(&mut self.input))
    }

    /// Reads more input, until the pattern is found in it. Returns its end.
    fn find(&mut self, mut from: usize, pattern: &[u8]) -> Option<usize> {
        loop {
            let found = self.input[from..].windows(pattern.len()).position(|part| part == pattern);
            if let Some(at) = found {
                return Some(from + at + pattern.len());
            }
            from = from.max((self.input.len() + 1).saturating_sub(pattern.len()));
            self.read()?;
        }
    }

    /// Reads the next bytes.
    pub fn read(&mut self) -> Option<()> {
        let mut buffer = [0; 16 * 1024];
        let count = (&*self.stream).read(&mut buffer).ok().filter(|count| *count > 0)?;
        self.input.extend_from_slice(&buffer[..count]);
        Some(())
    }

    /// Sends a reply: line feeds up to the first empty line become CR LF.
    pub fn send(&mut self, reply: &str) {
        let (head, body) = reply.split_once("\n\n").unwrap_or((reply, ""));
        let head = head.replace('\n', "\r\n");
        let end = if reply.contains("\n\n") { "\r\n\r\n" } else { "" };
        self.send_raw(format!("{head}{end}{body}"));
    }

    /// Sends bytes unchanged. `None` if the other side has closed the connection.
    pub fn send_raw(&mut self, bytes: impl AsRef<[u8]>) -> Option<()> {
        (&*self.stream).write_all(bytes.as_ref()).ok()
    }

    /// Ends its side of the connection.
    pub fn end(&self) {
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// Resets the connection once there is something to read, which stays unread.
    pub fn reset(self) {
        self.is_asked();
    }

    /// Waits for input without reading it. Returns whether there is some.
    pub fn is_asked(&self) -> bool {
        self.stream.peek(&mut [0]).is_ok_and(|count| count > 0)
    }

    /// Fails if the other side closes shortly.
    pub fn expect_open(&mut self) {
        self.stream.set_read_timeout(Some(ABSENCE)).unwrap();
        let read = (&*self.stream).read(&mut [0]).map_err(|error| error.kind());
        assert_eq!(read, Err(ErrorKind::WouldBlock));
        self.stream.set_read_timeout(None).unwrap();
    }

    /// Waits until the other side closes.
    pub fn wait_for_end(&mut self) {
        while self.take().is_some() {}
    }
}

/// The value of a field in the head of a message.
pub fn field<'m>(message: &'m str, name: &str) -> Option<&'m str> {
    let lines = message.lines().take_while(|line| !line.is_empty());
    let mut fields = lines.filter_map(|line| line.split_once(": "));
    fields.find_map(|(own, value)| own.eq_ignore_ascii_case(name).then_some(value))
}

fn has_length(reply: &str) -> bool {
    ["Content-Length", "Transfer-Encoding"].iter().any(|name| field(reply, name).is_some())
}

#[test]
fn requests_are_read_to_their_end_and_reported() {
    let peer = Peer::replying("HTTP/1.1 200 OK\nContent-Length: 2\n\nhi");
    let mut client = crate::connect(&peer.address);
    let chunked = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n";
    let plain = "POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc";
    let reply = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
    for request in [chunked, plain, "GET / HTTP/1.0\r\n\r\n"] {
        client.write_all(request.as_bytes()).unwrap();
        assert_eq!(peer.asked(), request.replace("\r\n", "\n"));
        let mut got = vec![0; reply.len()];
        client.read_exact(&mut got).unwrap();
        assert_eq!(String::from_utf8(got).unwrap(), reply);
    }
    assert_eq!(peer.connections(), 1);
    peer.expect_unasked();
}

#[test]
fn unread_input_resets_the_connection() {
    let peer = Peer::playing(PeerConnection::reset);
    let mut client = crate::connect(&peer.address);
    client.write_all(b"x").unwrap();
    let error = client.read(&mut [0]).map_err(|error| error.kind());
    assert_eq!(error, Err(ErrorKind::ConnectionReset));
}

#[test]
fn a_killed_peer_closes_its_connections_and_refuses_others() {
    let peer = Peer::playing(|mut connection| connection.wait_for_end());
    let (address, mut client) = (peer.address, PeerConnection::to(&peer.address));
    crate::eventually("a connection", || (peer.connections() == 1).then_some(()));
    peer.kill();
    assert_eq!(client.take(), None);
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn a_script_reads_pieces() {
    let peer = Peer::playing(|mut connection| {
        let line = connection.until(b"\n")?;
        let rest = connection.exactly(2)?;
        connection.report(&String::from_utf8([line, rest].concat()).unwrap());
        Some(())
    });
    let mut client = crate::connect(&peer.address);
    client.write_all(b"a\nbcd").unwrap();
    assert_eq!(peer.asked(), "a\nbc");
}
