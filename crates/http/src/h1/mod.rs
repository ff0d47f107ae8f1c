//! The driver of HTTP/1: reads heads, runs exchanges, sends replies, one connection per task.
//!
//! ```text
//! idle --bytes--> head --complete--> phases --reply--> send --> rest of the body --> idle | close
//!  ^                |                                             |
//!  |                +-- refused --> the page of its status --> send --> linger --> close
//!  +-- at once, where the next request has arrived already
//! ```
//!
//! A connection that waits for its next request holds no buffer and no exchange. Cancelling is
//! dropping: when a client is gone, its exchange loses its future, and is logged.

mod batch;
mod closing;
mod follow_up;
mod head;
mod idle;
mod incoming;
mod link;
mod reply_head;
mod send;
mod tunnel;

#[cfg(test)]
pub(crate) mod tests;

#[cfg(test)]
pub(crate) use head::begin;

use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use net::{Probe, Seat, Stream};
use observe::{Open, Waiting};

use crate::client::{Client, Resting};
use crate::drive::{Preread, WorkerContext};
use crate::exchange::{Exchange, Flow, Wait};
use crate::phases::{self, Ran};
use crate::site::policy::Lingering;

use idle::{Idle, Next};
use link::Link;

/// A connection.
struct Connection {
    context: Rc<WorkerContext>,
    client: Rc<Client>,
    link: Rc<Link>,
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

/// An exchange that is logged when it is over, be it that the connection is cut.
struct Logged<'c> {
    context: &'c WorkerContext,
    /// There until the end.
    x: Option<Box<Exchange>>,
}

impl Logged<'_> {
    fn exchange(&mut self) -> &mut Exchange {
        self.x.as_mut().expect("it is not over")
    }
}

impl Drop for Logged<'_> {
    fn drop(&mut self) {
        let Some(mut x) = self.x.take().filter(|_| !std::thread::panicking()) else { return };
        phases::log(&mut x);
        self.context.give_back(x);
    }
}

impl Connection {
    fn new(context: Rc<WorkerContext>, client: Rc<Client>, stream: Stream, held: Held) -> Self {
        Self { context, client, link: Rc::new(Link::new(stream)), held }
    }

    async fn serve(self, mut idle: Idle) -> Option<IdleConnection> {
        loop {
            match self.wait_for_request(idle).await {
                Next::Request => {}
                Next::Over => return None,
                Next::Park { waiting, left_ms } => {
                    return Some(self.park(idle, waiting, left_ms));
                }
            }
            let after = self.exchange().await;
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
        let Self { client, link, held, .. } = self;
        let stream = Rc::into_inner(link).expect("no exchange is under way").into_stream();
        let parked = Parked { client: client.rest(), held, idle, _waiting: waiting };
        IdleConnection { stream, parked, left_ms }
    }

    /// One request and its reply.
    async fn exchange(&self) -> After {
        net::clock::pass();
        let mut counted = self.context.counts.request();
        let x = self.context.lend(&self.client);
        let Some(mut logged) = x.map(|x| Logged { context: &self.context, x: Some(x) }) else {
            return After::Close;
        };
        let x = logged.exchange();
        x.request.pipelined = self.link.is_pipelined();
        let after = match self.read_head(x, &mut counted).await {
            Ok(ran) => self.answer(x, ran).await,
            Err(after) => after,
        };
        if let After::Keep(_) = after {
            // So nginx's loggers see it: `$sent_http_connection` is "close" where it was not.
            x.keepalive = false;
        }
        after
    }

    async fn answer(&self, x: &mut Exchange, ran: Ran) -> After {
        let mut ended = self.reply(x, ran).await;
        if Self::is_followed_up(x) {
            ended = Box::pin(self.follow_up(x, ended)).await;
        }
        match ended {
            Ok(()) => self.keep_or_close(x).await,
            Err(after) => after,
        }
    }

    /// Runs the phases and sends what they come to; `Err`: it was not sent, or not to its end.
    async fn reply(&self, x: &mut Exchange, mut ran: Ran) -> Result<(), After> {
        loop {
            ran = match ran {
                Ran::Waits(wait) => match self.attend(x, wait).await {
                    Some(flow) => phases::step(x, flow),
                    None => return Err(self.gone(x)),
                },
                Ran::Dropped(status) => return Err(self.dropped(x, status)),
                Ran::Replied => break,
            };
        }
        reply_head::check(x);
        let tunnel = x.reply.tunnel.take();
        self.send(x).await?;
        match tunnel {
            None => Ok(()),
            Some(tunnel) => self.tunnel(x, tunnel).await,
        }
    }

    /// Waits with an exchange, and watches the client meanwhile: `None` once it is gone.
    async fn attend(&self, x: &mut Exchange, wait: Wait) -> Option<Flow> {
        self.context.gate.pass();
        let outlives = x.outlives_client.clone();
        x.request.make_compact();
        let mut future = wait(x);
        poll_fn(|cx| {
            self.link.forget_reader();
            match future.as_mut().poll(cx) {
                Poll::Ready(flow) => Poll::Ready(Some(flow)),
                Poll::Pending if outlives.get() => Poll::Pending,
                Poll::Pending => self.link.poll_gone(cx).map(|()| None),
            }
        })
        .await
    }
}
