//! The exchange: one request and its reply, the same form for every protocol version.
//!
//! It knows no socket and no framing: a driver (`h1`, `h2`) fills the request, runs the phases and
//! sends the reply. Features read and change it through this type alone.

mod backends;
mod background;
mod body;
mod close;
mod downstream;
mod evaluate;
mod fields;
mod filter;
mod log;
mod phase_times;
mod receive;
mod relations;
mod reply;
mod request;
mod request_body;
mod role;
mod stage;
mod state;
#[cfg(test)]
mod tests;
mod timing;
mod tunnel;
mod waits;

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;

use net::LentFuture;

pub use backends::Backends;
pub(crate) use backends::UpstreamAttempt;
#[cfg(test)]
pub(crate) use background::BACKGROUND_TASKS_MAX;
pub(crate) use background::BackgroundTasks;
pub use body::{Body, BodyError, BodyLog, BodyStream, Bytes, Chunk, FileSlice};
pub use close::CloseReason;
pub use downstream::{BodyRules, Downstream, RequestBodyError};
pub use fields::{FieldName, Fields};
pub(crate) use filter::FilteredBody;
pub use filter::{BodyFilter, LiveBody, PieceQueue};
pub(crate) use log::{DetachedLog, LogTags};
pub(crate) use phase_times::{PhaseTimes, TimedPhase};
pub(crate) use receive::ArrivingBody;
pub use reply::Reply;
pub(crate) use request::BadPath;
pub use request::Request;
pub use request_body::{Announced, RequestBody, StoredBody, StoredContent};
pub(crate) use role::{Origin, Role};
pub use session::Captures;
pub use session::values::{SetValues, TooLong};
pub(crate) use stage::{Phase, PhaseOrder, Stage};
pub use state::{FeatureState, States};
pub(crate) use timing::RequestTiming;
pub use tunnel::{Tunnel, TunnelEnd, TunnelError};

use crate::client::Client;
use crate::site::{Exclusive, Generation, Location, LocationId, Server, ServerId, Site};

/// Rewrites, internal redirects and named jumps allowed in one exchange.
pub const REDIRECTS_MAX: u8 = 10;

/// A handler: answers the exchange or lets it pass. Part of a [`Hook`](session::Hook).
pub type Handler = Box<dyn Fn(&mut Exchange) -> Flow + Send + Sync>;

/// A header filter: reads and changes the finished head, and may add a filter of the body. Part of
/// a [`Hook`](session::Hook).
pub type Filter = Box<dyn Fn(&mut Exchange) -> Filtered + Send + Sync>;

/// The replies that a filter acts on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// All, including those of subrequests.
    All,
    /// Those that go to the client.
    Main,
}

/// Called at the end of the exchange.
pub type Logger = Box<dyn Fn(&mut Exchange) + Send + Sync>;

/// Answers all requests of a location, and may wait meanwhile.
pub trait LocationBackend: Send + Sync {
    /// Returns a future whose result is the next step.
    fn answer<'x>(&'x self, x: &'x mut Exchange) -> LentFuture<'x, Flow>;
}

/// Makes a future whose result is the next step.
pub type BeginWait = Box<dyn for<'x> FnOnce(&'x mut Exchange) -> LentFuture<'x, Flow>>;

/// The operation that an exchange waits for.
pub enum Wait {
    /// The future that this function makes.
    For(BeginWait),
    /// The location's [`LocationBackend`].
    Backend,
}

impl Wait {
    /// Starts the operation. `site` is the exchange's own.
    pub(crate) fn begin<'x>(self, x: &'x mut Exchange, site: &'x Site) -> LentFuture<'x, Flow> {
        match (self, &site.location(x.location).exclusive) {
            (Self::For(begin), _) => begin(x),
            (Self::Backend, Some(Exclusive::Backend(backend))) => backend.answer(x),
            (Self::Backend, _) => unreachable!("only a location that has one waits for it"),
        }
    }
}

/// The step after a handler.
pub enum Flow {
    Next,
    /// The next phase: access is granted, the remaining handlers of this phase are skipped.
    Skip,
    /// The exchange has its reply.
    Done,
    /// The reply of that status, by `error_page` or built in.
    Status(u16),
    /// Continue with another URI or location.
    Jump(Jump),
    /// Close the connection without a reply; the status is for the log.
    Drop(u16),
    Wait(Wait),
}

impl Flow {
    /// Waits for a future made from the exchange; its result is the next step.
    pub fn wait(
        begin: impl for<'x> FnOnce(&'x mut Exchange) -> LentFuture<'x, Flow> + 'static,
    ) -> Self {
        Self::Wait(Wait::For(Box::new(begin)))
    }
}

/// The place where an exchange continues.
pub enum Jump {
    /// The location is chosen again by the current URI: `rewrite ... last`.
    Relocate,
    /// From the server's rewrites on, as an internal request: `index`, `error_page`.
    Internal {
        /// The new path, decoded.
        uri: Vec<u8>,
        args: JumpArgs,
    },
    Named(LocationId),
}

