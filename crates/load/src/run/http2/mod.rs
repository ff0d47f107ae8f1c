//! A client over HTTP/2: one connection at a time, with as many requests at once as it may have
//! streams.
//!
//! The client waits for turns once for each of its streams. A turn whose stream cannot be opened
//! yet, because the server allows fewer, waits here and keeps its intended start.

mod connection;
mod turn_queue;

use std::future::poll_fn;
use std::rc::Rc;

use net::{Address, Timer};

use super::failure::rest_after;
use super::opener::Opener;
use super::shared::ThreadShared;
use connection::{Http2Step, LoadHttp2Connection};
use turn_queue::TurnQueue;

pub(super) struct LoadHttp2Client {
    opener: Opener,
    timer: Timer,
    turns: TurnQueue,
}

impl LoadHttp2Client {
    /// Client `number`, counted over all threads.
    pub(super) fn new(
        shared: Rc<ThreadShared>,
        address: Rc<Address>,
        number: u64,
        streams: u64,
    ) -> Self {
        Self {
            turns: TurnQueue::new(Rc::clone(&shared), streams),
            opener: Opener::new(shared, address, number),
            timer: Timer::new(),
        }
    }

    /// Runs turns until it is stopped.
    pub(super) async fn run(mut self) {
        let shared = Rc::clone(&self.turns.shared);
        let mut connection = None;
        if shared.plan.per_connection.is_none() {
            connection = self.open().await;
        }
        shared.pace.done();
        loop {
            if connection.is_none() {
                poll_fn(|cx| self.turns.poll_first(cx)).await;
                connection = self.open().await;
            }
            let Some(mut open) = connection.take() else { continue };
            loop {
                match poll_fn(|cx| open.poll(&mut self.turns, &self.timer, cx)).await {
                    Http2Step::Rest => net::yield_now().await,
                    Http2Step::Ended(ended) => break open.abandon(&mut self.turns, ended),
                }
            }
        }
    }

    /// Opens a connection. A failure counts for the turns that wait for it.
    async fn open(&mut self) -> Option<LoadHttp2Connection> {
        self.timer.set(self.turns.shared.plan.timeout_ms());
        match self.opener.open(&self.timer).await {
            Ok(stream) => {
                self.timer.clear();
                Some(LoadHttp2Connection::new(stream, Rc::clone(&self.turns.shared)))
            }
            Err(failure) => {
                self.turns.fail_waiting(failure);
                rest_after(failure).await;
                None
            }
        }
    }
}
