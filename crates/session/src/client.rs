//! The client of a connection.

use std::cell::{Cell, OnceCell};
use std::fmt::{self, Write};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use net::SocketProbe;
use net::tls::TlsDetails;
use observe::{ErrorLog, Level, MessageContext, MessageSource};
use wire::proxy_protocol::Header;

/// The state kept for a client while its connection is parked; the rest is read from the socket
/// again.
pub struct Resting {
    /// The number of the connection.
    pub serial: u64,
    peer: Option<SocketAddr>,
    /// The slot of the listening socket.
    pub listen: u32,
    requests: u64,
    accepted_ms: u64,
    debug: bool,
    proxy_protocol: Option<Rc<Header>>,
    is_secure: bool,
    tls: Option<Arc<TlsDetails>>,
    passed_to: Option<Box<SocketAddr>>,
}

/// The client of a connection, as its exchanges see it.
pub struct Client {
    /// The number that log lines carry after `*`.
    pub serial: u64,
    /// The client's address; `None` on Unix sockets.
    pub peer: Option<SocketAddr>,
    /// The connection's socket, for queries while it is open.
    pub socket: SocketProbe,
    /// The address that the client connected to, once it has been read.
    local: OnceCell<Option<SocketAddr>>,
    /// The slot of the listening socket that accepted it, or that it was passed to.
    pub listen: u32,
    /// The number of times it was passed to another listening socket (`pass`), and the address of
    /// the last one, which replaces the address that it connected to.
    pub passes: u32,
    passed_to: Option<Box<SocketAddr>>,
    pub is_udp: bool,
    /// The number of requests so far, including the current one.
    pub requests: Cell<u64>,
    /// When it was accepted, by the worker's clock.
    pub accepted_ms: u64,
    /// Whether `debug_connection` has its address, so that messages of every level are logged.
    pub debug: bool,
    /// The PROXY protocol header, once it has been read.
    pub proxy_protocol: OnceCell<Rc<Header>>,
    /// Whether the connection is encrypted.
    pub is_secure: Cell<bool>,
    /// Whether it sends plaintext to a port for TLS.
    pub is_plain_by_mistake: Cell<bool>,
    pub tls: OnceCell<Arc<TlsDetails>>,
    /// How long its TLS handshake took.
    pub handshake_ms: Cell<u32>,
    /// The client of the connection, if that is a trusted proxy speaking for this client.
    pub behind: Option<Rc<Client>>,
    /// The address of `peer`, without its port, as text.
    address: AddressText,
}

impl Client {
    /// A connection that was just accepted.
    pub fn new(serial: u64, peer: Option<SocketAddr>, socket: SocketProbe, listen: u32) -> Self {
        Self {
            serial,
            peer,
            socket,
            local: OnceCell::new(),
            listen,
            passes: 0,
            passed_to: None,
            is_udp: false,
            requests: Cell::new(0),
            accepted_ms: net::clock::now_ms(),
            debug: false,
            proxy_protocol: OnceCell::new(),
            is_secure: Cell::new(false),
            is_plain_by_mistake: Cell::new(false),
            tls: OnceCell::new(),
            handshake_ms: Cell::new(0),
            behind: None,
            address: AddressText::of(peer),
        }
    }

    /// A client whose first datagram arrived at `local`.
    pub fn over_udp(serial: u64, peer: SocketAddr, local: SocketAddr, listen: u32) -> Self {
        let client = Self::new(serial, Some(peer), SocketProbe::NONE, listen);
        Self { is_udp: true, local: OnceCell::from(Some(local)), ..client }
    }

    /// The state to keep while the connection is parked.
    pub fn rest(&self) -> Resting {
        let Self { serial, peer, listen, accepted_ms, debug, .. } = *self;
        let (requests, proxy_protocol) = (self.requests.get(), self.proxy_protocol.get().cloned());
        let (is_secure, tls) = (self.is_secure.get(), self.tls.get().cloned());
        let passed_to = self.passed_to.clone();
        Resting {
            serial,
            peer,
            listen,
            requests,
            accepted_ms,
            debug,
            proxy_protocol,
            is_secure,
            tls,
            passed_to,
        }
    }

    /// The client of a connection that is no longer parked.
    pub fn wake(resting: Resting, socket: SocketProbe) -> Self {
        let Resting { serial, peer, listen, accepted_ms, debug, proxy_protocol, .. } = resting;
        let is_secure = Cell::new(resting.is_secure);
        let tls = resting.tls.map_or_else(OnceCell::new, OnceCell::from);
        let requests = Cell::new(resting.requests);
        let proxy_protocol = proxy_protocol.map_or_else(OnceCell::new, OnceCell::from);
        let passed_to = resting.passed_to;
        let new = Self::new(serial, peer, socket, listen);
        Self { requests, accepted_ms, debug, proxy_protocol, is_secure, tls, passed_to, ..new }
    }

    /// The client after it was passed to another listening socket. That socket's address replaces
    /// the one it connected to.
    pub fn passed_on(&self, listen: u32, to: Option<SocketAddr>) -> Self {
        let before = Resting { listen, passed_to: to.map(Box::new), ..self.rest() };
        let accepted_ms = net::clock::now_ms();
        Self { passes: self.passes + 1, accepted_ms, ..Self::wake(before, self.socket) }
    }

    /// A copy for the time of the handshake, with the details known so far.
    pub fn in_handshake(&self, known: TlsDetails) -> Self {
        let client = Self::wake(self.rest(), self.socket);
        client.tls.get_or_init(|| Arc::new(known));
        client
    }