/// The arguments of an internal request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JumpArgs {
    Kept,
    /// None, which logs show as `-`.
    None,
    /// These, even if they are empty.
    New(Vec<u8>),
}

/// The decision of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filtered {
    /// Continue with the next filter.
    Pass,
    /// Replace the reply by a new one with this status: 412.
    Instead(u16),
    /// Replace the reply by one with this status, and keep its fields: 416 and its `Content-Range`.
    Status(u16),
    /// Close the connection without a reply.
    Drop,
}

/// One request and its reply.
pub struct Exchange {
    pub client: Rc<Client>,
    /// The configuration that serves it, even after a reload.
    pub generation: Rc<Generation>,
    pub server: ServerId,
    /// The location whose settings apply now.
    pub location: LocationId,
    /// The client's connection; `None` before the head is complete and after the end.
    pub downstream: Option<Rc<dyn Downstream>>,
    pub request: Request,
    pub reply: Reply,
    /// Variables that have a value of their own.
    pub values: SetValues,
    /// The state that features keep for it.
    pub states: States,
    /// The groups of the last regular expression that matched: the subject and its ranges.
    pub captures: Captures,
    pub backends: Backends,
    /// When the request's first byte was seen, in milliseconds since 1970.
    pub started_unix_ms: u64,
    /// The same by the worker's clock.
    pub started_ns: u64,
    /// How long the client took for the rest of the head, as far as it was awaited.
    pub(crate) head_ms: u32,
    /// The current action, which log lines name after `while`; empty: none.
    pub action: &'static str,
    /// Whether `try_files` chose the path below an `alias` that replaces the whole path.
    pub add_uri_to_alias: bool,
    /// Whether it was redirected internally.
    pub internal: bool,
    /// The status that `error_page` sets regardless of its target's answer; 0: none.
    pub error_status: u16,
    /// Whether an error is being answered already.
    pub in_error_page: bool,
    /// How many redirects are left, including the one that is too many.
    pub redirects_left: u8,
    /// Whether the reply depends on whether the client accepts gzip.
    pub varies: bool,
    /// Why its connection serves no further request; `None`: it may.
    close: Option<CloseReason>,
    /// Whether it survives a client disconnect. Shared with the code that watches the client, since
    /// it may change while the exchange waits.
    pub outlives_client: Rc<Cell<bool>>,
    pub(crate) role: Role,
    /// Where its time goes; `None` if nobody asks. Subrequests share it.
    pub(crate) timing: Option<Rc<RequestTiming>>,
    /// The memory of its last subrequest.
    pub(crate) spare_subrequest: Option<Box<Exchange>>,
    /// The current phase and handler.
    pub(crate) stage: Stage,
    scratch: Vec<u8>,
    /// Memory for the next client that a proxy forwards.
    spare_client: Option<Rc<Client>>,
}

/// The largest sum of the sizes of an exchange's variables, in bytes.
const VALUES_MAX: usize = if cfg!(test) { 1 << 20 } else { session::values::VALUES_BYTES_MAX };

impl Exchange {
    pub(crate) fn new(client: Rc<Client>, generation: Rc<Generation>) -> Self {
        Self {
            client,
            generation,
            server: ServerId(0),
            location: LocationId(0),
            downstream: None,
            request: Request::new(),
            reply: Reply::default(),
            values: SetValues::new(VALUES_MAX),
            states: States::default(),
            captures: Captures::default(),
            backends: Backends::default(),
            started_unix_ms: 0,
            started_ns: 0,
            head_ms: 0,
            action: "",
            add_uri_to_alias: false,
            internal: false,
            error_status: 0,
            in_error_page: false,
            redirects_left: REDIRECTS_MAX + 1,
            varies: false,
            close: Some(CloseReason::NoRequest),
            outlives_client: Rc::default(),
            role: Role::Main,
            timing: None,
            spare_subrequest: None,
            stage: Default::default(),
            scratch: Vec::new(),
            spare_client: None,
        }
    }

