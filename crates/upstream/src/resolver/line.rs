//! Datagram sockets to name servers.
//!
//! To forge a response, an attacker must guess the port of a socket and the id of a query: both are
//! random, and a socket carries no more than [`QUERIES_MAX`] queries and is closed as soon as none
//! of them waits. A socket is connected to its name server.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;
use std::net::SocketAddr;
use std::rc::{Rc, Weak};

use net::{Datagram, Task};
use observe::{Errno, Level};
use wire::dns::{self, DnsQuestion};

use super::inbox::{Inbox, InboxEvent};

/// The most queries sent over one socket.
const QUERIES_MAX: u32 = 16;
/// The largest datagram received; without EDNS none is over 512.
const RESPONSE_BYTES_MAX: usize = 4096;

/// A name server, and the socket to it that has room for more queries.
pub(super) struct NameServer {
    pub(super) address: SocketAddr,
    newest: RefCell<Weak<QuerySocket>>,
}

/// A socket for as long as a query on it waits.
struct QuerySocket {
    socket: Rc<NameServerSocket>,
    sent: Cell<u32>,
    reader: Task,
}

struct NameServerSocket {
    datagram: Datagram,
    server: SocketAddr,
    pending: RefCell<HashMap<u16, PendingQuery>>,
    /// Whether the socket has failed.
    lost: Cell<bool>,
}

#[derive(Clone)]
pub(super) struct PendingQuery {
    pub(super) question: Rc<DnsQuestion>,
    /// The position of the question in its lookup.
    pub(super) index: usize,
    /// The position of the name server in its list.
    pub(super) server: usize,
    pub(super) inbox: Rc<Inbox>,
}

/// A query on its socket: while this lives, a response is waited for.
pub(super) struct Query {
    line: Rc<QuerySocket>,
    id: u16,
}

impl NameServer {
    pub(super) fn new(address: SocketAddr) -> Self {
        Self { address, newest: RefCell::default() }
    }

    /// Adds a query to a socket; nothing is sent yet. Failures are logged here and below.
    pub(super) fn query(&self, pending: PendingQuery) -> Option<Query> {
        let open = self.newest.borrow().upgrade().filter(|line| line.has_room());
        let line = match open {
            Some(line) => line,
            None => {
                let line = QuerySocket::open(self.address)?;
                self.newest.replace(Rc::downgrade(&line));
                line
            }
        };
        let id = line.socket.register(pending);
        line.sent.set(line.sent.get() + 1);
        Some(Query { line, id })
    }
}

impl QuerySocket {
    fn open(server: SocketAddr) -> Option<Rc<Self>> {
        let opened = Datagram::connect(server).map_err(|(call, error)| {
            failed(Level::Crit, call, &error, server);
        });
        let pending = RefCell::default();
        let socket = Rc::new(NameServerSocket {
            datagram: opened.ok()?,
            server,
            pending,
            lost: Cell::new(false),
        });
        let reader = net::spawn(socket.clone().read());
        Some(Rc::new(Self { socket, sent: Cell::new(0), reader }))
    }

    fn has_room(&self) -> bool {
        self.sent.get() < QUERIES_MAX && !self.socket.lost.get()
    }
}

impl Drop for QuerySocket {
    fn drop(&mut self) {
        self.reader.stop();
    }
}

impl NameServerSocket {
    fn register(&self, query: PendingQuery) -> u16 {
        let mut pending = self.pending.borrow_mut();
        loop {
            let id = net::system::random() as u16;
            if let Entry::Vacant(free) = pending.entry(id) {
                free.insert(query);
                return id;
            }
        }
    }

    async fn read(self: Rc<Self>) {
        let mut buffer = [0; RESPONSE_BYTES_MAX];
        loop {
            match self.datagram.receive(&mut buffer).await {
                Ok(length) => self.take(&buffer[..length]),
                Err(error) => {
                    failed(Level::Error, "recv()", &error, self.server);
                    return self.lose();
                }
            }
        }
    }

    /// Ignores messages that are not a response to a pending query.
    fn take(&self, message: &[u8]) {
        let server = self.server;
        let Some(id) = dns::id_of(message) else {
            return observe::log(
                Level::Error,
                format_args!("short DNS response, resolver: {server}"),
            );
        };
        let Some(pending) = self.pending.borrow().get(&id).cloned() else {
            let message =
                format_args!("unexpected DNS response, query id:{id}, resolver: {server}");
            return observe::log(Level::Error, message);
        };
        let PendingQuery { question, index, server, inbox } = pending;
        match dns::parse(message, &question, id) {
            Ok(response) => inbox.put(InboxEvent::Response { question: index, server, response }),
            Err(error) => observe::log(
                Level::Error,
                format_args!("{error}, query id:{id}, name:\"{}\"", question.name),
            ),
        }
    }

    fn lose(&self) {
        self.lost.set(true);
        for (_, PendingQuery { server, inbox, .. }) in self.pending.take() {
            inbox.put(InboxEvent::Lost { server });
        }
    }
}

impl Query {
    /// Whether no response can come any more.
    pub(super) fn is_lost(&self) -> bool {
        self.line.socket.lost.get()
    }

    /// Sends the query, also again. Returns whether that succeeded.
    pub(super) fn send(&self, question: &DnsQuestion) -> bool {
        let mut message = Vec::with_capacity(dns::QUERY_BYTES_MAX);
        question.write(self.id, &mut message);
        let socket = &self.line.socket;
        let sent = socket.datagram.send(&message);
        if let Err(error) = &sent {
            failed(Level::Error, "send()", error, socket.server);
        }
        sent.is_ok()
    }
}

impl Drop for Query {
    fn drop(&mut self) {
        self.line.socket.pending.borrow_mut().remove(&self.id);
    }
}

/// Logs a failed call on a socket to a name server, in nginx's words.
pub(super) fn failed(level: Level, call: &str, error: &io::Error, server: SocketAddr) {
    let reason = Errno(error);
    let message = format_args!("{call} failed{reason} while resolving, resolver: {server}");
    observe::log(level, message);
}
