//! The client's end of a session over UDP, and the socket that it shares with other clients.
//!
//! A client is an address. Its first datagram begins a session, and later ones belong to that
//! session until it is over or unbinds the client. Datagrams that arrive before the session can
//! take them wait here, within limits. `datagrams` runs the session.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::rc::{Rc, Weak};
use std::task::{Context, Waker};

use net::{DatagramSet, ReceivedBatch, ReceivedDatagram, UdpListener};

/// State that the UDP sessions of a worker share.
pub struct UdpResources {
    /// The sockets of servers.
    pub(crate) servers: Rc<DatagramSet>,
    /// The buffers for receiving datagrams.
    pub(crate) batch: Rc<RefCell<ReceivedBatch>>,
}

/// A socket of one worker, and the clients that have sessions there.
pub struct UdpPort {
    pub(crate) listener: Rc<UdpListener>,
    pub(crate) slot: u32,
    pub(crate) resources: Rc<UdpResources>,
    flows: RefCell<HashMap<FlowKey, Rc<ClientFlow>>>,
    is_closed: Cell<bool>,
}

/// A client, and the address that it sends to if there are several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct FlowKey {
    peer: SocketAddr,
    local: Option<IpAddr>,
}

/// Datagrams between one client and its session.
pub struct ClientFlow {
    key: FlowKey,
    port: Rc<UdpPort>,
    /// Whether the client's datagrams are delivered to this flow.
    is_bound: Cell<bool>,
    datagrams_max: u64,
    waiting: RefCell<WaitingDatagrams>,
    sink: RefCell<Option<Weak<dyn DatagramSink>>>,
    waker: RefCell<Option<Waker>>,
}

/// Receives a client's datagrams.
pub(crate) trait DatagramSink {
    fn datagram(&self, payload: &[u8]);
}

/// Datagrams that the session cannot take yet.
#[derive(Default)]
struct WaitingDatagrams {
    datagrams: VecDeque<Box<[u8]>>,
    bytes: usize,
}

/// The number of clients for which the table keeps memory after a burst.
const FLOWS_KEPT: usize = 1024;
/// The most datagrams of a client that wait for its session; more are dropped.
const WAITING_MAX: usize = 64;
/// The most bytes of waiting datagrams, without the first, which always fits.
const WAITING_BYTES_MAX: usize = 16 * 1024;

impl UdpPort {
    pub(crate) fn new(
        listener: Rc<UdpListener>,
        slot: u32,
        resources: Rc<UdpResources>,
    ) -> Rc<Self> {
        let (flows, is_closed) = (RefCell::default(), Cell::new(false));
        Rc::new(Self { listener, slot, resources, flows, is_closed })
    }

    /// Gives a datagram to its client's session. Returns false if the client has none.
    pub(crate) fn deliver(&self, datagram: &ReceivedDatagram<'_>) -> bool {
        let flow = self.flows.borrow().get(&FlowKey::of(datagram)).cloned();
        flow.inspect(|flow| flow.give(datagram.payload)).is_some()
    }

    /// Begins a flow with its first datagram. It receives up to `datagrams_max` datagrams; 0: no
    /// limit.
    pub(crate) fn begin(
        self: &Rc<Self>,
        datagram: &ReceivedDatagram<'_>,
        datagrams_max: u64,
    ) -> Rc<ClientFlow> {
        let key = FlowKey::of(datagram);
        let flow = Rc::new(ClientFlow {
            key,
            port: self.clone(),
            is_bound: Cell::new(true),
            datagrams_max,
            waiting: RefCell::default(),
            sink: RefCell::default(),
            waker: RefCell::default(),
        });
        self.flows.borrow_mut().insert(key, flow.clone());
        flow.give(datagram.payload);
        flow
    }

    /// Ends a flow. After a burst of clients, the table shrinks.
    fn forget(&self, key: &FlowKey) {
        let mut flows = self.flows.borrow_mut();
        flows.remove(key);
        if flows.capacity() > FLOWS_KEPT && flows.len() < flows.capacity() / 8 {
            let kept = FLOWS_KEPT.max(flows.len() * 2);
            flows.shrink_to(kept);
        }
    }

