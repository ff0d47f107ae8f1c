//! A session, as handlers and variables see it.

use std::fmt;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

use ::session::backend::{Attempts, Backed};
use ::session::limit_conn::ConnLimited;
use ::session::values::{SetValues, VALUES_BYTES_MAX};
use ::session::{Captures, Client, Session, evaluate};
use ::upstream::Group;
use conf::{Values, VariableId};
use net::Address;
use net::tls::ClientTrust;
use observe::{Level, MessageContext, MessageSource};

use crate::site::{StreamGeneration, StreamServer, StreamServerId, StreamSite};
use crate::zone_session::ZoneSession;

pub struct StreamSession {
    /// The configuration that serves it to its end.
    pub generation: Rc<StreamGeneration>,
    pub server: StreamServerId,
    pub client: Rc<Client>,
    /// Its result, as an HTTP status; 0 while it is not over.
    pub status: u16,
    /// Bytes sent to the client.
    pub bytes_sent: u64,
    /// Bytes received from the client, without a PROXY header.
    pub bytes_received: u64,
    /// The current action, which log lines contain after `while`.
    pub action: &'static str,
    /// Bytes of the client that were read before content began.
    pub(crate) preread: Vec<u8>,
    /// The ClientHello in these bytes.
    pub(crate) preread_hello: Option<Box<PrereadHello>>,
    /// The result of `limit_conn`.
    pub limited: ConnLimited,
    pub(crate) upstream: SessionUpstream,
    /// The listening socket to pass the connection to (`pass`).
    pub(crate) passed_to: Option<Box<Address>>,
    /// The tags of the error log that have variables, rendered.
    pub(crate) log_tags: Vec<u8>,
    /// Where it is counted.
    pub(crate) counted: Option<ZoneSession>,
    values: SetValues,
    captures: Captures,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PrereadHello {
    /// The highest version that the client supports.
    pub(crate) version: u16,
    pub(crate) server_name: Box<[u8]>,
    /// Application protocols (ALPN), separated by commas.
    pub(crate) protocols: Box<[u8]>,
}

/// The state of a session's backends.
#[derive(Default)]
pub(crate) struct SessionUpstream {
    pub(crate) attempts: Attempts,
    /// The group, if it has a limit.
    pub(crate) limited: Option<Arc<Group>>,
    /// Whether log lines name the server and count bytes.
    pub(crate) is_proxied: bool,
}

impl SessionUpstream {
    /// Bytes received from the last server, and sent to it.
    pub(crate) fn bytes(&self) -> (u64, u64) {
        let last = self.attempts.last();
        last.map_or((0, 0), |last| (last.bytes_received.get(), last.bytes_sent.get()))
    }
}

impl StreamSession {
    /// A session of a connection that was just accepted.
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
            preread: Vec::new(),
            preread_hello: None,
            limited: ConnLimited::default(),
            upstream: SessionUpstream::default(),
            passed_to: None,
            log_tags: Vec::new(),
            counted: None,
            values: SetValues::new(VALUES_BYTES_MAX),
            captures: Captures::default(),
        }
    }

    pub fn server(&self) -> &StreamServer {
        self.generation.server(self.server)
    }

    /// Counts the session in its zone, if that has not been done: what the zone depends on may be
    /// known only after a handshake, or at the end.
    pub(crate) fn begin_to_count(&mut self) {
        if self.counted.is_none() {
            let generation = self.generation.clone();
            if let Some(begin) = &generation.server(self.server).begins_to_count {
                begin(self);
            }
        }
    }

    pub fn age_ms(&self) -> u64 {
        net::clock::now_ms().saturating_sub(self.client.accepted_ms)
    }

    /// Whether messages of that level are logged.
    pub(crate) fn logs(&self, level: Level) -> bool {
        self.server().error_log.enabled(level, self.client.source())
    }

    pub(crate) fn debug(&self, message: fmt::Arguments<'_>) {
        if self.logs(Level::DebugStream) {
            self.log(Level::DebugStream, message);
        }
    }

    /// Logs a message without the context of the session.
    pub(crate) fn log_bare(&self, message: fmt::Arguments<'_>) {
        self.server().error_log.write(Level::Info, self.source(), message, |_| {});
    }

    /// The source of the session's log messages.
    pub(crate) fn source(&self) -> MessageSource<'_> {
        MessageSource { tags: &self.log_tags, ..self.client.source() }
    }

    /// Appends the context of a proxied session, as in nginx's log lines.
    fn describe_upstream(&self, context: &mut MessageContext<'_>) {
        if !self.upstream.is_proxied {
            return;
        }
        if let Some(last) = self.upstream.attempts.last() {
            context.quoted("upstream", &[last.name()]);
        }
        let (from_server, to_server) = self.upstream.bytes();
        let (received, sent) = (self.bytes_received, self.bytes_sent);
        context.text(format_args!(
            ", bytes from/to client:{received}/{sent}, bytes from/to \
             upstream:{from_server}/{to_server}"
        ));
        context.number("bytes_received", received);
        context.number("bytes_sent", sent);
        context.number("upstream_bytes_received", from_server);
        context.number("upstream_bytes_sent", to_server);
    }

    pub fn peer(&self) -> Option<IpAddr> {
        self.client.peer.map(|peer| peer.ip())
    }
}

impl PrereadHello {
    /// The version's name; empty if it has none.
    pub(crate) fn version_name(&self) -> &'static str {
        match self.version {
            0x0002 => "SSLv2",
            0x0300 => "SSLv3",
            0x0301 => "TLSv1",
            0x0302 => "TLSv1.1",
            0x0303 => "TLSv1.2",
            0x0304 => "TLSv1.3",
            _ => "",
        }
    }
}

impl Session for StreamSession {
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
    fn client_trust(&self) -> Option<&ClientTrust> {
        self.server().tls.clients.as_ref()?.trust()
    }
    fn log(&self, level: Level, message: fmt::Arguments<'_>) {
        let Some(listen) = self.generation.listen(self.client.listen) else { return };
        let log = &self.server().error_log;
        log.write(level, self.source(), message, |context| {
            self.client.describe(context, self.action, &listen.address);
            self.describe_upstream(context);
        });
    }
}

impl Backed for StreamSession {
    fn attempts(&self) -> &Attempts {
        &self.upstream.attempts
    }
    fn limited(&self) -> Option<&Arc<Group>> {
        self.upstream.limited.as_ref()
    }
    fn action(&mut self) -> &mut &'static str {
        &mut self.action
    }
}

impl Values for StreamSession {
    fn variable(&mut self, id: VariableId, out: &mut Vec<u8>) -> bool {
        evaluate::append(self, id, out)
    }
    fn capture(&mut self, group: u8, out: &mut Vec<u8>) {
        out.extend_from_slice(self.captures.group(group.into()).unwrap_or_default());
    }
}
