//! Balances new connections over the workers of a process.
//!
//! The kernel picks a worker's socket by a hash and ignores how busy the worker is; a Unix or
//! inherited socket belongs to a single worker. A worker that has clearly more connections than
//! another therefore hands a new one over. The counts are shared, and change only when a connection
//! opens or closes.
//!
//! A worker closes its count before it ends. Counting a connection for a worker and checking that
//! it is still open is one atomic step, so every connection handed over before arrives, and none
//! is handed over later.

use std::cell::Cell;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::{Mailbox, MailboxSender, Stream, mailbox};

/// A connection from the kernel that has no worker yet.
pub struct Arrival {
    pub fd: OwnedFd,
    /// The client's address; `None` on Unix sockets.
    pub peer: Option<SocketAddr>,
    /// The index of the listening socket, assigned by its owner.
    pub slot: u32,
}

/// A connection assigned to this worker.
pub struct Accepted {
    pub stream: Stream,
    /// The client's address; `None` on Unix sockets.
    pub peer: Option<SocketAddr>,
    /// The index of the listening socket.
    pub slot: u32,
    /// Counts the connection as one of the worker's until dropped.
    pub permit: ConnectionPermit,
}

/// One worker's balancer before its thread has started.
pub struct BalancerHandle {
    own: usize,
    all: Arc<AllWorkers>,
    handed: Mailbox<Arrival>,
}

/// Assigns a new connection to this worker or to the least loaded one.
pub struct AcceptBalancer {
    own: usize,
    all: Arc<AllWorkers>,
    limit: Cell<usize>,
}

/// Counts one connection of a worker; dropping it makes room for another.
pub struct ConnectionPermit(Rc<AcceptBalancer>);

/// Every worker is at its limit.
pub struct AllFull {
    /// Maximum number of connections of each worker.
    pub limit: usize,
    pub arrival: Arrival,
}

/// State shared by all workers.
struct AllWorkers {
    counts: Box<[WorkerCount]>,
    senders: Box<[MailboxSender<Arrival>]>,
}

/// Added to the count of a worker that accepts no more connections from others.
const CLOSED: usize = 1 << (usize::BITS - 1);

/// One worker's connections, on a cache line of its own.
#[repr(align(128))]
#[derive(Default)]
struct WorkerCount(AtomicUsize);

pub fn balancer_handles(workers: usize) -> Vec<BalancerHandle> {
    let (senders, boxes): (Vec<_>, Vec<_>) = (0..workers).map(|_| mailbox()).unzip();
    let counts = (0..workers).map(|_| WorkerCount::default()).collect();
    let all = Arc::new(AllWorkers { counts, senders: senders.into() });
    let handle = |(own, handed)| BalancerHandle { own, all: all.clone(), handed };
    boxes.into_iter().enumerate().map(handle).collect()
}

impl BalancerHandle {
    /// Starts on the worker's own thread; connections from other workers arrive in the mailbox.
    pub fn begin(self) -> (Rc<AcceptBalancer>, Mailbox<Arrival>) {
        let balancer =
            AcceptBalancer { own: self.own, all: self.all, limit: Cell::new(usize::MAX) };
        (Rc::new(balancer), self.handed)
    }
}

impl AcceptBalancer {
    /// Sets the maximum number of this worker's connections.
    pub fn set_limit(&self, limit: usize) {
        self.limit.set(limit);
    }

    /// The number of this worker's connections, including those on their way from other workers.
    pub fn taken(&self) -> usize {
        self.count(self.own).load(Relaxed) & !CLOSED
    }

    /// Accepts no more connections from other workers.
    pub fn close(&self) {
        self.count(self.own).fetch_or(CLOSED, Relaxed);
    }

    /// Assigns a connection that this worker accepted: to itself, or (`None`) to another worker.
    pub fn assign(self: &Rc<Self>, arrival: Arrival) -> Result<Option<Accepted>, AllFull> {
        loop {
            let own = self.taken();
            let (least, there) = self.least();
            if there.min(own) >= self.limit.get() {
                return Err(AllFull { limit: self.limit.get(), arrival });
            }
            if there >= CLOSED || !(is_clearly_more(own + 1, there) || own >= self.limit.get()) {
                self.count(self.own).fetch_add(1, Relaxed);
                return Ok(Some(self.adopt(arrival)));
            }
            let count = self.count(least);
            if count.compare_exchange(there, there + 1, Relaxed, Relaxed).is_ok() {
                self.all.senders[least].send(arrival);
                return Ok(None);
            }
        }
    }

