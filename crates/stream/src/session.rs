//! A connection from its beginning to its end, as handlers and variables see it.

use std::fmt;
use std::net::IpAddr;
use std::rc::Rc;

use ::session::limit_conn::ConnLimited;
use ::session::values::{SetValues, VALUES_BYTES_MAX};
use ::session::{Captures, Client, Session, evaluate};
use conf::{Values, VariableId};
use observe::Level;

use crate::site::{StreamGeneration, StreamServer, StreamServerId, StreamSite};

/// A session of `stream {}`.
pub struct TcpSession {
    /// The configuration that it is served by, to its end.
    pub generation: Rc<StreamGeneration>,
    /// The server that it has.
    pub server: StreamServerId,
    /// Whose it is.
    pub client: Rc<Client>,
    /// What came of it, by the numbers of HTTP; 0: it is not over.
    pub status: u16,
    /// Bytes that the client was sent.
    pub bytes_sent: u64,
    /// Bytes that the client sent, without a PROXY header.
    pub bytes_received: u64,
    /// What is being done, as log lines name it after `while`.
    pub action: &'static str,
    /// What limits have to do with it.
    pub limited: ConnLimited,
    values: SetValues,
    captures: Captures,
}

impl TcpSession {
    /// A connection that was just accepted.
    pub fn new(
        generation: Rc<StreamGeneration>,
        server: StreamServerId,
        client: Rc<Client>,
    ) -> Self {
        Self {
            generation,
            server,
            client,
            status: 0,
            bytes_sent: 0,
            bytes_received: 0,
            action: "initializing session",
            limited: ConnLimited::default(),
            values: SetValues::new(VALUES_BYTES_MAX),
            captures: Captures::default(),
        }
    }

    /// Its server.
    pub fn server(&self) -> &StreamServer {
        self.generation.server(self.server)
    }

    /// How long it has been there.
    pub fn age_ms(&self) -> u64 {
        net::clock::now_ms().saturating_sub(self.client.accepted_ms)
    }

    /// The client's address.
    pub fn peer(&self) -> Option<IpAddr> {
        self.client.peer.map(|peer| peer.ip())
    }
}

impl Session for TcpSession {
    type Configuration = StreamSite;

    fn generation(&self) -> &Rc<StreamGeneration> {
        &self.generation
    }
    fn client(&self) -> &Client {
        &self.client
    }
    fn values(&mut self) -> &mut SetValues {
        &mut self.values
    }
    fn captures(&mut self) -> &mut Captures {
        &mut self.captures
    }
    fn log(&self, level: Level, message: fmt::Arguments<'_>) {
        let Some(listen) = self.generation.listen(self.client.listen) else { return };
        let log = &self.server().error_log;
        self.client.log(log, level, message, self.action, &listen.address);
    }
}

impl Values for TcpSession {
    fn variable(&mut self, id: VariableId, out: &mut Vec<u8>) -> bool {
        evaluate::append(self, id, out)
    }
    fn capture(&mut self, group: u8, out: &mut Vec<u8>) {
        out.extend_from_slice(self.captures.group(group.into()).unwrap_or_default());
    }
}
