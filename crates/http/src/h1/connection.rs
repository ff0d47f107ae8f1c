//! The parts of a connection, and its state between two requests.

use std::cell::Cell;
use std::rc::Rc;

use metrics::{OpenConnection, WaitingConnection};
use net::{ConnectionPermit, Stream};

use super::idle::Idle;
use super::link::Link;
use super::request_stream::RequestStream;
use crate::client::{Client, Resting};
use crate::drive::{CutReply, WorkerContext};
use crate::site::policy::Lingering;

/// An HTTP/1 connection that has a task.
pub(super) struct Connection {
    pub(super) context: Rc<WorkerContext>,
    pub(super) client: Rc<Client>,
    pub(super) link: Rc<Link>,
    /// The stream of the last request, whose memory the next one reuses unless it is still shared.
    spare: Cell<Option<Rc<RequestStream>>>,
    held: ConnectionState,
}

/// The state of a parked connection, without its socket.
pub(crate) struct Parked {
    pub(crate) client: Resting,
    pub(crate) held: ConnectionState,
    pub(super) idle: Idle,
    pub(super) _waiting: WaitingConnection,
}

/// A connection to park, with its socket.
pub(crate) struct ParkableConnection {
    pub(crate) stream: Stream,
    pub(crate) parked: Parked,
    pub(crate) left_ms: u64,
}

/// State of a connection that lasts while it is open, parked or not.
pub(crate) struct ConnectionState {
    /// Counts the connection as open.
    pub(crate) _open: OpenConnection,
    /// Its place among the worker's connections.
    pub(crate) _permit: ConnectionPermit,
}

/// What happens to a connection after an exchange.
pub(super) enum After {
    /// It waits for another request.
    Keep(Idle),
    /// Its sending side is closed, and it is read for a while.
    Linger(Lingering),
    Close,
    Reset,
}

impl Connection {
    pub(super) fn new(
        context: Rc<WorkerContext>,
        client: Rc<Client>,
        stream: Stream,
        held: ConnectionState,
    ) -> Self {
        Self { context, client, link: Rc::new(Link::new(stream)), spare: Cell::default(), held }
    }

    /// Ends the task and keeps only what the next request needs.
    pub(super) fn park(
        self,
        idle: Idle,
        waiting: WaitingConnection,
        left_ms: u64,
    ) -> ParkableConnection {
        let Self { client, link, held, spare, .. } = self;
        drop(spare);
        let stream = Rc::into_inner(link).expect("no exchange is under way").into_stream();
        let parked = Parked { client: client.rest(), held, idle, _waiting: waiting };
        ParkableConnection { stream, parked, left_ms }
    }

    /// Begins a request; returns its stream.
    pub(super) fn begin_request(&self) -> Rc<RequestStream> {
        self.context.begin_request();
        let mut spare = self.spare.take();
        if let Some(request) = spare.as_mut().and_then(Rc::get_mut) {
            request.reset();
        } else {
            spare = None;
        }
        spare.unwrap_or_else(|| Rc::new(RequestStream::new(self.link.clone())))
    }

    pub(super) fn end_request(&self, request: Rc<RequestStream>) {
        self.spare.set(Some(request));
        self.context.end_request();
    }
}

impl From<CutReply> for After {
    fn from(cut: CutReply) -> Self {
        match cut {
            CutReply::Close => Self::Close,
            CutReply::Reset => Self::Reset,
        }
    }
}