    /// Counts a session that cannot be handed over; `None`: this worker is at its limit.
    pub fn assign_own(self: &Rc<Self>) -> Option<ConnectionPermit> {
        let room = self.taken() < self.limit.get();
        room.then(|| {
            self.count(self.own).fetch_add(1, Relaxed);
            ConnectionPermit(self.clone())
        })
    }

    /// Takes over a connection that another worker has assigned to this one and counted.
    pub fn adopt(self: &Rc<Self>, arrival: Arrival) -> Accepted {
        let Arrival { fd, peer, slot } = arrival;
        Accepted { stream: Stream::new(fd), peer, slot, permit: ConnectionPermit(self.clone()) }
    }

    /// The worker with the fewest connections, and their number.
    fn least(&self) -> (usize, usize) {
        let counts = self.all.counts.iter().map(|count| count.0.load(Relaxed));
        let least = counts.enumerate().min_by_key(|(_, count)| *count);
        least.unwrap_or((self.own, CLOSED))
    }

    fn count(&self, worker: usize) -> &AtomicUsize {
        &self.all.counts[worker].0
    }
}

/// Whether a worker has enough more connections than another to hand one over: more than one, and
/// more than an eighth.
fn is_clearly_more(own: usize, least: usize) -> bool {
    own > least + (least / 8).max(1)
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.0.count(self.0.own).fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    fn arrival() -> Arrival {
        Arrival { fd: UnixStream::pair().unwrap().0.into(), peer: None, slot: 0 }
    }

    #[test]
    fn eight_connections_of_one_socket_are_split_in_halves() {
        let mut workers = balancer_handles(2).into_iter().map(BalancerHandle::begin);
        let ((first, _kept), (second, _box)) = (workers.next().unwrap(), workers.next().unwrap());
        let assigned: Vec<_> = (0..8).map(|_| first.assign(arrival()).ok().unwrap()).collect();
        assert_eq!(assigned.iter().flatten().count(), 4);
        assert_eq!((first.taken(), second.taken()), (4, 4));
        drop(assigned);
        assert_eq!((first.taken(), second.taken()), (0, 4), "those handed over are not ours");
    }

    #[test]
    fn a_closed_worker_gets_no_more_connections() {
        let mut workers = balancer_handles(2).into_iter().map(BalancerHandle::begin);
        let ((first, _kept), (second, _box)) = (workers.next().unwrap(), workers.next().unwrap());
        let one = first.assign(arrival()).ok().unwrap();
        let other = first.assign(arrival()).ok().unwrap();
        assert!(one.is_some() && other.is_none());
        second.close();
        assert_eq!(second.taken(), 1, "it is on its way");
        let assigned: Vec<_> = (0..8).map(|_| first.assign(arrival()).ok().unwrap()).collect();
        assert_eq!((assigned.iter().flatten().count(), first.taken()), (8, 9));
        drop(second.adopt(arrival()));
        assert_eq!(second.taken(), 0);
    }

    #[test]
    fn small_differences_are_not_balanced() {
        assert!(!is_clearly_more(1, 0) && is_clearly_more(2, 0));
        assert!(!is_clearly_more(90, 80) && is_clearly_more(91, 80));
    }

    #[test]
    fn a_worker_at_its_limit_refuses_connections() {
        let (balancer, _handed) = balancer_handles(1).remove(0).begin();
        balancer.set_limit(1);
        let permit = balancer.assign(arrival()).ok().unwrap();
        let Err(full) = balancer.assign(arrival()) else { panic!("there is no second permit") };
        assert_eq!(full.limit, 1);
        assert!(balancer.assign_own().is_none());
        drop(permit);
        let own = balancer.assign_own();
        assert!(own.is_some() && balancer.taken() == 1);
        drop(own);
        assert!(balancer.assign(full.arrival).is_ok());
    }
}
