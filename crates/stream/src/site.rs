//! The compiled `stream {}`: servers with their handlers, listening sockets, variables.
//!
//! It is built when the configuration is loaded and never changes.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use ::session::health::Verdict;
use ::session::server_names::{ServerName, ServerNames};
use ::session::status::SubsystemStatus;
use ::session::variables::Variable;
use ::session::{Configuration, Hook, WorkerGeneration, WorkerSlotKinds};
use ::tls::{CertificateSlot, ClientVerification, ServerTlsSetup};
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

/// The compiled `stream {}`.
#[derive(Default)]
pub struct StreamSite {
    pub(crate) listens: Vec<StreamListen>,
    pub(crate) servers: Vec<StreamServer>,
    pub(crate) variables: Vec<Variable<StreamSession>>,
    pub(crate) groups: Vec<Arc<Group>>,
    pub(crate) status: Arc<SubsystemStatus>,
    /// The kinds of state that features have in every worker.
    pub(crate) worker_slots: WorkerSlotKinds<StreamGeneration>,
}

pub struct StreamListen {
    pub address: Address,
    /// The options to open it with.
    pub options: SocketOptions,
    /// Whether a PROXY header comes first.
    pub(crate) proxy_protocol: bool,
    pub(crate) ssl: bool,
    /// The port by which clients reach the socket, if `server_port=` names another one.
    pub(crate) server_port: Option<u16>,
    pub(crate) names: ServerNames<StreamSession, StreamServerId>,
}

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
    /// Has the client's stream until the session is over; `None` if the server does nothing.
    pub(crate) content: Option<Hook<ContentHandler>>,
    /// The same over UDP.
    pub(crate) datagram_content: Option<Hook<DatagramHandler>>,
    /// The most datagrams of a client in a session; 0: no limit.
    pub(crate) datagrams_max: u64,
    /// Settings for resolving names in variables.
    pub(crate) names: ResolverPolicy,
    pub(crate) health_check: Option<StreamHealthCheck>,
    pub(crate) loggers: Vec<SessionLogger>,
    /// Counts a session in the zone of `status_zone`.
    pub(crate) begins_to_count: Option<SessionLogger>,
}

/// Settings for reading before content begins.
#[derive(Clone, Copy, Default)]
pub struct PrereadPolicy {
    /// Whether it waits for the first message of a TLS client.
    pub(crate) is_on: bool,
    /// The most bytes to read.
    pub(crate) buffer_size: usize,
    /// `preread_timeout`
    pub(crate) timeout_ms: u64,
}

#[derive(Default)]
pub struct StreamTls {
    /// The setup of its sessions; `None` without a certificate.
    pub(crate) tls: Option<Arc<ServerTlsSetup>>,
    pub(crate) rejects_handshakes: bool,
    /// How clients are verified; `None` if they are not.
    pub(crate) clients: Option<ClientVerification>,
    /// The certificate of `acme_certificate`.
    pub(crate) slot: Option<Arc<CertificateSlot>>,
    pub(crate) handshake_timeout_ms: u64,
}

/// The decision of a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The next handler of the phase runs.
    Next,
    /// The phase is over.
    Skip,
    /// The session is over, with this status.
    Finish(u16),
}

/// A handler of a phase before content.
pub type PhaseHandler = Box<dyn Fn(&mut StreamSession) -> Decision + Send + Sync>;

/// A content handler. Its result is the session's status.
pub type ContentHandler = Box<
    dyn for<'a> Fn(&'a mut StreamSession, &'a mut Stream) -> Pin<Box<dyn Future<Output = u16> + 'a>>
        + Send
        + Sync,
>;

pub struct StreamHealthCheck {
    pub(crate) group: Arc<Group>,
    pub(crate) terms: CheckTerms,
    pub(crate) port: Option<u16>,
    /// The name of its `match` block; empty without one.
    pub(crate) match_name: Box<[u8]>,
    pub(crate) ask: AskServer,
}

/// Probes a server, with a session without a client.
pub type AskServer = Box<
    dyn for<'a> Fn(
            &'a mut StreamSession,
            &'a Arc<Server>,
        ) -> Pin<Box<dyn Future<Output = Verdict> + 'a>>
        + Send
        + Sync,
>;

/// A content handler for a client that sends datagrams.
pub type DatagramHandler = Box<
    dyn for<'a> Fn(
            &'a mut StreamSession,
            &'a Rc<ClientFlow>,
        ) -> Pin<Box<dyn Future<Output = u16> + 'a>>
        + Send
        + Sync,
>;

/// Logs a session that is over.
pub type SessionLogger = Box<dyn Fn(&mut StreamSession) + Send + Sync>;

/// A server while it is compiled: features add their handlers and settings to it.
pub struct ServerBuilder<'a, 'f> {
    pub load: &'a mut Load<'f>,
    pub server: StreamServer,
    /// The position of its block.
    pub at: Span,
    pub identity: Vec<Box<[u8]>>,
    /// Values that a feature leaves for a later one of the feature list, by type.
    pub(crate) handed_on: Registry,
    /// The names of the server.
    pub(crate) names: Vec<ServerName<StreamSession>>,
    /// The feature that is being installed.
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

    fn status(&self) -> &Arc<SubsystemStatus> {
        &self.status
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
    pub fn server(&self, id: StreamServerId) -> &StreamServer {
        &self.servers[id.0 as usize]
    }
}
