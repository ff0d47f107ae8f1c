//! Who may send when: the one thing that the clients of a thread share.
//!
//! In a closed loop a client may send whenever it asks. In an open loop there is a turn for each
//! request whose time has come; clients get turns in the order in which they came to wait, and a
//! turn that no client is free for keeps its time.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

/// Leave to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SendPermit {
    /// When the request should start; `None`: now.
    pub(super) intended: Option<Instant>,
    /// Whether a client was free for it then. If not, it is the server that makes it late.
    pub(super) in_time: bool,
    /// Requests, one behind the other.
    pub(super) requests: u64,
}

/// Turns that wait for a client at most; those beyond are counted, and never sent.
pub(super) const DUE_MAX: usize = 1 << 20;

/// See above.
#[derive(Default)]
pub(super) struct Pace(RefCell<PaceState>);

#[derive(Default)]
struct PaceState {
    phase: PacePhase,
    /// Requests of a turn in a closed loop.
    at_once: u64,
    /// Requests that may still start in a closed loop.
    left: u64,
    due: VecDeque<Instant>,
    unsent: u64,
    waiting: VecDeque<Rc<PaceClient>>,
    /// Clients that are within a turn, or open their first connection.
    busy: usize,
    watcher: Option<Waker>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum PacePhase {
    /// Connections are being opened.
    #[default]
    Opening,
    /// Clients send as they like.
    Closed,
    /// Clients wait for their turns.
    Open,
    /// No turns are given but those that are due.
    Over,
}

/// Where a client waits.
#[derive(Default)]
pub(super) struct PaceClient {
    waker: RefCell<Option<Waker>>,
    turn: Cell<Option<SendPermit>>,
    is_queued: Cell<bool>,
}

impl Pace {
    /// A client that has still to open its connection: it is busy until its first
    /// [`done`](Self::done).
    pub(super) fn seat(&self) -> Rc<PaceClient> {
        self.0.borrow_mut().busy += 1;
        Rc::default()
    }

    /// The client's next turn. Where there are no more it waits as well, and its connection stays
    /// open: to close hundreds would disturb the server while it works on the last requests.
    pub(super) fn poll_turn(
        &self,
        seat: &Rc<PaceClient>,
        cx: &mut Context<'_>,
    ) -> Poll<SendPermit> {
        if let Some(turn) = seat.turn.take() {
            return Poll::Ready(turn);
        }
        let mut state = self.0.borrow_mut();
        if let Poll::Ready(turn) = state.turn() {
            return Poll::Ready(turn);
        }
        if !seat.is_queued.replace(true) {
            state.waiting.push_back(Rc::clone(seat));
        }
        *seat.waker.borrow_mut() = Some(cx.waker().clone());
        Poll::Pending
    }

    /// The client has come to the end of its turn.
    pub(super) fn done(&self) {
        let mut state = self.0.borrow_mut();
        state.busy -= 1;
        state.look();
    }

    /// Clients may send as they like: so many requests at once, so many in all.
    pub(super) fn begin_closed(&self, at_once: u64, left: u64) {
        let mut state = self.0.borrow_mut();
        state.begin(PacePhase::Closed);
        (state.at_once, state.left) = (at_once, left);
        state.call_all();
    }

    /// Clients wait for their turns.
    pub(super) fn begin_open(&self) {
        self.0.borrow_mut().begin(PacePhase::Open);
    }

    /// The time of a request has come.
    pub(super) fn due(&self, at: Instant) {
        let mut state = self.0.borrow_mut();
        let turn = SendPermit { intended: Some(at), in_time: true, requests: 1 };
        match state.waiting.pop_front() {
            Some(seat) => {
                state.busy += 1;
                seat.is_queued.set(false);
                seat.turn.set(Some(turn));
                seat.call();
            }
            None if state.due.len() < DUE_MAX => state.due.push_back(at),
            None => state.unsent += 1,
        }
    }

