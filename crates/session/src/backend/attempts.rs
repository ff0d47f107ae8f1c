//! The servers that a session has tried, for variables and for log lines.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use net::Address;
use upstream::Server;

/// The servers tried, in order.
#[derive(Default)]
pub struct Attempts {
    tried: RefCell<Vec<Rc<UpstreamAttempt>>>,
    /// Memory for the next one.
    spare: Cell<Option<Rc<UpstreamAttempt>>>,
}

/// One server, tried once. Times are in milliseconds since its beginning.
pub struct UpstreamAttempt {
    /// The server; `Err`: the name of the group, which had no server available.
    pub server: Result<Arc<Server>, Box<[u8]>>,
    /// Whether it was for another resource than the previous attempt.
    pub anew: bool,
    /// When it began, by the worker's clock.
    pub begun_ms: u64,
    /// The status of the reply, or the one that is reported for a failure; 0: none yet.
    pub status: Cell<u16>,
    /// When the connection was established.
    pub connect_ms: Cell<Option<u64>>,
    /// When the head of the reply was complete; without heads, when the first byte arrived.
    pub header_ms: Cell<Option<u64>>,
    /// When it ended.
    pub response_ms: Cell<Option<u64>>,
    /// How long the session waited for a server before.
    pub queue_ms: Cell<Option<u64>>,
    /// Bytes sent to it.
    pub bytes_sent: Cell<u64>,
    /// Bytes received from it.
    pub bytes_received: Cell<u64>,
    /// The same without the reply's head.
    pub response_length: Cell<u64>,
    precise: Cell<PreciseTimes>,
    is_retry: bool,
    /// Whether its connection had served another session before.
    pub is_reused: Cell<bool>,
}

/// The times in nanoseconds: the beginning by the worker's clock, the rest since then; 0: not yet.
#[derive(Clone, Copy, Default)]
struct PreciseTimes {
    begun: u64,
    connect: u64,
    header: u64,
    response: u64,
}

impl UpstreamAttempt {
    fn new(server: Result<Arc<Server>, Box<[u8]>>, anew: bool, is_retry: bool) -> Self {
        Self {
            server,
            anew,
            begun_ms: net::clock::now_ms(),
            status: Cell::new(0),
            connect_ms: Cell::new(None),
            header_ms: Cell::new(None),
            response_ms: Cell::new(None),
            queue_ms: Cell::new(None),
            bytes_sent: Cell::new(0),
            bytes_received: Cell::new(0),
            response_length: Cell::new(0),
            precise: Cell::new(PreciseTimes { begun: net::clock::turn_ns(), ..Default::default() }),
            is_retry,
            is_reused: Cell::new(false),
        }
    }

    /// The server's address, or the group's name, as variables and log lines write it.
    pub fn name(&self) -> &[u8] {
        match &self.server {
            Ok(server) => server.name(),
            Err(group) => group,
        }
    }

    /// Whether the name is the path of a Unix socket, after which a colon separates other text.
    pub fn is_unix(&self) -> bool {
        matches!(&self.server, Ok(server) if matches!(server.address(), Address::Unix(_)))
    }

    /// Milliseconds since it began.
    pub fn age_ms(&self) -> u64 {
        net::clock::now_ms() - self.begun_ms
    }

    /// Records that the connection is established.
    pub fn connected(&self) {
        self.connect_ms.set(Some(self.age_ms()));
        self.precise.update(|times| PreciseTimes { connect: times.age(), ..times });
    }

    /// Records that the head of the reply is complete; without heads, that the first byte arrived.
    pub fn head_arrived(&self) {
        self.header_ms.set(Some(self.age_ms()));
        self.precise.update(|times| PreciseTimes { header: times.age(), ..times });
    }

    /// Records that the first byte arrived so long after the beginning.
    pub fn answered_after(&self, ms: u64) {
        self.header_ms.set(Some(ms));
        self.precise.update(|times| PreciseTimes { header: (ms * 1_000_000).max(1), ..times });
    }

