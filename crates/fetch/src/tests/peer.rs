//! The other end of a request.

use std::future::poll_fn;
use std::io::IoSlice;
use std::net::TcpListener;
use std::os::fd::AsFd;

use net::{Address, Listener, SecureSession, Stream};
use upstream::address::Endpoint;

use crate::FetchOrigin;

pub(super) struct Peer {
    listener: Listener,
    address: Address,
}

pub(super) struct PeerConnection {
    stream: Stream,
    received: Vec<u8>,
}

impl Peer {
    pub(super) fn new() -> Self {
        Self::at(TcpListener::bind("127.0.0.1:0").expect("a socket").into())
    }

    /// A peer that listens on this socket.
    pub(super) fn at(socket: std::os::fd::OwnedFd) -> Self {
        let address = Address::of(socket.as_fd()).expect("an address");
        // The option is the same for both kinds of sockets.
        let socket = TcpListener::from(socket);
        socket.set_nonblocking(true).expect("an option");
        Self { listener: Listener::new(socket.into()).expect("a listener"), address }
    }

    pub(super) fn address(&self) -> &Address {
        &self.address
    }

    pub(super) fn origin(&self) -> FetchOrigin {
        let place = Endpoint::At(self.address.clone());
        FetchOrigin { place, host: b"a.test".to_vec(), transport: None }
    }

    pub(super) async fn accept(&self) -> PeerConnection {
        let (socket, _) = self.listener.accept().await.expect("a connection");
        PeerConnection { stream: Stream::new(socket), received: Vec::new() }
    }
}

impl PeerConnection {
    /// Secures the connection. Returns whether that succeeded.
    pub(super) async fn secure(&mut self, session: Box<dyn SecureSession>) -> bool {
        self.stream.secure(session);
        poll_fn(|cx| self.stream.poll_handshake(cx)).await.is_ok()
    }

    /// The stream, for the parameters of its session.
    pub(super) fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Reads the next request, head and body. Returns an empty text if the connection has ended.
    pub(super) async fn request(&mut self) -> String {
        loop {
            if let Some(length) = request_length(&self.received) {
                let request = self.received.drain(..length).collect();
                return String::from_utf8(request).expect("text");
            }
            if self.read().await == 0 {
                return String::new();
            }
        }
    }

    /// Reads once, and returns the number of bytes.
    pub(super) async fn read(&mut self) -> usize {
        self.received.reserve(1000);
        poll_fn(|cx| self.stream.poll_read(cx, &mut self.received)).await.unwrap_or(0)
    }

    /// Reads this number of bytes.
    pub(super) async fn exactly(&mut self, count: usize) -> Vec<u8> {
        while self.received.len() < count {
            assert!(self.read().await > 0, "the connection has ended");
        }
        self.received.drain(..count).collect()
    }

    /// Reads a request, and sends this reply.
    pub(super) async fn answer(&mut self, reply: impl AsRef<[u8]>) -> String {
        let request = self.request().await;
        self.say(reply).await;
        request
    }

    /// Sends bytes. Returns whether the other end is still there.
    pub(super) async fn say(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        let mut bytes = bytes.as_ref();
        while !bytes.is_empty() {
            let written = poll_fn(|cx| self.stream.poll_write(cx, &[IoSlice::new(bytes)])).await;
            let Ok(count) = written else { return false };
            bytes = &bytes[count..];
        }
        true
    }

    /// Closes the session properly, then the connection.
    pub(super) fn close(mut self) {
        self.stream.close_session();
    }

    /// Closes the connection with RST, which the other end sees as an error.
    pub(super) fn reset(self) {
        self.stream.reset_on_close().expect("an option");
    }

    /// Ready once the other end has closed the connection.
    pub(super) async fn closed(&mut self) {
        while self.read().await > 0 {}
    }
}

/// The length of the request, if all of it was received.
fn request_length(received: &[u8]) -> Option<usize> {
    const END: &[u8] = b"\r\n\r\n";
    let head = received.windows(END.len()).position(|window| window == END)? + END.len();
    let text = std::str::from_utf8(&received[..head]).expect("text");
    let length = text.split("\r\n").find_map(|line| line.strip_prefix("Content-Length: "));
    let length = head + length.map_or(0, |digits| digits.parse::<usize>().expect("a number"));
    (received.len() >= length).then_some(length)
}
