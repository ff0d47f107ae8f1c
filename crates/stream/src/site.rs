//! What a `stream {}` block comes to: servers with their handlers, listening sockets, variables.
//!
//! All of it is built at load and never changed.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use ::session::health::Verdict;
use ::session::server_names::ServerNames;
use ::session::tls::{ClientVerification, ServerTlsSetup};
use ::session::variables::Variable;
use ::session::{Configuration, Hook, WorkerGeneration, WorkerSlotKinds};
use ::upstream::health::CheckTerms;
use ::upstream::{Group, ResolverPolicy, Server};
use conf::{FeatureName, InstallTarget, Load, Registry, Span, VariableId};
use net::{Address, SocketOptions, Stream};
use observe::ErrorLog;

use crate::flow::ClientFlow;
use crate::session::StreamSession;

/// The number of a server in its site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamServerId(pub u32);

/// A configuration ready to serve.
#[derive(Default)]
pub struct StreamSite {
    pub(crate) listens: Vec<StreamListen>,
    pub(crate) servers: Vec<StreamServer>,
    pub(crate) variables: Vec<Variable<StreamSession>>,
    pub(crate) groups: Vec<Arc<Group>>,
    /// What features keep in every worker.
    pub(crate) worker_slots: WorkerSlotKinds<StreamGeneration>,
}

/// A listening socket.
pub struct StreamListen {
    /// Where it listens.
    pub address: Address,
    /// How it is opened.
    pub options: SocketOptions,
    /// Whether a PROXY header comes first.
    pub(crate) proxy_protocol: bool,
    /// Whether its connections are encrypted.
    pub(crate) ssl: bool,
    /// The port by which clients reach the socket, if `server_port=` names another one.
    pub(crate) server_port: Option<u16>,
    /// The servers that have its connections.
    pub(crate) names: ServerNames<StreamSession, StreamServerId>,
}

/// A server.
#[derive(Default)]
pub struct StreamServer {
    /// Its first name.
    pub(crate) name: Box<[u8]>,
    pub(crate) error_log: Arc<ErrorLog>,
    pub(crate) tcp_nodelay: bool,
    pub(crate) proxy_protocol_timeout_ms: u64,
    pub(crate) preread: PrereadPolicy,
    pub(crate) tls: StreamTls,
    pub(crate) postaccept: Vec<Hook<PhaseHandler>>,
    pub(crate) preaccess: Vec<Hook<PhaseHandler>>,
    pub(crate) access: Vec<Hook<PhaseHandler>>,
    /// Has the client's end until the session is over; `None`: the server does nothing.
    pub(crate) content: Option<Hook<ContentHandler>>,
    /// The same over UDP.
    pub(crate) datagram_content: Option<Hook<DatagramHandler>>,
    /// How many datagrams of a client belong to a session; 0: any number.
    pub(crate) datagrams_max: u64,
    /// How names that variables give are looked up.
    pub(crate) names: ResolverPolicy,
    pub(crate) health_check: Option<StreamHealthCheck>,
    pub(crate) loggers: Vec<SessionLogger>,
}

/// What a server reads of clients before content begins.
#[derive(Clone, Copy, Default)]
pub struct PrereadPolicy {
    /// Whether it waits for the first message of a TLS client.
    pub(crate) is_on: bool,
    /// Bytes that are read at most.
    pub(crate) buffer_size: usize,
    /// How long the client may take.
    pub(crate) timeout_ms: u64,
}

/// How a server speaks TLS.
#[derive(Default)]
pub struct StreamTls {
    /// Its sessions; `None`: it has no certificate.
    pub(crate) tls: Option<Arc<ServerTlsSetup>>,
    /// Whether it turns clients away.
    pub(crate) rejects_handshakes: bool,
    /// What it asks of clients; `None`: nothing.
    pub(crate) clients: Option<ClientVerification>,
    pub(crate) handshake_timeout_ms: u64,
}

/// What a handler says of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The next handler of the phase is asked.
    Next,
    /// The phase is over.
    Skip,
    /// The session is over, with this status.
    Finish(u16),
}

/// A handler of a phase before content.
pub type PhaseHandler = Box<dyn Fn(&mut StreamSession) -> Decision + Send + Sync>;

/// A content handler: it ends with the session's status.
pub type ContentHandler = Box<
    dyn for<'a> Fn(&'a mut StreamSession, &'a mut Stream) -> Pin<Box<dyn Future<Output = u16> + 'a>>
        + Send
        + Sync,
>;

/// A server's `health_check`.
pub struct StreamHealthCheck {
    pub(crate) group: Arc<Group>,
    pub(crate) terms: CheckTerms,
    pub(crate) port: Option<u16>,
    /// The name of its `match` block; empty: it has none.
    pub(crate) match_name: Box<[u8]>,
    pub(crate) ask: AskServer,
}

/// Asks a server, on behalf of a session without a client.
pub type AskServer = Box<
    dyn for<'a> Fn(
            &'a mut StreamSession,
            &'a Arc<Server>,
        ) -> Pin<Box<dyn Future<Output = Verdict> + 'a>>
        + Send
        + Sync,
>;

/// The same for a client that sends datagrams.
pub type DatagramHandler = Box<
    dyn for<'a> Fn(
            &'a mut StreamSession,
            &'a Rc<ClientFlow>,
        ) -> Pin<Box<dyn Future<Output = u16> + 'a>>
        + Send
        + Sync,
>;

/// Is told of a session that is over.
pub type SessionLogger = Box<dyn Fn(&mut StreamSession) + Send + Sync>;

/// A server being compiled: features hook in here.
pub struct ServerBuilder<'a, 'f> {
    /// What has been declared.
    pub load: &'a mut Load<'f>,
    /// The server as far as it is done.
    pub server: StreamServer,
    /// Where its block begins.
    pub at: Span,
    /// What makes it different from others.
    pub identity: Vec<Box<[u8]>>,
    /// What a feature leaves for one that is listed after it, by type.
    pub(crate) handed_on: Registry,
    /// Whose turn it is to hook in.
    pub(crate) feature: FeatureName,
}

impl ServerBuilder<'_, '_> {
    /// A handler of the feature that is being installed.
    pub(crate) fn hook<F>(&self, run: F) -> Hook<F> {
        Hook { feature: self.feature, run }
    }
}

/// One worker's reference to a site.
pub type StreamGeneration = WorkerGeneration<StreamSite>;

impl InstallTarget for ServerBuilder<'_, '_> {
    fn installing(&mut self, feature: FeatureName) {
        self.feature = feature;
    }
}

impl Configuration for StreamSite {
    type Session = StreamSession;
    type Listen = StreamListen;

    fn variable(&self, id: VariableId) -> &Variable<StreamSession> {
        &self.variables[id.0 as usize]
    }

    fn worker_slots(&self) -> &WorkerSlotKinds<StreamGeneration> {
        &self.worker_slots
    }

    fn groups(&self) -> &[Arc<Group>] {
        &self.groups
    }

    fn listens(&self) -> &[StreamListen] {
        &self.listens
    }

    fn address(listen: &StreamListen) -> &Address {
        &listen.address
    }

    fn server_port(listen: &StreamListen) -> Option<u16> {
        listen.server_port
    }
}

impl StreamSite {
    /// A server by number.
    pub fn server(&self, id: StreamServerId) -> &StreamServer {
        &self.servers[id.0 as usize]
    }
}
