//! How new connections are shared out among the workers of a process.
//!
//! The kernel picks a worker's socket by a hash, which knows nothing of how busy it is; a Unix or
//! inherited socket is one worker's alone. So a worker that clearly has more connections than
//! another hands the new one over. The counts are shared, and touched only when a connection comes
//! or goes.
//!
//! A worker that ends closes first: to count a connection for it and to find it open is one step,
//! so what was handed over before arrives, and nothing is handed over afterwards.

use std::cell::Cell;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::{Mailbox, Sender, Stream, mailbox};

/// A connection as the kernel gave it, not yet any worker's.
pub struct Arrival {
    /// The socket.
    pub fd: OwnedFd,
    /// Who connected; `None` on Unix sockets.
    pub peer: Option<SocketAddr>,
    /// The listening socket it came by, by the number that its owner gave it.
    pub slot: u32,
}

/// A connection that is this worker's.
pub struct Accepted {
    /// The socket.
    pub stream: Stream,
    /// Who connected; `None` on Unix sockets.
    pub peer: Option<SocketAddr>,
    /// The listening socket it came by.
    pub slot: u32,
    /// Its place among the worker's connections: there is room for another when it is dropped.
    pub seat: Seat,
}

/// One worker's part in the sharing out, before its thread has started.
pub struct Ticket {
    own: usize,
    hall: Arc<Hall>,
    handed: Mailbox<Arrival>,
}

/// Shows one worker's new connections to a seat, here or at another worker.
pub struct Usher {
    own: usize,
    hall: Arc<Hall>,
    limit: Cell<usize>,
}

/// A connection's place among those of its worker.
pub struct Seat(Rc<Usher>);

/// Nobody has room for a connection.
pub struct Full {
    /// How many each worker may have.
    pub limit: usize,
    /// The connection.
    pub arrival: Arrival,
}

/// What all workers see.
struct Hall {
    counts: Box<[Count]>,
    doors: Box<[Sender<Arrival>]>,
}

/// Added to the count of a worker that takes no more connections from others.
const CLOSED: usize = 1 << (usize::BITS - 1);

/// One worker's connections, on a cache line of its own.
#[repr(align(128))]
#[derive(Default)]
struct Count(AtomicUsize);

/// A ticket for each of so many workers.
pub fn tickets(workers: usize) -> Vec<Ticket> {
    let (doors, boxes): (Vec<_>, Vec<_>) = (0..workers).map(|_| mailbox()).unzip();
    let counts = (0..workers).map(|_| Count::default()).collect();
    let hall = Arc::new(Hall { counts, doors: doors.into() });
    let ticket = |(own, handed)| Ticket { own, hall: hall.clone(), handed };
    boxes.into_iter().enumerate().map(ticket).collect()
}

impl Ticket {
    /// Begins on the worker's own thread; what other workers hand over arrives in the mailbox.
    pub fn begin(self) -> (Rc<Usher>, Mailbox<Arrival>) {
        let usher = Usher { own: self.own, hall: self.hall, limit: Cell::new(usize::MAX) };
        (Rc::new(usher), self.handed)
    }
}

impl Usher {
    /// How many connections this worker may have.
    pub fn set_limit(&self, limit: usize) {
        self.limit.set(limit);
    }

    /// How many it has, with those that other workers have handed over and have not arrived.
    pub fn taken(&self) -> usize {
        self.count(self.own).load(Relaxed) & !CLOSED
    }

    /// Takes nothing from other workers any more.
    pub fn close(&self) {
        self.count(self.own).fetch_or(CLOSED, Relaxed);
    }

    /// Finds a seat for a connection that this worker accepted: here, or (`None`) elsewhere.
    pub fn seat(self: &Rc<Self>, arrival: Arrival) -> Result<Option<Accepted>, Full> {
        loop {
            let own = self.taken();
            let (least, there) = self.least();
            if there.min(own) >= self.limit.get() {
                return Err(Full { limit: self.limit.get(), arrival });
            }
            if there >= CLOSED || !(is_clearly_more(own + 1, there) || own >= self.limit.get()) {
                self.count(self.own).fetch_add(1, Relaxed);
                return Ok(Some(self.welcome(arrival)));
            }
            let count = self.count(least);
            if count.compare_exchange(there, there + 1, Relaxed, Relaxed).is_ok() {
                self.hall.doors[least].send(arrival);
                return Ok(None);
            }
        }
    }

    /// Takes in a connection that another worker handed over, and has counted.
    pub fn welcome(self: &Rc<Self>, arrival: Arrival) -> Accepted {
        let Arrival { fd, peer, slot } = arrival;
        Accepted { stream: Stream::new(fd), peer, slot, seat: Seat(self.clone()) }
    }

    /// The worker with the fewest connections, and how many.
    fn least(&self) -> (usize, usize) {
        let counts = self.hall.counts.iter().map(|count| count.0.load(Relaxed));
        let least = counts.enumerate().min_by_key(|(_, count)| *count);
        least.unwrap_or((self.own, CLOSED))
    }

    fn count(&self, worker: usize) -> &AtomicUsize {
        &self.hall.counts[worker].0
    }
}

/// Whether a worker has so many more connections than another that handing one over pays: more
/// than one, and more than an eighth.
fn is_clearly_more(own: usize, least: usize) -> bool {
    own > least + (least / 8).max(1)
}

impl Drop for Seat {
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
    fn one_door_for_all_still_seats_four_and_four() {
        let mut workers = tickets(2).into_iter().map(Ticket::begin);
        let ((first, _kept), (second, _box)) = (workers.next().unwrap(), workers.next().unwrap());
        let seats: Vec<_> = (0..8).map(|_| first.seat(arrival()).ok().unwrap()).collect();
        assert_eq!(seats.iter().flatten().count(), 4);
        assert_eq!((first.taken(), second.taken()), (4, 4));
        drop(seats);
        assert_eq!((first.taken(), second.taken()), (0, 4), "those handed over are not ours");
    }

    #[test]
    fn a_worker_that_ends_gets_what_was_handed_over_and_nothing_more() {
        let mut workers = tickets(2).into_iter().map(Ticket::begin);
        let ((first, _kept), (second, _box)) = (workers.next().unwrap(), workers.next().unwrap());
        let one = first.seat(arrival()).ok().unwrap();
        let other = first.seat(arrival()).ok().unwrap();
        assert!(one.is_some() && other.is_none());
        second.close();
        assert_eq!(second.taken(), 1, "it is on its way");
        let seats: Vec<_> = (0..8).map(|_| first.seat(arrival()).ok().unwrap()).collect();
        assert_eq!((seats.iter().flatten().count(), first.taken()), (8, 9));
        drop(second.welcome(arrival()));
        assert_eq!(second.taken(), 0);
    }

    #[test]
    fn small_differences_stay() {
        assert!(!is_clearly_more(1, 0) && is_clearly_more(2, 0));
        assert!(!is_clearly_more(90, 80) && is_clearly_more(91, 80));
    }

    #[test]
    fn a_full_house_closes_the_door() {
        let (usher, _handed) = tickets(1).remove(0).begin();
        usher.set_limit(1);
        let seat = usher.seat(arrival()).ok().unwrap();
        let Err(full) = usher.seat(arrival()) else { panic!("there is no second seat") };
        assert_eq!(full.limit, 1);
        drop(seat);
        assert!(usher.seat(full.arrival).is_ok());
    }
}
