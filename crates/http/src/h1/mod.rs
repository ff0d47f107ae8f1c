//! The driver of HTTP/1 connections: one task each, one request at a time.
//!
//! ```text
//! idle --bytes--> head --complete--> drive::run --> rest of the body --> idle | close
//!  ^                |              ^
//!  |                +--- wrong ----+ (answers with a status)
//!  +-- immediately, if the next request was already received
//! ```
//!
//! `drive` runs a request from its head to the end of its reply. A [`RequestStream`] provides the
//! body, a [`ReplyWriter`] sends the reply. A connection that waits for its next request holds no
//! buffer and no exchange.

mod batch;
mod closing;
mod connection;
mod head;
mod idle;
mod incoming;
mod link;
mod reply_head;
mod reply_writer;
mod request_stream;
mod waiting;

#[cfg(test)]
pub(crate) mod tests;

#[cfg(test)]
pub(crate) use head::settle;

use std::rc::Rc;

use net::{SocketProbe, Stream};

pub(crate) use connection::{ConnectionState, ParkableConnection, Parked};

use crate::client::Client;
use crate::drive::{self, LentExchange, Preread, WorkerContext};
use crate::exchange::CloseReason;

use connection::{After, Connection};
use head::NoRequest;
use idle::{Idle, WaitOutcome};
use reply_writer::ReplyWriter;
use request_stream::RequestStream;

/// Serves a connection until it is over, or idle.
pub(crate) fn serve(
    context: Rc<WorkerContext>,
    client: Rc<Client>,
    stream: Stream,
    held: ConnectionState,
    preread: Preread,
) -> impl Future<Output = Option<ParkableConnection>> {
    let connection = Connection::new(context, client, stream, held);
    let idle = connection.first_idle(preread);
    connection.serve(idle)
}

/// Resumes a parked connection.
pub(crate) async fn resume(
    context: Rc<WorkerContext>,
    stream: Stream,
    parked: Parked,
) -> Option<ParkableConnection> {
    let Parked { client, held, idle, _waiting: waiting } = parked;
    drop(waiting);
    let client = Rc::new(Client::wake(client, SocketProbe::new(&stream)));
    Connection::new(context, client, stream, held).serve(idle).await
}

impl Connection {
    async fn serve(self, mut idle: Idle) -> Option<ParkableConnection> {
        loop {
            let pipelined = match self.wait_for_request(idle).await {
                WaitOutcome::Request { pipelined } => pipelined,
                WaitOutcome::Over => return None,
                WaitOutcome::Park { waiting, left_ms } => {
                    return Some(self.park(idle, waiting, left_ms));
                }
            };
            let request = self.begin_request();
            let after = self.exchange(&request, pipelined).await;
            self.end_request(request);
            if !matches!(after, After::Keep(_)) {
                // Writes the access log: a client may look for its line once the connection ends.
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
            // As in nginx's loggers: `$sent_http_connection` is "close" after the reply, even
            // though "keep-alive" was sent.
            x.close_after(CloseReason::Over);
        }
        after
    }
}