    /// The client at `peer` for which this one, a trusted proxy, speaks in one request.
    pub fn speaking_for(self: &Rc<Self>, peer: SocketAddr) -> Self {
        let Self { serial, socket, listen, passes, is_udp, accepted_ms, debug, .. } = **self;
        Self {
            serial,
            peer: Some(peer),
            socket,
            local: self.local.clone(),
            listen,
            passes,
            passed_to: self.passed_to.clone(),
            is_udp,
            requests: self.requests.clone(),
            accepted_ms,
            debug,
            proxy_protocol: self.proxy_protocol.clone(),
            is_secure: self.is_secure.clone(),
            is_plain_by_mistake: self.is_plain_by_mistake.clone(),
            tls: self.tls.clone(),
            handshake_ms: self.handshake_ms.clone(),
            behind: Some(self.clone()),
            address: AddressText::of(Some(peer)),
        }
    }

    /// A copy for work that may outlive the connection: once that is closed, the number of its
    /// socket may belong to another socket.
    pub fn without_socket(&self) -> Self {
        let local = OnceCell::from(self.local());
        let behind = self.behind.as_ref().map(|behind| Rc::new(behind.without_socket()));
        let is_plain_by_mistake = self.is_plain_by_mistake.clone();
        Self { local, behind, is_plain_by_mistake, ..Self::wake(self.rest(), SocketProbe::NONE) }
    }

    /// The client of the connection itself, which may speak for another.
    pub fn nearest(&self) -> &Client {
        self.behind.as_deref().unwrap_or(self)
    }

    /// The scheme of URLs for this connection, and the scheme's default port.
    pub fn scheme(&self) -> (&'static str, u16) {
        if self.is_secure.get() { ("https", 443) } else { ("http", 80) }
    }

    /// The address that the client connected to; `None` on Unix sockets.
    pub fn local(&self) -> Option<SocketAddr> {
        match &self.passed_to {
            Some(address) => Some(**address),
            None => *self.local.get_or_init(|| self.socket.local()),
        }
    }

    /// The client's address without port; `unix:` for Unix sockets.
    pub fn address(&self) -> &[u8] {
        &self.address.text[..self.address.len]
    }

    /// The source of the connection's log messages.
    pub fn source(&self) -> MessageSource<'static> {
        MessageSource { connection: Some(self.serial), debug: self.debug, tags: b"" }
    }

    /// Logs a message about the connection outside requests. `doing` is nginx's word for the
    /// current step, `server` the listening address.
    pub fn log(
        &self,
        log: &ErrorLog,
        level: Level,
        message: fmt::Arguments<'_>,
        doing: &str,
        server: &dyn fmt::Display,
    ) {
        log.write(level, self.source(), message, |context| self.describe(context, doing, server));
    }

    /// Writes the context of the connection's messages: the current step, the client and the
    /// listening address.
    pub fn describe(
        &self,
        context: &mut MessageContext<'_>,
        doing: &str,
        server: &dyn fmt::Display,
    ) {
        context.action(doing);
        context.client(if self.is_udp { "udp " } else { "" }, self.address());
        context.listening_server(server);
    }
}

/// The longest text of an IPv6 address.
const ADDRESS_MAX: usize = 45;

/// An address as text, without an allocation.
struct AddressText {
    text: [u8; ADDRESS_MAX],
    len: usize,
}

impl AddressText {
    fn of(peer: Option<SocketAddr>) -> Self {
        let mut address = Self { text: [0; ADDRESS_MAX], len: 0 };
        match peer {
            Some(peer) => write!(address, "{}", peer.ip()).expect("every address fits"),
            None => address.write_str("unix:").expect("it fits"),
        }
        address
    }
}

impl Write for AddressText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.text.get_mut(self.len..self.len + text.len()).ok_or(fmt::Error)?;
        room.copy_from_slice(text.as_bytes());
        self.len += text.len();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use net::SocketProbe;
    use wire::proxy_protocol::{Read, read};

    use super::Client;

    fn behind_a_proxy() -> Rc<Client> {
        let client = Client::new(7, None, SocketProbe::NONE, 2);
        client.requests.set(3);
        let line = b"PROXY TCP4 192.0.2.1 192.0.2.2 123 5678\r\n";
        let Ok(Read::Complete { header: Some(header), .. }) = read(line) else {
            panic!("no header")
        };
        assert!(client.proxy_protocol.set(Rc::new(header)).is_ok());
        Rc::new(client)
    }

    #[test]
    fn parking_keeps_the_client() {
        let before = behind_a_proxy();
        let after = Client::wake(before.rest(), SocketProbe::NONE);
        assert_eq!((after.serial, after.listen, after.requests.get()), (7, 2, 3));
        assert_eq!(after.proxy_protocol.get(), before.proxy_protocol.get());
        assert!(after.proxy_protocol.get().is_some());
    }

    #[test]
    fn speaking_for_another_changes_only_the_address() {
        let proxy = behind_a_proxy();
        let client = proxy.speaking_for("192.0.2.9:80".parse().unwrap());
        assert_eq!(
            (client.address(), client.nearest().address()),
            (&b"192.0.2.9"[..], &b"unix:"[..])
        );
        assert_eq!((client.serial, client.requests.get()), (7, 3));
        assert_eq!(client.proxy_protocol.get(), proxy.proxy_protocol.get());
    }
}