    /// Prepares it for another request, after `new` or [`release`](Self::release). Together, the
    /// two functions set every field, so that the next client sees no values of the last.
    pub(crate) fn reset(&mut self, new_client: &Rc<Client>, newest: &Rc<Generation>) {
        let Self {
            client,
            generation,
            server,
            location,
            started_unix_ms,
            started_ns,
            head_ms,
            action,
            add_uri_to_alias,
            internal,
            error_status,
            in_error_page,
            redirects_left,
            varies,
            close,
            outlives_client,
            role,
            stage,
            spare_client,
            downstream: _,
            request: _,
            reply: _,
            values: _,
            states: _,
            captures: _,
            backends: _,
            timing: _,
            spare_subrequest: _,
            scratch: _,
        } = self;
        if !Rc::ptr_eq(client, new_client) {
            let last = std::mem::replace(client, new_client.clone());
            if last.behind.is_some() {
                *spare_client = Some(last);
            }
        }
        if !Rc::ptr_eq(generation, newest) {
            *generation = newest.clone();
        }
        *server = newest.listen(new_client.listen).map_or(*server, |listen| listen.names.default);
        *location = newest.server(*server).outer;
        *started_unix_ms = net::clock::unix_ms();
        *started_ns = net::clock::turn_ns();
        *head_ms = 0;
        *action = "";
        *add_uri_to_alias = false;
        *internal = false;
        *error_status = 0;
        *in_error_page = false;
        *redirects_left = REDIRECTS_MAX + 1;
        *varies = false;
        *close = Some(CloseReason::NoRequest);
        outlives_client.set(false);
        *role = Role::Main;
        *stage = Stage::default();
    }

    /// Replaces the client's address by `peer`, which the connection's client has forwarded.
    pub fn speak_for(&mut self, peer: SocketAddr) {
        let client = self.client.speaking_for(peer);
        let mut spare = self.spare_client.take();
        self.client = match spare.as_mut().and_then(Rc::get_mut) {
            Some(room) => {
                *room = client;
                spare.expect("there is room in it")
            }
            None => Rc::new(client),
        };
    }

    /// The status sent to the client, as far as it is known: `$status` in logs.
    pub fn status(&self) -> u16 {
        match (self.error_status, self.reply.status) {
            (0, 0) if self.request.head.version == wire::Version::HTTP_09 => 9,
            (0, status) => status,
            (status, _) => status,
        }
    }

    /// Whether its connection may serve another request, as far as is known.
    pub fn keeps_connection(&self) -> bool {
        self.close.is_none()
    }

    /// Has its connection serve no further request. The driver decides what that means; the first
    /// reason is kept.
    pub fn close_after(&mut self, reason: CloseReason) {
        self.close.get_or_insert(reason);
    }

    /// Why its connection serves no further request.
    pub(crate) fn close_reason(&self) -> Option<CloseReason> {
        self.close
    }

    /// The driver has read the head, and the client wants to send further requests.
    pub(crate) fn keep_connection(&mut self) {
        self.close = None;
    }

    pub fn age_ms(&self) -> u64 {
        net::clock::now_ms() - self.started_ns / 1_000_000
    }

    /// Frees unused memory: the exchange will last long, and is kept for its log line.
    pub(crate) fn shrink(&mut self) {
        self.request.shrink();
        self.reply.shrink();
        self.values.shrink();
        self.backends.shrink();
        self.captures.subject.shrink_to_fit();
        self.scratch = Vec::new();
        self.spare_client = None;
        self.spare_subrequest = None;
    }

    /// The memory kept for the next exchange, in bytes, including itself.
    pub(crate) fn memory(&self) -> usize {
        let captures = self.captures.subject.capacity()
            + self.captures.groups.capacity() * size_of::<Option<(u32, u32)>>();
        size_of::<Self>()
            + self.request.memory()
            + self.reply.memory()
            + self.values.memory()
            + self.backends.memory()
            + self.spare_subrequest.as_ref().map_or(0, |spare| spare.memory())
            + captures
            + self.scratch.capacity()
    }

    /// Clears it at its end, and keeps the memory. The other fields are set by
    /// [`reset`](Self::reset), or memory alone.
    pub(crate) fn release(&mut self) {
        let Self {
            downstream,
            request,
            reply,
            values,
            states,
            captures,
            backends,
            timing,
            client: _,
            generation: _,
            server: _,
            location: _,
            started_unix_ms: _,
            started_ns: _,
            head_ms: _,
            action: _,
            add_uri_to_alias: _,
            internal: _,
            error_status: _,
            in_error_page: _,
            redirects_left: _,
            varies: _,
            close: _,
            outlives_client: _,
            role: _,
            stage: _,
            spare_subrequest: _,
            scratch: _,
            spare_client: _,
        } = self;
        *downstream = None;
        *timing = None;
        states.clear();
        request.release();
        reply.clear();
        values.clear();
        captures.groups.clear();
        backends.clear();
    }

    /// The location whose settings apply now.
    pub fn location(&self) -> &Location {
        self.generation.location(self.location)
    }

    pub fn server(&self) -> &Server {
        self.generation.server(self.server)
    }

    /// An empty vector for intermediate text, to be returned with `give_scratch`.
    pub fn scratch(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.scratch)
    }

    /// Returns the vector of `scratch`.
    pub fn give_scratch(&mut self, mut scratch: Vec<u8>) {
        scratch.clear();
        self.scratch = scratch;
    }

    /// Renders a template into a new vector.
    pub fn render(&mut self, template: &conf::Template) -> Vec<u8> {
        let mut out = Vec::new();
        template.render(self, &mut out);
        out
    }
}
