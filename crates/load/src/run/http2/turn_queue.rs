//! The turns of a client over HTTP/2.

use std::collections::VecDeque;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Instant;

use super::super::failure::RunFailure;
use super::super::pace::{PaceClient, SendPermit};
use super::super::shared::ThreadShared;

/// The turns of a client that have no stream yet, and its waits for further ones.
pub(super) struct TurnQueue {
    pub(super) shared: Rc<ThreadShared>,
    /// Waits without a turn.
    pub(super) idle: Vec<Rc<PaceClient>>,
    /// Turns that wait for a stream.
    pub(super) waiting: VecDeque<GivenTurn>,
}

/// A turn, and the intended start of its request.
pub(super) struct GivenTurn {
    pub(super) client: Rc<PaceClient>,
    /// `None` if it starts when it is sent.
    pub(super) begun: Option<Instant>,
}

impl TurnQueue {
    /// That of a client with so many streams.
    pub(super) fn new(shared: Rc<ThreadShared>, streams: u64) -> Self {
        let first = shared.pace.add_client();
        let further = (1..streams).map(|_| Rc::default());
        let idle = std::iter::once(first).chain(further).collect();
        Self { idle, waiting: VecDeque::new(), shared }
    }

    /// Ready once there is a turn.
    pub(super) fn poll_first(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.poll_turns(cx);
        if self.waiting.is_empty() { Poll::Pending } else { Poll::Ready(()) }
    }

    /// Takes the available turns, and waits for more.
    pub(super) fn poll_turns(&mut self, cx: &mut Context<'_>) {
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
    pub(super) fn done(&mut self, client: Rc<PaceClient>) {
        self.idle.push(client);
        self.shared.pace.done();
    }

    pub(super) fn fail_waiting(&mut self, failure: RunFailure) {
        let lost = self.waiting.len() as u64;
        failure.count(lost, &mut self.shared.tally.borrow_mut().errors);
        while let Some(turn) = self.waiting.pop_front() {
            self.done(turn.client);
        }
    }
}
