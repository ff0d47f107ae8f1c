//! The compiled configuration: servers, locations, and the pipeline of every location.
//!
//! It is built when the configuration is loaded and never changes. At run time, only the host and
//! the path of a request are looked up by name.

mod context;
mod ids;
mod listen;
mod locate;
mod location_builder;
mod matcher;
pub(crate) mod policy;
mod protocols;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use ::upstream::Group;
use conf::{FeatureName, VariableId};
use net::Address;
use session::status::SubsystemStatus;
use session::{Configuration, Hook, WorkerGeneration, WorkerSlotKinds};
use tls::{CertificateSlot, ClientVerification, ServerTlsSetup};

pub use context::{BlockContext, ParsedSoFar};
pub use ids::{LocationId, ServerId};
pub(crate) use listen::default_options;
pub use listen::{Listen, ListenLine};
pub use locate::Locations;
pub(crate) use locate::choose as choose_location;
pub use location_builder::LocationBuilder;
pub(crate) use matcher::Matcher;
pub(crate) use protocols::ProtocolLines;
pub use protocols::Protocols;

use crate::exchange::{Exchange, Filter, Handler, LocationBackend, Logger, PhaseOrder, Reach};
use crate::variables::Variable;

/// The servers of a listening socket by name.
pub type ServerNames = session::server_names::ServerNames<Exchange, ServerId>;
pub type ServerName = session::server_names::ServerName<Exchange>;
use policy::{OwnSettings, Policy};

/// The compiled `http {}`.
#[derive(Default)]
pub struct Site {
    pub(crate) listens: Vec<Listen>,
    pub(crate) servers: Vec<Server>,
    pub(crate) locations: Vec<Location>,
    pub(crate) variables: Vec<Variable>,
    pub(crate) groups: Vec<Arc<Group>>,
    pub(crate) status: Arc<SubsystemStatus>,
    /// The kinds of state that features have in every worker.
    pub(crate) worker_slots: WorkerSlotKinds<Generation>,
    /// Settings of `http {}` that only one feature reads.
    pub(crate) own: OwnSettings,
}

/// One worker's reference to a site.
pub type Generation = WorkerGeneration<Site>;

/// A virtual server.
pub struct Server {
    /// The name that `$server_name` and redirects give: the first of `server_name`.
    pub name: Box<[u8]>,
    /// The settings outside all locations, as a location. The server's own rewrite rules run in it.
    pub outer: LocationId,
    pub locations: Locations,
    pub reading: ReadingPolicy,
    /// TLS for clients that name this server.
    pub tls: TlsPolicy,
    pub http2: Http2Policy,
    /// Whether its requests have a timing (`exchange::RequestTiming`).
    pub timed: bool,
}

#[derive(Clone, Default)]
pub struct TlsPolicy {
    /// The setup of its sessions; `None` without a certificate.
    pub tls: Option<Arc<ServerTlsSetup>>,
    pub rejects_handshakes: bool,
    /// How clients are verified; `None` if they are not.
    pub clients: Option<ClientVerification>,
    /// The certificate of `acme_certificate`.
    pub slot: Option<Arc<CertificateSlot>>,
}

/// A location, or another block with settings: a server outside its locations, `if`,
/// `limit_except`.
pub struct Location {
    /// The name after `location`; empty for other blocks.
    pub name: Box<[u8]>,
    pub inner: Locations,
    pub(crate) phases: PhaseOrder,
    /// Handlers by phase.
    pub(crate) postread: Box<[Hook<Handler>]>,
    pub(crate) rewrite: Box<[Hook<Handler>]>,
    pub(crate) preaccess: Box<[Hook<Handler>]>,
    pub(crate) access: Box<[Hook<Handler>]>,
    pub(crate) precontent: Box<[Hook<Handler>]>,
    pub(crate) content: Box<[Hook<Handler>]>,
    /// The handler that answers all requests of this location, instead of `content`.
    pub(crate) exclusive: Option<Exclusive>,
    /// The feature of that handler.
    pub(crate) exclusive_of: FeatureName,
    pub(crate) filters: Box<[(Reach, Hook<Filter>)]>,
    pub(crate) ends: Box<[Logger]>,
    pub(crate) loggers: Box<[Logger]>,
    /// Its `limit_except`: the methods that are not limited, and the block.
    pub(crate) limit_except: Option<(u32, LocationId)>,
    /// Whether a request for its name without the final slash is redirected to it.
    pub(crate) adds_slash: bool,
    /// The owner of idle connections of `keepalive N local`. It survives a reload and is never 0.
    pub(crate) pool_number: u64,
    /// Settings of the core and the drivers.
    pub core: Policy,
}

/// The handler that answers all requests of a location.
pub(crate) enum Exclusive {
    /// A handler that may wait.
    Handler(Handler),
    /// A backend, for which every request waits.
    Backend(Arc<dyn LocationBackend>),
}

/// A server's settings for reading requests.
#[derive(Clone)]
pub struct ReadingPolicy {
    pub client_header_timeout_ms: u64,
    pub head: wire::request::HeadLimits,
    /// Whether `//` in a path is one slash.
    pub merge_slashes: bool,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Http2Policy {
    /// `http2`
    pub enabled: bool,
    /// `http2_max_concurrent_streams`
    pub max_concurrent_streams: u32,
    /// `http2_body_preread_size`
    pub body_preread_size: u32,
}

impl Configuration for Site {
    type Session = Exchange;
    type Listen = Listen;

    fn variable(&self, id: VariableId) -> &Variable {
        &self.variables[id.0 as usize]
    }

    fn worker_slots(&self) -> &WorkerSlotKinds<Generation> {
        &self.worker_slots
    }

    fn status(&self) -> &Arc<SubsystemStatus> {
        &self.status
    }

    fn groups(&self) -> &[Arc<Group>] {
        &self.groups
    }

    fn listens(&self) -> &[Listen] {
        &self.listens
    }

    fn address(listen: &Listen) -> &Address {
        &listen.address
    }

    fn server_port(listen: &Listen) -> Option<u16> {
        listen.server_port
    }
}

impl Site {
    pub fn location(&self, id: LocationId) -> &Location {
        &self.locations[id.0 as usize]
    }

    pub fn server(&self, id: ServerId) -> &Server {
        &self.servers[id.0 as usize]
    }
}
