//! The driver of HTTP/1: reads heads, runs exchanges, sends replies, one connection per task.
//!
//! ```text
//! idle --bytes--> head --complete--> phases --reply--> send --> idle | close
//! ```
//!
//! A connection that waits for its next request holds no buffer and no exchange.

mod head;
mod send;

#[cfg(test)]
pub(crate) use head::begin;

use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use net::{Seat, Stream, Timer, buffers};
use observe::{InRequest, Open};
use wire::http1::request::Progress;

use crate::client::Client;
use crate::exchange::Exchange;
use crate::phases::{self, Ran};
use crate::worker::Worker;

/// A connection.
struct Connection {
    worker: Rc<Worker>,
    client: Rc<Client>,
    stream: Stream,
    timer: Timer,
    /// Bytes that arrived after the last head.
    input: Vec<u8>,
    _held: Held,
}

/// What a connection has for as long as it is open, parked or not.
pub(crate) struct Held {
    /// Counts it among the open ones.
    pub(crate) _open: Open,
    /// Its place among the worker's connections.
    pub(crate) _seat: Seat,
}

/// Why a connection is over.
struct Over;

/// Serves a connection until it is over.
pub(crate) async fn serve(worker: Rc<Worker>, client: Rc<Client>, stream: Stream, held: Held) {
    let timer = Timer::new();
    let mut connection =
        Connection { worker, client, stream, timer, input: Vec::new(), _held: held };
    while let Ok(true) = connection.exchange().await {}
    if connection.input.capacity() > 0 {
        buffers::give_back(connection.input);
    }
}

impl Connection {
    /// One request and its reply; whether another may follow.
    async fn exchange(&mut self) -> Result<bool, Over> {
        let pipelined = !self.input.is_empty();
        self.wait_for_bytes().await?;
        net::clock::pass();
        let mut counted = self.worker.counts.request();
        let Some(mut x) = self.worker.lend(&self.client) else { return Err(Over) };
        x.request.pipelined = pipelined;
        let result = self.answer(&mut x, &mut counted).await;
        phases::log(&mut x);
        self.take_rest(&mut x);
        self.worker.give_back(x);
        result
    }

    async fn answer(&mut self, x: &mut Exchange, counted: &mut InRequest) -> Result<bool, Over> {
        self.read_head(x).await?;
        counted.head_complete();
        let mut ran = head::begin(x);
        while let Ran::Waits(wait) = ran {
            let flow = wait(x).await;
            ran = phases::step(x, flow);
        }
        if matches!(ran, Ran::Dropped) {
            return Err(Over);
        }
        x.keepalive &= self.worker.keeps(&self.client);
        self.send(x).await?;
        Ok(x.keepalive)
    }

    /// Waits for the first bytes of a request with no buffer of its own.
    async fn wait_for_bytes(&mut self) -> Result<(), Over> {
        if !self.input.is_empty() {
            return Ok(());
        }
        let _waiting = self.worker.counts.wait();
        let Self { worker, client, stream, input, .. } = self;
        poll_fn(|cx| {
            let mut buffer = std::mem::take(input);
            if buffer.capacity() == 0 {
                buffer = buffers::lend();
            }
            match stream.poll_read(cx, &mut buffer) {
                Poll::Ready(Ok(1..)) => {
                    *input = buffer;
                    Poll::Ready(Ok(()))
                }
                Poll::Ready(_) => {
                    buffers::give_back(buffer);
                    Poll::Ready(Err(Over))
                }
                Poll::Pending => {
                    buffers::give_back(buffer);
                    if worker.keeps(client) { Poll::Pending } else { Poll::Ready(Err(Over)) }
                }
            }
        })
        .await
    }

    /// Reads until the head is complete.
    async fn read_head(&mut self, x: &mut Exchange) -> Result<(), Over> {
        x.request.received = std::mem::take(&mut self.input);
        loop {
            let limits = &x.generation.server(x.server).reading.head;
            match x.request.head.parse(&x.request.received, limits) {
                Ok(Progress::Complete { len }) => {
                    x.request.head_bytes = len;
                    x.request.length = len as u64;
                    return Ok(());
                }
                Ok(_) => {}
                Err(_) => return Err(Over),
            }
            if x.request.received.len() == x.request.received.capacity() {
                x.request.received.reserve(buffers::BUFFER_SIZE);
            }
            let received = &mut x.request.received;
            let read = poll_fn(|cx| self.stream.poll_read(cx, received)).await;
            if !matches!(read, Ok(1..)) {
                return Err(Over);
            }
        }
    }

    /// What arrived after this request belongs to the next.
    fn take_rest(&mut self, x: &mut Exchange) {
        let mut buffer = std::mem::take(&mut x.request.received);
        let used = x.request.head_bytes.min(buffer.len());
        if used == buffer.len() {
            buffers::give_back(buffer);
        } else {
            buffer.drain(..used);
            self.input = buffer;
        }
    }
}
