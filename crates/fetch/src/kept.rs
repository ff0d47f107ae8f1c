//! Idle connections of one fetcher, kept for the next requests to their origins.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use net::{Address, Stream, Timer, clock};

use crate::request::FetchOrigin;

/// How often idle connections are checked.
const ROUND_MS: u64 = 500;

/// Idle connections, the youngest last.
pub(crate) struct KeptConnections {
    kept: RefCell<Vec<IdleFetchConnection>>,
    connections_max: usize,
    idle_ms: u64,
    /// Whether a task checks the connections.
    is_tidied: Cell<bool>,
}

struct IdleFetchConnection {
    origin: FetchOrigin,
    to: FetchConnection,
    until_ms: u64,
}

pub(crate) struct FetchConnection {
    pub(crate) stream: Stream,
    pub(crate) address: Address,
}

impl KeptConnections {
    /// An empty list, which keeps `connections_max` connections, each for `idle_ms`.
    pub(crate) fn new(connections_max: usize, idle_ms: u64) -> Rc<Self> {
        let (kept, is_tidied) = (RefCell::default(), Cell::new(false));
        Rc::new(Self { kept, connections_max, idle_ms, is_tidied })
    }

    /// Whether connections are kept at all.
    pub(crate) fn keeps_any(&self) -> bool {
        self.connections_max > 0
    }

    /// The youngest connection to the origin that is still open, as far as is known.
    pub(crate) fn take(&self, origin: &FetchOrigin) -> Option<FetchConnection> {
        let mut kept = self.kept.borrow_mut();
        loop {
            let at = kept.iter().rposition(|one| is_same(&one.origin, origin))?;
            let mut one = kept.remove(at);
            if one.until_ms > clock::now_ms() && !one.to.stream.is_disturbed() {
                return Some(one.to);
            }
            one.to.stream.close_session();
        }
    }

    /// Keeps a connection after its last reply has ended. The oldest is closed to make room.
    pub(crate) fn keep(self: &Rc<Self>, origin: &FetchOrigin, mut to: FetchConnection) {
        // Registers for the event that the peer closes the connection.
        let mut unnoticed = Context::from_waker(Waker::noop());
        if !self.keeps_any() || to.stream.poll_disturbed(&mut unnoticed).is_ready() {
            return to.stream.close_session();
        }
        let until_ms = clock::now_ms().saturating_add(self.idle_ms);
        let mut kept = self.kept.borrow_mut();
        if kept.len() >= self.connections_max {
            kept.remove(0).to.stream.close_session();
        }
        kept.push(IdleFetchConnection { origin: origin.clone(), to, until_ms });
        if !self.is_tidied.replace(true) {
            net::spawn(tidy(Rc::downgrade(self)));
        }
    }

    /// Closes connections that are disturbed or idle for too long. Returns whether any are left.
    fn tidy(&self, cx: &mut Context<'_>) -> bool {
        let mut kept = self.kept.borrow_mut();
        let now_ms = clock::now_ms();
        kept.retain_mut(|one| {
            let stays = one.until_ms > now_ms && one.to.stream.poll_disturbed(cx).is_pending();
            if !stays {
                one.to.stream.close_session();
            }
            stays
        });
        self.is_tidied.set(!kept.is_empty());
        !kept.is_empty()
    }
}

/// Whether requests to these origins may share connections. A transport equals only itself: another
/// may trust other certificates, or present another one.
fn is_same(one: &FetchOrigin, other: &FetchOrigin) -> bool {
    let has_same_transport = match (&one.transport, &other.transport) {
        (None, None) => true,
        (Some(one), Some(other)) => Arc::ptr_eq(one, other),
        _ => false,
    };
    has_same_transport && one.place == other.place
}

/// Checks idle connections as long as there are any, and their fetcher exists.
async fn tidy(connections: Weak<KeptConnections>) {
    let timer = Timer::new();
    timer.set(ROUND_MS);
    poll_fn(|cx| {
        match connections.upgrade() {
            Some(connections) if connections.tidy(cx) => {}
            _ => return Poll::Ready(()),
        }
        ready!(timer.poll(cx));
        timer.set(ROUND_MS);
        timer.poll(cx)
    })
    .await;
}
