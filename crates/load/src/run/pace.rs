//! Decides when clients may send. The clients of a thread share it.
//!
//! In a closed loop, a client may always send. In an open loop, there is a turn for each request
//! that is due. Clients get turns in the order in which they began to wait, and a turn without a
//! free client keeps its intended start.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SendPermit {
    /// The intended start of the request; `None` for now.
    pub(super) intended: Option<Instant>,
    /// Whether a client was free for it then. If not, the server caused the delay.
    pub(super) in_time: bool,
    /// The number of pipelined requests.
    pub(super) requests: u64,
}

/// The most turns that wait for a client; further ones are counted and never sent.
pub(super) const DUE_MAX: usize = 1 << 20;

/// The pace of a thread's clients.
#[derive(Default)]
pub(super) struct Pace(RefCell<PaceState>);

#[derive(Default)]
struct PaceState {
    phase: PacePhase,
    /// Closed loop: the number of requests of a turn.
    at_once: u64,
    /// Closed loop: the number of requests that may still start.
    left: u64,
    due: VecDeque<Instant>,
    unsent: u64,
    waiting: VecDeque<Rc<PaceClient>>,
    /// The number of clients within a turn, or opening their first connection.
    busy: usize,
    watcher: Option<Waker>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum PacePhase {
    /// Connections are being opened.
    #[default]
    Opening,
    /// Clients may always send.
    Closed,
    /// Clients wait for their turns.
    Open,
    /// Only due turns are given.
    Over,
}

/// The state of a waiting client.
#[derive(Default)]
pub(super) struct PaceClient {
    waker: RefCell<Option<Waker>>,
    turn: Cell<Option<SendPermit>>,
    is_queued: Cell<bool>,
}

impl Pace {
    /// Adds a client, which is busy opening its connection until its first [`done`](Self::done).
    pub(super) fn add_client(&self) -> Rc<PaceClient> {
        self.0.borrow_mut().busy += 1;
        Rc::default()
    }

    /// The client's next turn. After the last one it waits as well, and keeps its connection open,
    /// because closing hundreds would disturb the server while it works on the last requests.
    pub(super) fn poll_turn(
        &self,
        client: &Rc<PaceClient>,
        cx: &mut Context<'_>,
    ) -> Poll<SendPermit> {
        if let Some(turn) = client.turn.take() {
            return Poll::Ready(turn);
        }
        let mut state = self.0.borrow_mut();
        if let Poll::Ready(turn) = state.turn() {
            return Poll::Ready(turn);
        }
        if !client.is_queued.replace(true) {
            state.waiting.push_back(Rc::clone(client));
        }
        *client.waker.borrow_mut() = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Ends the client's turn.
    pub(super) fn done(&self) {
        let mut state = self.0.borrow_mut();
        state.busy -= 1;
        state.look();
    }

    /// Begins a closed loop, with `at_once` requests per turn and `left` in total.
    pub(super) fn begin_closed(&self, at_once: u64, left: u64) {
        let mut state = self.0.borrow_mut();
        state.begin(PacePhase::Closed);
        (state.at_once, state.left) = (at_once, left);
        state.call_all();
    }

    /// Begins an open loop.
    pub(super) fn begin_open(&self) {
        self.0.borrow_mut().begin(PacePhase::Open);
    }

    /// Adds a turn for a request that is due.
    pub(super) fn due(&self, at: Instant) {
        let mut state = self.0.borrow_mut();
        let turn = SendPermit { intended: Some(at), in_time: true, requests: 1 };
        match state.waiting.pop_front() {
            Some(client) => {
                state.busy += 1;
                client.is_queued.set(false);
                client.turn.set(Some(turn));
                client.call();
            }
            None if state.due.len() < DUE_MAX => state.due.push_back(at),
            None => state.unsent += 1,
        }
    }

    /// Ends the loop; only due requests still start.
    pub(super) fn end(&self) {
        let mut state = self.0.borrow_mut();
        state.phase = PacePhase::Over;
        state.look();
    }

    /// Drops due turns without a client.
    pub(super) fn drop_due(&self) {
        let mut state = self.0.borrow_mut();
        state.unsent += state.due.len() as u64;
        state.due.clear();
        state.look();
    }

    /// Ready once no client is busy, and no turn is left.
    pub(super) fn poll_quiet(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.0.borrow_mut();
        if state.is_quiet() {
            return Poll::Ready(());
        }
        state.watcher = Some(cx.waker().clone());
        Poll::Pending
    }

    /// The number of clients within a turn.
    pub(super) fn busy(&self) -> u64 {
        self.0.borrow().busy as u64
    }

    /// The number of due requests that were not sent.
    pub(super) fn unsent(&self) -> u64 {
        let state = self.0.borrow();
        state.unsent + state.due.len() as u64
    }
}

impl PaceState {
    /// Begins a phase, without the state of an earlier one.
    fn begin(&mut self, phase: PacePhase) {
        self.phase = phase;
        self.due.clear();
        self.unsent = 0;
    }

