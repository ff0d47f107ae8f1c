//! What a configuration comes to: servers, locations, and every location's compiled pipeline.
//!
//! All of it is built at load and never changed. At run time nothing is looked up by name but what
//! a client names: its host and its path.

mod context;
mod ids;
mod listen;
mod locate;
mod matcher;
mod place;
pub(crate) mod policy;
mod protocols;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use ::upstream::Group;
use conf::{FeatureName, VariableId};
use net::Address;
use session::tls::{ClientVerification, ServerTlsSetup};
use session::{Configuration, Hook, WorkerGeneration, WorkerSlotKinds};

pub use context::{BlockContext, ParsedSoFar};
pub use ids::{LocationId, ServerId};
pub(crate) use listen::unsaid;
pub use listen::{Listen, ListenLine};
pub use locate::Locations;
pub(crate) use locate::choose as choose_location;
pub(crate) use matcher::Matcher;
pub use place::LocationBuilder;
pub(crate) use protocols::ProtocolLines;
pub use protocols::Protocols;

use crate::exchange::{Exchange, Filter, Handler, LocationBackend, Logger, PhaseOrder, Reach};
use crate::variables::Variable;

/// The servers of a listening socket by name.
pub type ServerNames = session::server_names::ServerNames<Exchange, ServerId>;
/// A name of a server.
pub type ServerName = session::server_names::ServerName<Exchange>;
use policy::Policy;

/// A configuration ready to serve.
#[derive(Default)]
pub struct Site {
    pub(crate) listens: Vec<Listen>,
    pub(crate) servers: Vec<Server>,
    pub(crate) locations: Vec<Location>,
    pub(crate) variables: Vec<Variable>,
    /// Groups of servers by name.
    pub(crate) groups: Vec<Arc<Group>>,
    /// What features keep in every worker.
    pub(crate) worker_slots: WorkerSlotKinds<Generation>,
}

/// One worker's reference to a site.
pub type Generation = WorkerGeneration<Site>;

/// A virtual server.
pub struct Server {
    /// The name that `$server_name` and redirects give: the first of `server_name`.
    pub name: Box<[u8]>,
    /// The settings outside every location, which is also where its own rewrites run.
    pub outer: LocationId,
    /// Its locations.
    pub locations: Locations,
    /// How requests are read.
    pub reading: ReadingPolicy,
    /// What clients of encrypted sockets that name it come to.
    pub tls: TlsPolicy,
    /// How HTTP/2 is spoken.
    pub http2: Http2Policy,
}

/// How a server speaks TLS.
#[derive(Clone, Default)]
pub struct TlsPolicy {
    /// Its sessions; `None`: it has no certificate.
    pub tls: Option<Arc<ServerTlsSetup>>,
    /// Whether it turns clients away.
    pub rejects_handshakes: bool,
    /// What it asks of clients; `None`: nothing.
    pub clients: Option<ClientVerification>,
}

/// A location, or another block that settings hold in: a server outside its locations, an `if`.
pub struct Location {
    /// The name after `location`, empty for nameless ones.
    pub name: Box<[u8]>,
    /// Locations inside it.
    pub inner: Locations,
    pub(crate) phases: PhaseOrder,
    /// Handlers by phase.
    pub(crate) postread: Box<[Hook<Handler>]>,
    pub(crate) rewrite: Box<[Hook<Handler>]>,
    pub(crate) preaccess: Box<[Hook<Handler>]>,
    pub(crate) access: Box<[Hook<Handler>]>,
    pub(crate) precontent: Box<[Hook<Handler>]>,
    pub(crate) content: Box<[Hook<Handler>]>,
    /// The one handler that answers everything here, before `content` is asked.
    pub(crate) exclusive: Option<Exclusive>,
    /// Whose that is.
    pub(crate) exclusive_of: FeatureName,
    pub(crate) filters: Box<[(Reach, Hook<Filter>)]>,
    pub(crate) ends: Box<[Logger]>,
    pub(crate) loggers: Box<[Logger]>,
    /// The `limit_except` inside it: the methods that are not limited, and the block.
    pub(crate) limit_except: Option<(u32, LocationId)>,
    /// Whether who asks for its name without the slash it ends with is sent here.
    pub(crate) adds_slash: bool,
    /// Whose the idle connections of `keepalive N local` are. The same after a reload; never 0.
    pub(crate) pool_number: u64,
    /// What the core and the driver ask for.
    pub core: Policy,
}

/// What answers everything in a location.
pub(crate) enum Exclusive {
    /// A handler, at once or by a wait that it makes.
    Handler(Handler),
    /// Something that always waits.
    Backend(Arc<dyn LocationBackend>),
}

/// How the requests of a server are read.
#[derive(Clone)]
pub struct ReadingPolicy {
    /// Time for the head.
    pub client_header_timeout_ms: u64,
    /// Limits of the head.
    pub head: wire::request::HeadLimits,
    /// Whether `//` in a path is one slash.
    pub merge_slashes: bool,
}

/// How a server speaks HTTP/2.
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
    /// A location by number.
    pub fn location(&self, id: LocationId) -> &Location {
        &self.locations[id.0 as usize]
    }

    /// A server by number.
    pub fn server(&self, id: ServerId) -> &Server {
        &self.servers[id.0 as usize]
    }
}
