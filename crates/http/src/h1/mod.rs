//! The driver of HTTP/1 connections: one task each, one request at a time.
//!
//! ```text
//! idle --bytes--> head --complete--> drive::run --> rest of the body --> idle | close
//!  ^                |              ^
//!  |                +--- wrong ----+ (answers with a status)
//!  +-- at once, where the next request has arrived already
//! ```
//!
//! What happens to a request between its head and the end of its reply is `drive`'s. A
//! [`RequestStream`] gives it the body, a [`ReplyWriter`] takes the reply. A connection that waits
//! for its next request holds no buffer and no exchange.

mod batch;
mod closing;
mod head;
mod idle;
mod incoming;
mod link;
mod reply_head;
mod reply_writer;
mod request_stream;

#[cfg(test)]
pub(crate) mod tests;

#[cfg(test)]
pub(crate) use head::settle;

use std::cell::RefCell;
use std::rc::Rc;

use net::{Probe, Seat, Stream};
use observe::{Open, Waiting};

use crate::client::{Client, Resting};
use crate::drive::{self, Cut, LentExchange, Preread, WorkerContext};
use crate::exchange::CloseReason;
use crate::site::policy::Lingering;

use head::NoRequest;
use idle::{Idle, Next};
use link::Link;
use reply_writer::ReplyWriter;
use request_stream::RequestStream;

/// A connection.
struct Connection {
    context: Rc<WorkerContext>,
    client: Rc<Client>,
    link: Rc<Link>,
    /// The last request's, where nobody holds it: memory for the next one.
    spare: RefCell<Option<Rc<RequestStream>>>,
    held: Held,
}

/// An idle connection that has no task: all that is left of it but its socket.
pub(crate) struct Parked {
    pub(crate) client: Resting,
    pub(crate) held: Held,
    idle: Idle,
    _waiting: Waiting,
}

/// A connection that is worth parking for the rest of its time.
pub(crate) struct IdleConnection {
    pub(crate) stream: Stream,
    pub(crate) parked: Parked,
    pub(crate) left_ms: u64,
}

/// What a connection has for as long as it is open, parked or not.
pub(crate) struct Held {
    /// Counts it among the open ones.
    pub(crate) _open: Open,
    /// Its place among the worker's connections.
    pub(crate) _seat: Seat,
    /// The generation it was accepted under.
    pub(crate) accepted_under: u64,
}

/// What becomes of a connection after an exchange.
enum After {
    /// Another request may come.
    Keep(Idle),
    /// It is closed, and what the client still sends is read for a while.
    Linger(Lingering),
    /// It is closed.
    Close,
    /// It is reset.
    Reset,
}

/// Serves a connection until it is over, or idle.
pub(crate) fn serve(
    context: Rc<WorkerContext>,
    client: Rc<Client>,
    stream: Stream,
    held: Held,
    preread: Preread,
) -> impl Future<Output = Option<IdleConnection>> {
    let connection = Connection::new(context, client, stream, held);
    let idle = connection.first_idle(preread);
    connection.serve(idle)
}

/// Goes on with a connection that was parked.
pub(crate) async fn resume(
    context: Rc<WorkerContext>,
    stream: Stream,
    parked: Parked,
) -> Option<IdleConnection> {
    let Parked { client, held, idle, _waiting: waiting } = parked;
    drop(waiting);
    let client = Rc::new(Client::wake(client, Probe::new(&stream)));
    Connection::new(context, client, stream, held).serve(idle).await
}

impl From<Cut> for After {
    fn from(cut: Cut) -> Self {
        match cut {
            Cut::Close => Self::Close,
            Cut::Reset => Self::Reset,
        }
    }
}

impl Connection {
    fn new(context: Rc<WorkerContext>, client: Rc<Client>, stream: Stream, held: Held) -> Self {
        Self { context, client, link: Rc::new(Link::new(stream)), spare: RefCell::default(), held }
    }

    async fn serve(self, mut idle: Idle) -> Option<IdleConnection> {
        loop {
            let pipelined = match self.wait_for_request(idle).await {
                Next::Request { pipelined } => pipelined,
                Next::Over => return None,
                Next::Park { waiting, left_ms } => {
                    return Some(self.park(idle, waiting, left_ms));
                }
            };
            let request = self.begin_request();
            let after = self.exchange(&request, pipelined).await;
            self.spare.replace(Some(request));
            if !matches!(after, After::Keep(_)) {
                // Who sees the connection end may look for its line in the log.
                observe::end_turn();
            }
            match after {
                After::Keep(next) => idle = next,
                After::Linger(rules) => {
                    self.linger(rules).await;
                    return None;
                }
                After::Close => return None,
                After::Reset => {
                    self.reset();
                    return None;
                }
            }
        }
    }

    /// Lets the task end, and keeps no more than what the next request needs.
    fn park(self, idle: Idle, waiting: Waiting, left_ms: u64) -> IdleConnection {
        let Self { client, link, held, spare, .. } = self;
        drop(spare);
        let stream = Rc::into_inner(link).expect("no exchange is under way").into_stream();
        let parked = Parked { client: client.rest(), held, idle, _waiting: waiting };
        IdleConnection { stream, parked, left_ms }
    }

    /// What the next request has for itself.
    fn begin_request(&self) -> Rc<RequestStream> {
        let mut spare = self.spare.take();
        if let Some(request) = spare.as_mut().and_then(Rc::get_mut) {
            request.renew();
        } else {
            spare = None;
        }
        spare.unwrap_or_else(|| Rc::new(RequestStream::new(self.link.clone())))
    }

    /// One request and its reply.
    async fn exchange(&self, request: &Rc<RequestStream>, pipelined: bool) -> After {
        net::clock::pass();
        let mut counted = self.context.counts.request();
        let Some(mut x) = LentExchange::new(&self.context, &self.client) else {
            return After::Close;
        };
        let x = &mut *x;
        x.request.pipelined = pipelined;
        let refused = match self.read_head(x, request, &mut counted).await {
            Ok(()) => None,
            Err(NoRequest::Refused(status)) => Some(status),
            Err(NoRequest::Over(after)) => return after,
        };
        let mut writer = ReplyWriter::new(self, request);
        let after = match drive::run(&self.context, x, refused, &mut writer).await {
            Ok(()) => self.keep_or_close(x, request).await,
            Err(cut) => cut.into(),
        };
        if let After::Keep(_) = after {
            // So nginx's loggers see it: `$sent_http_connection` is "close" where it was not.
            x.close_after(CloseReason::Over);
        }
        after
    }
}