    fn turn(&mut self) -> Poll<SendPermit> {
        let turn = match (self.phase, self.due.pop_front()) {
            (_, Some(at)) => SendPermit { intended: Some(at), in_time: false, requests: 1 },
            (PacePhase::Closed, None) if self.left > 0 => {
                let requests = self.at_once.min(self.left);
                self.left -= requests;
                SendPermit { intended: None, in_time: true, requests }
            }
            (_, None) => return Poll::Pending,
        };
        self.busy += 1;
        Poll::Ready(turn)
    }

    fn is_quiet(&self) -> bool {
        let may_start = match self.phase {
            PacePhase::Closed => self.left > 0,
            PacePhase::Open => true,
            PacePhase::Opening | PacePhase::Over => !self.due.is_empty(),
        };
        self.busy == 0 && !may_start
    }

    fn look(&mut self) {
        if self.is_quiet()
            && let Some(watcher) = self.watcher.take()
        {
            watcher.wake();
        }
    }

    fn call_all(&mut self) {
        for client in self.waiting.drain(..) {
            client.is_queued.set(false);
            client.call();
        }
    }
}

impl PaceClient {
    fn call(&self) {
        if let Some(waker) = self.waker.borrow_mut().take() {
            waker.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn poll<T>(poll: impl Fn(&mut Context<'_>) -> Poll<T>) -> Option<T> {
        match poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(ready) => Some(ready),
            Poll::Pending => None,
        }
    }

    fn turn(pace: &Pace, client: &Rc<PaceClient>) -> Option<SendPermit> {
        poll(|cx| pace.poll_turn(client, cx))
    }

    fn open() -> (Pace, [Rc<PaceClient>; 2]) {
        let pace = Pace::default();
        let clients = [pace.add_client(), pace.add_client()];
        pace.done();
        assert!(poll(|cx| pace.poll_quiet(cx)).is_none(), "one is still connecting");
        pace.done();
        assert!(poll(|cx| pace.poll_quiet(cx)).is_some());
        (pace, clients)
    }

    #[test]
    fn a_closed_loop_counts_down() {
        let (pace, clients) = open();
        assert_eq!(turn(&pace, &clients[0]), None);
        pace.begin_closed(2, 3);
        let requests = |client| turn(&pace, client).map(|turn| turn.requests);
        assert_eq!(requests(&clients[0]), Some(2));
        assert_eq!(requests(&clients[1]), Some(1));
        assert_eq!(requests(&clients[1]), None);
        pace.done();
        assert!(poll(|cx| pace.poll_quiet(cx)).is_none());
        pace.done();
        assert!(poll(|cx| pace.poll_quiet(cx)).is_some());
    }

    #[test]
    fn turns_go_to_the_client_that_waited_longest() {
        let (pace, clients) = open();
        pace.begin_open();
        assert_eq!((turn(&pace, &clients[1]), turn(&pace, &clients[0])), (None, None));
        let at = Instant::now();
        // A client that polls again keeps its place.
        assert_eq!(turn(&pace, &clients[1]), None);
        pace.due(at);
        assert_eq!(turn(&pace, &clients[0]), None);
        let expected = SendPermit { intended: Some(at), in_time: true, requests: 1 };
        assert_eq!(turn(&pace, &clients[1]), Some(expected));
    }

    #[test]
    fn a_second_phase_begins_without_old_state() {
        let (pace, clients) = open();
        pace.begin_open();
        pace.due(Instant::now());
        pace.due(Instant::now());
        pace.end();
        assert!(turn(&pace, &clients[0]).is_some());
        pace.drop_due();
        assert_eq!((turn(&pace, &clients[0]), pace.unsent()), (None, 1));
        pace.done();
        assert!(poll(|cx| pace.poll_quiet(cx)).is_some());
        pace.begin_closed(1, 1);
        assert_eq!(pace.unsent(), 0);
        assert_eq!(turn(&pace, &clients[0]).map(|turn| turn.intended), Some(None));
    }

    #[test]
    fn a_turn_without_a_client_keeps_its_time() {
        let (pace, clients) = open();
        pace.begin_open();
        let at = Instant::now();
        pace.due(at);
        assert_eq!(pace.unsent(), 1);
        pace.end();
        let expected = SendPermit { intended: Some(at), in_time: false, requests: 1 };
        assert_eq!((turn(&pace, &clients[0]), pace.busy()), (Some(expected), 1));
        assert!(poll(|cx| pace.poll_quiet(cx)).is_none());
        pace.done();
        assert!(poll(|cx| pace.poll_quiet(cx)).is_some());
        assert_eq!((turn(&pace, &clients[0]), pace.busy()), (None, 0));
    }
}
