//! Real threads, many requests, few slots: counted exactly.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::SeqCst;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use super::*;

const WORKERS: u64 = 8;
const REQUESTS: u64 = 4000;
/// The slots of each server; all together fewer than there are workers.
const MAXIMA: [u32; 3] = [1, 1, 3];
/// A test that waits longer has lost a wake-up.
const PATIENCE: Duration = Duration::from_secs(20);

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// The results of the requests of one worker.
#[derive(Debug, Default)]
struct Sums {
    at_once: u64,
    waited: u64,
    gave_up: u64,
    left: u64,
    rejected: u64,
}

struct WorkerThread<'a> {
    servers: &'a [Arc<ServerSlots<usize>>],
    in_use: &'a [AtomicU32],
    random: u64,
    sums: Sums,
}

#[test]
fn many_threads_share_few_slots_exactly() {
    let queue = WaitQueue::new();
    let servers: Vec<_> =
        MAXIMA.iter().zip(0u8..).map(|(max, name)| queue.slots(&[name], *max)).collect();
    let in_use: [AtomicU32; MAXIMA.len()] = Default::default();
    let sums: Vec<Sums> = thread::scope(|scope| {
        let begin = |number: u64| {
            let (servers, in_use) = (&servers, &in_use);
            scope.spawn(move || {
                let random = number * 7919 + 1;
                WorkerThread { servers, in_use, random, sums: Sums::default() }.run()
            })
        };
        let workers: Vec<_> = (0..WORKERS).map(begin).collect();
        workers.into_iter().map(|worker| worker.join().expect("no worker panics")).collect()
    });
    check(&queue, &servers, &sums);
}

fn check(queue: &Arc<WaitQueue<usize>>, servers: &[Arc<ServerSlots<usize>>], sums: &[Sums]) {
    let sum = |of: fn(&Sums) -> u64| sums.iter().map(of).sum::<u64>();
    let stats = queue.stats();
    assert_eq!((stats.in_progress, stats.waiting), (0, 0));
    assert!(servers.iter().all(|slots| slots.waiting() == 0 && slots.in_progress() == 0));
    assert_eq!((stats.granted, stats.timed_out), (sum(|s| s.waited), sum(|s| s.gave_up)));
    assert_eq!((stats.abandoned, stats.rejected), (sum(|s| s.left), sum(|s| s.rejected)));
    assert_eq!(stats.queued, stats.granted + stats.timed_out + stats.abandoned);
    let all = sum(|s| s.at_once) + stats.queued + stats.rejected;
    assert_eq!(all, WORKERS * REQUESTS);
    assert!(stats.granted > 0 && sum(|s| s.at_once) > 0, "{stats:?}");
    let of_servers: u64 = servers.iter().map(|slots| slots.stats().queued).sum();
    assert_eq!(of_servers, stats.queued);
}

impl WorkerThread<'_> {
    fn run(mut self) -> Sums {
        for _ in 0..REQUESTS {
            self.request();
        }
        self.sums
    }

    fn request(&mut self) {
        let first = self.below(3) as usize;
        let last = first + 1 + self.below((MAXIMA.len() - first) as u64) as usize;
        let servers = &self.servers[first..last];
        if let Some(slot) = servers.iter().find_map(ServerSlots::try_take) {
            self.sums.at_once += 1;
            return self.serve(slot);
        }
        let backlog = Backlog::OfServer(3);
        let request =
            JoinRequest { servers, tried: &[], group: 0, backlog, worker: None, now_ms: 0 };
        match servers[0].queue().join(request) {
            Ok(waiter) => self.wait(waiter),
            Err(QueueFull) => self.sums.rejected += 1,
        }
    }

    fn wait(&mut self, mut waiter: Waiter<usize>) {
        let queued = waiter.position() > 0;
        match self.below(10) {
            0 if queued => {
                self.sums.left += 1;
                drop(waiter);
            }
            1 if queued => match waiter.give_up(0) {
                Some(grant) => self.granted(grant, queued),
                None => self.sums.gave_up += 1,
            },
            _ => {
                let grant = block_on(&mut waiter);
                self.granted(grant, queued);
            }
        }
    }

    fn granted(&mut self, grant: Grant<usize>, queued: bool) {
        match queued {
            true => self.sums.waited += 1,
            false => self.sums.at_once += 1,
        }
        if let Some(handoff) = grant.handoff {
            assert!(
                Arc::ptr_eq(&self.servers[handoff], grant.slot.slots()),
                "another server's handoff"
            );
        }
        self.serve(grant.slot);
    }

    fn serve(&mut self, slot: ServerSlot<usize>) {
        let same = |other: &Arc<ServerSlots<usize>>| Arc::ptr_eq(other, slot.slots());
        let server = self.servers.iter().position(same).expect("it is one of them");
        assert!(self.in_use[server].fetch_add(1, SeqCst) < MAXIMA[server], "one too many");
        if self.below(4) == 0 {
            thread::yield_now();
        }
        self.in_use[server].fetch_sub(1, SeqCst);
        match self.below(2) {
            0 => drop(slot),
            _ => {
                let _ = slot.release_with(server);
            }
        }
    }

    /// xorshift64.
    fn below(&mut self, bound: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % bound
    }
}