    /// Marks the socket as closed; the caller has to wake the sessions.
    pub(crate) fn close(&self) {
        self.is_closed.set(true);
    }
}

impl FlowKey {
    fn of(datagram: &ReceivedDatagram<'_>) -> Self {
        Self { peer: datagram.peer, local: datagram.local }
    }
}

impl ClientFlow {
    fn give(&self, payload: &[u8]) {
        let sink = self.sink.borrow().as_ref().and_then(Weak::upgrade);
        match sink {
            Some(sink) => sink.datagram(payload),
            None => {
                let waiting = self.waiting.borrow_mut().push(payload);
                self.note_received(waiting as u64);
            }
        }
    }

    /// Records that the session has received this many datagrams of the client.
    pub(crate) fn note_received(&self, datagrams: u64) {
        if self.datagrams_max > 0 && datagrams >= self.datagrams_max {
            self.unbind();
        }
    }

    /// Sends a datagram to the client. Returns false if too many wait and it is dropped.
    pub(crate) fn send(&self, payload: &[u8]) -> bool {
        self.port.listener.send(payload, self.key.peer, self.key.local)
    }

    /// Delivers later datagrams to `sink`. Returns those that were received before.
    pub(crate) fn attach(&self, sink: Weak<dyn DatagramSink>) -> Vec<Box<[u8]>> {
        *self.sink.borrow_mut() = Some(sink);
        std::mem::take(&mut *self.waiting.borrow_mut()).datagrams.into()
    }

    /// Unbinds the client: its next datagram begins another session.
    pub(crate) fn unbind(&self) {
        if self.is_bound.replace(false) {
            self.port.forget(&self.key);
        }
    }

    /// The state that the worker's sessions share.
    pub(crate) fn resources(&self) -> &UdpResources {
        &self.port.resources
    }

    /// Whether the socket of the client's address was closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.port.is_closed.get()
    }

    /// Sets the task that [`wake`](Self::wake) wakes.
    pub(crate) fn set_task(&self, cx: &Context<'_>) {
        let mut waker = self.waker.borrow_mut();
        if !waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            *waker = Some(cx.waker().clone());
        }
    }

    pub(crate) fn wake(&self) {
        if let Some(waker) = &*self.waker.borrow() {
            waker.wake_by_ref();
        }
    }
}

impl WaitingDatagrams {
    /// Adds a datagram. Returns the number that wait.
    fn push(&mut self, payload: &[u8]) -> usize {
        let bytes = self.bytes + payload.len();
        let has_room = self.datagrams.len() < WAITING_MAX && bytes <= WAITING_BYTES_MAX;
        if self.datagrams.is_empty() || has_room {
            self.datagrams.push_back(payload.into());
            self.bytes = bytes;
        }
        self.datagrams.len()
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    #[test]
    fn datagrams_that_wait_are_limited_in_number_and_bytes() {
        let mut waiting = WaitingDatagrams::default();
        waiting.push(&[0; 65_507]);
        waiting.push(b"");
        assert_eq!(waiting.datagrams.len(), 1, "the first always fits, and is enough then");
        let mut waiting = WaitingDatagrams::default();
        let last = (0..2 * WAITING_MAX).map(|_| waiting.push(b"")).last();
        assert_eq!(last, Some(WAITING_MAX));
    }

    #[test]
    fn the_table_of_clients_shrinks_after_a_burst() {
        net::run(async {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.set_nonblocking(true).unwrap();
            let (servers, batch) = (DatagramSet::new().unwrap(), Rc::default());
            let listener = UdpListener::new(socket.into()).unwrap();
            let port = UdpPort::new(listener, 0, Rc::new(UdpResources { servers, batch }));
            let begin = |number: u16| {
                let peer = SocketAddr::from(([127, 0, 0, 1], number));
                port.begin(&ReceivedDatagram { payload: b"x", peer, local: None }, 0)
            };
            let flows: Vec<_> = (1..=10_000).map(begin).collect();
            let most = port.flows.borrow().capacity();
            flows[1..].iter().for_each(|flow| flow.unbind());
            assert_eq!(port.flows.borrow().len(), 1);
            assert!(port.flows.borrow().capacity() < most / 4);
        })
        .unwrap();
    }
}