    /// Records the end, unless that was done before.
    pub fn end(&self) {
        if self.response_ms.get().is_none() {
            self.response_ms.set(Some(self.age_ms()));
            self.precise.update(|times| PreciseTimes { response: times.age(), ..times });
        }
    }

    /// Adds it to what its server has done.
    #[cold]
    fn count(&self) {
        let Ok(server) = &self.server else { return };
        let (counters, times) = (server.counters().own(), self.precise.get());
        if times.header > 0 && self.status.get() != 0 {
            counters.statuses().add(self.status.get());
        }
        counters.sent().add(self.bytes_sent.get());
        counters.received().add(self.bytes_received.get());
        counters.retries().add(self.is_retry.into());
        for (histogram, time) in [
            (counters.connect(), times.connect),
            (counters.header(), times.header),
            (counters.response(), times.response),
        ] {
            if time > 0 {
                histogram.record(time);
            }
        }
        if let Some(queue_ms) = self.queue_ms.get() {
            counters.queue().record(queue_ms * 1_000_000);
        }
        if times.connect > 0 {
            let connections =
                if self.is_reused.get() { counters.reused() } else { counters.opened() };
            connections.add(1);
        }
    }
}

impl PreciseTimes {
    /// Nanoseconds since the beginning: at least one, because 0 stands for none.
    fn age(self) -> u64 {
        net::clock::turn_ns().saturating_sub(self.begun).max(1)
    }
}

impl Attempts {
    /// Begins an attempt; `anew`: for another resource than the one before.
    pub fn begin(&self, server: Result<Arc<Server>, Box<[u8]>>, anew: bool) -> Rc<UpstreamAttempt> {
        let mut tried = self.tried.borrow_mut();
        if metrics::are_wanted()
            && let Ok(server) = &server
        {
            let counters = server.counters().own();
            counters.chosen().add(1);
            counters.chosen_ms().set(net::clock::unix_ms());
        }
        let is_retry = !anew && !tried.is_empty();
        let attempt = UpstreamAttempt::new(server, anew && !tried.is_empty(), is_retry);
        let begun = match self.spare.take() {
            Some(mut spare) => {
                *Rc::get_mut(&mut spare).expect("nobody else has it") = attempt;
                spare
            }
            None => Rc::new(attempt),
        };
        tried.push(begun.clone());
        begun
    }

    /// The server tried last.
    pub fn last(&self) -> Option<Rc<UpstreamAttempt>> {
        self.tried.borrow().last().cloned()
    }

    /// The bytes that all servers have sent.
    pub fn bytes_received(&self) -> u64 {
        self.tried.borrow().iter().map(|attempt| attempt.bytes_received.get()).sum()
    }

    /// Forgets them, keeping the memory.
    pub fn clear(&mut self) {
        self.count();
        let tried = self.tried.get_mut();
        if let Some(last) = tried.pop().filter(|last| Rc::strong_count(last) == 1) {
            self.spare.set(Some(last));
        }
        tried.clear();
    }

    fn count(&mut self) {
        if metrics::are_wanted() {
            self.tried.get_mut().iter().for_each(|attempt| attempt.count());
        }
    }

    /// How much memory the list takes.
    pub fn memory(&self) -> usize {
        self.tried.borrow().capacity() * size_of::<Rc<UpstreamAttempt>>()
            + size_of::<UpstreamAttempt>()
    }

    /// Calls `look` for each server tried, in order.
    pub fn for_each(&self, mut look: impl FnMut(&UpstreamAttempt)) {
        self.tried.borrow().iter().for_each(|one| look(one));
    }

    /// Calls `write` for each server tried, with nginx's separators in between. False if there is
    /// none.
    pub fn each(
        &self,
        out: &mut Vec<u8>,
        mut write: impl FnMut(&UpstreamAttempt, &mut Vec<u8>),
    ) -> bool {
        let tried = self.tried.borrow();
        for (at, one) in tried.iter().enumerate() {
            if at > 0 {
                out.extend_from_slice(if one.anew { b" : " } else { b", " });
            }
            write(one, out);
        }
        !tried.is_empty()
    }
}

impl Drop for Attempts {
    fn drop(&mut self) {
        self.count();
    }
}
