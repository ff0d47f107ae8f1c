//! A client over HTTP/2: one connection at a time, with as many requests at once as it may have
//! streams.
//!
//! The client waits for turns once for each of its streams. A turn whose stream cannot be opened
//! yet, because the server allows fewer, waits here and keeps its intended start.

mod connection;

use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Instant;

use net::{Address, Timer};

use super::client::rest_after;
use super::failure::RunFailure;
use super::opener::Opener;
use super::pace::{PaceClient, SendPermit};
use super::thread::ThreadShared;
use connection::{Http2Step, LoadHttp2Connection};

pub(super) struct LoadHttp2Client {
    opener: Opener,
    timer: Timer,
    turns: TurnQueue,
}

/// The turns of a client that have no stream yet, and its waits for further ones.
struct TurnQueue {
    shared: Rc<ThreadShared>,
    /// Waits without a turn.
    idle: Vec<Rc<PaceClient>>,
    /// Turns that wait for a stream.
    waiting: VecDeque<GivenTurn>,
}

/// A turn, and the intended start of its request.
struct GivenTurn {
    client: Rc<PaceClient>,
    /// `None` if it starts when it is sent.
    begun: Option<Instant>,
}

impl LoadHttp2Client {
    /// Client `number`, counted over all threads.
    pub(super) fn new(
        shared: Rc<ThreadShared>,
        address: Rc<Address>,
        number: u64,
        streams: u64,
    ) -> Self {
        let first = shared.pace.add_client();
        let further = (1..streams).map(|_| Rc::default());
        Self {
            turns: TurnQueue {
                idle: std::iter::once(first).chain(further).collect(),
                waiting: VecDeque::new(),
                shared: Rc::clone(&shared),
            },
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

impl TurnQueue {
    /// Ready once there is a turn.
    fn poll_first(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.poll_turns(cx);
        if self.waiting.is_empty() { Poll::Pending } else { Poll::Ready(()) }
    }

    /// Takes the available turns, and waits for more.
    fn poll_turns(&mut self, cx: &mut Context<'_>) {
        let mut place = self.idle.len();
        while place > 0 {
            place -= 1;
            let turn = self.shared.pace.poll_turn(&self.idle[place], cx);
            if let Poll::Ready(SendPermit { intended, in_time, .. }) = turn {
                if let Some(intended) = intended.filter(|_| in_time) {
                    self.shared.is_late(intended.elapsed());
                }
                // With a limit of requests, opening a connection counts as part of their time.
                let is_opened = self.shared.plan.per_connection.is_some();
                let begun = intended.or_else(|| is_opened.then(Instant::now));
                let client = self.idle.swap_remove(place);
                self.waiting.push_back(GivenTurn { client, begun });
            }
        }
    }

    /// Ends a turn.
    fn done(&mut self, client: Rc<PaceClient>) {
        self.idle.push(client);
        self.shared.pace.done();
    }

    fn fail_waiting(&mut self, failure: RunFailure) {
        let lost = self.waiting.len() as u64;
        failure.count(lost, &mut self.shared.tally.borrow_mut().errors);
        while let Some(turn) = self.waiting.pop_front() {
            self.done(turn.client);
        }
    }
}