fn block_on(waiter: &mut Waiter<usize>) -> Grant<usize> {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let begin = Instant::now();
    loop {
        match waiter.poll(&mut Context::from_waker(&waker), 0) {
            Poll::Ready(WaiterAnswer::Granted(grant)) => return grant,
            Poll::Ready(WaiterAnswer::NoServer) => panic!("the servers stay"),
            Poll::Pending => thread::park_timeout(PATIENCE),
        }
        assert!(begin.elapsed() < PATIENCE, "nobody woke it");
    }
}

/// Threads of several processes, which try or wait; each process serves its own waiters.
#[test]
fn many_threads_of_several_processes_share_few_slots_exactly() {
    const PROCESSES: usize = 3;
    const THREADS: usize = 3;
    const MAX: u32 = 2;
    let file = SharedTable::create().expect("memory");
    let (in_use, served) = (AtomicU32::new(0), AtomicU32::new(0));
    let use_slot = |slot: ServerSlot<()>| {
        assert!(in_use.fetch_add(1, SeqCst) < MAX, "one too many");
        thread::yield_now();
        in_use.fetch_sub(1, SeqCst);
        served.fetch_add(1, SeqCst);
        drop(slot);
    };
    let tables = || SharedTable::join(file.as_fd(), || 0).expect("there is room");
    let tables: Vec<_> = (0..PROCESSES).map(|_| tables()).collect();
    let all: Vec<_> =
        tables.iter().map(|table| WaitQueue::shared(b"queue", table).slots(b"a", MAX)).collect();
    let request = |server: &Arc<ServerSlots<()>>| match server.try_take() {
        Some(slot) => use_slot(slot),
        None => use_slot(wait_and_look(server)),
    };
    thread::scope(|scope| {
        for server in all.iter().flat_map(|server| [server; THREADS]) {
            scope.spawn(|| (0..REQUESTS / 4).for_each(|_| request(server)));
        }
    });
    assert_eq!(u64::from(served.into_inner()), (PROCESSES * THREADS) as u64 * (REQUESTS / 4));
    assert!(all.iter().all(|server| server.in_progress() == 0 && server.waiting() == 0));
}

fn wait_and_look(server: &Arc<ServerSlots<()>>) -> ServerSlot<()> {
    let servers = std::slice::from_ref(server);
    let backlog = Backlog::OfServer(1000);
    let request = JoinRequest { servers, tried: &[], group: 0, backlog, worker: None, now_ms: 0 };
    let mut waiter = server.queue().join(request).expect("there is room");
    let begin = Instant::now();
    loop {
        match waiter.poll(&mut Context::from_waker(Waker::noop()), 0) {
            Poll::Ready(WaiterAnswer::Granted(grant)) => return grant.slot,
            Poll::Ready(WaiterAnswer::NoServer) => panic!("the server stays"),
            Poll::Pending => _ = server.queue().settle_all(),
        }
        assert!(begin.elapsed() < PATIENCE, "its turn never comes");
        thread::yield_now();
    }
}