    /// No request starts any more but those whose time has come.
    pub(super) fn end(&self) {
        let mut state = self.0.borrow_mut();
        state.phase = PacePhase::Over;
        state.look();
    }

    /// What is due and has no client is not sent any more.
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

    /// Clients that are within a turn.
    pub(super) fn busy(&self) -> u64 {
        self.0.borrow().busy as u64
    }

    /// Requests whose time has come and which were not sent.
    pub(super) fn unsent(&self) -> u64 {
        let state = self.0.borrow();
        state.unsent + state.due.len() as u64
    }
}

impl PaceState {
    /// Whatever a turn before has left is gone.
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
        for seat in self.waiting.drain(..) {
            seat.is_queued.set(false);
            seat.call();
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

    fn turn(pace: &Pace, seat: &Rc<PaceClient>) -> Option<SendPermit> {
        poll(|cx| pace.poll_turn(seat, cx))
    }

    fn open() -> (Pace, [Rc<PaceClient>; 2]) {
        let pace = Pace::default();
        let seats = [pace.seat(), pace.seat()];
        pace.done();
        assert!(poll(|cx| pace.poll_quiet(cx)).is_none(), "one is still connecting");
        pace.done();
        assert!(poll(|cx| pace.poll_quiet(cx)).is_some());
        (pace, seats)
    }

    #[test]
    fn a_closed_loop_counts_down() {
        let (pace, seats) = open();
        assert_eq!(turn(&pace, &seats[0]), None);
        pace.begin_closed(2, 3);
        let requests = |seat| turn(&pace, seat).map(|turn| turn.requests);
        assert_eq!(requests(&seats[0]), Some(2));
        assert_eq!(requests(&seats[1]), Some(1));
        assert_eq!(requests(&seats[1]), None);
        pace.done();
        assert!(poll(|cx| pace.poll_quiet(cx)).is_none());
        pace.done();
        assert!(poll(|cx| pace.poll_quiet(cx)).is_some());
    }

    #[test]
    fn turns_go_to_who_waited_longest() {
        let (pace, seats) = open();
        pace.begin_open();
        assert_eq!((turn(&pace, &seats[1]), turn(&pace, &seats[0])), (None, None));
        let at = Instant::now();
        // A client that looks again keeps its place.
        assert_eq!(turn(&pace, &seats[1]), None);
        pace.due(at);
        assert_eq!(turn(&pace, &seats[0]), None);
        let expected = SendPermit { intended: Some(at), in_time: true, requests: 1 };
        assert_eq!(turn(&pace, &seats[1]), Some(expected));
    }

    #[test]
    fn a_second_turn_begins_as_the_first() {
        let (pace, seats) = open();
        pace.begin_open();
        pace.due(Instant::now());
        pace.due(Instant::now());
        pace.end();
        assert!(turn(&pace, &seats[0]).is_some());
        pace.drop_due();
        assert_eq!((turn(&pace, &seats[0]), pace.unsent()), (None, 1));
        pace.done();
        assert!(poll(|cx| pace.poll_quiet(cx)).is_some());
        pace.begin_closed(1, 1);
        assert_eq!(pace.unsent(), 0);
        assert_eq!(turn(&pace, &seats[0]).map(|turn| turn.intended), Some(None));
    }

    #[test]
    fn a_turn_without_a_client_keeps_its_time() {
        let (pace, seats) = open();
        pace.begin_open();
        let at = Instant::now();
        pace.due(at);
        assert_eq!(pace.unsent(), 1);
        pace.end();
        let expected = SendPermit { intended: Some(at), in_time: false, requests: 1 };
        assert_eq!((turn(&pace, &seats[0]), pace.busy()), (Some(expected), 1));
        assert!(poll(|cx| pace.poll_quiet(cx)).is_none());
        pace.done();
        assert!(poll(|cx| pace.poll_quiet(cx)).is_some());
        assert_eq!((turn(&pace, &seats[0]), pace.busy()), (None, 0));
    }
}
