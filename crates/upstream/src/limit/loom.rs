//! Models of the limit that loom runs in every order its threads can take.
//!
//! `RUSTFLAGS="--cfg weir_loom" cargo test -p upstream --lib loom:: --target-dir target/loom`;
//! `cargo xtask check` runs it, too. Not under plain `--cfg loom`, which other crates react to. A
//! lost wake-up shows as a deadlock.
//!
//! Models of two threads are exhaustive. Those of three are bounded to [`PREEMPTIONS`] forced
//! switches, so that they end within seconds, or to as many as `LOOM_MAX_PREEMPTIONS` says.

use std::collections::HashSet;
use std::future::poll_fn;
use std::io;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::SeqCst;
use std::task::{Context, Poll, Waker};

use ::loom::future::block_on;
use ::loom::sync::atomic::AtomicU64;
use ::loom::thread;

use super::*;

const GROUP: u64 = 1;
const PREEMPTIONS: usize = 2;

type Server = Arc<ServerSlots<u32>>;

/// A server, and its slots in use by an independent count.
#[derive(Clone)]
struct CountedServer {
    server: Server,
    in_use: Arc<AtomicU32>,
    most: u32,
}

impl CountedServer {
    fn new(max: u32) -> Self {
        Self { server: WaitQueue::new().slots(b"a", max), in_use: Arc::default(), most: max }
    }

    /// One request from beginning to end; the slot goes back with a handoff.
    fn request(&self) {
        let slot = self.server.try_take().or_else(|| wait(join(&[&self.server])));
        let slot = slot.expect("the server stays");
        self.use_slot();
        let _ = slot.release_with(1);
    }

    fn use_slot(&self) {
        assert!(self.in_use.fetch_add(1, SeqCst) < self.most, "one too many");
        thread::yield_now();
        self.in_use.fetch_sub(1, SeqCst);
    }
}

fn join(servers: &[&Server]) -> Waiter<u32> {
    let servers: Vec<Server> = servers.iter().map(|server| Arc::clone(server)).collect();
    let backlog = Backlog::OfServer(9);
    let request = JoinRequest {
        servers: &servers,
        tried: &[],
        group: GROUP,
        backlog,
        worker: None,
        now_ms: 0,
    };
    servers[0].queue().join(request).expect("there is room")
}

fn wait(mut waiter: Waiter<u32>) -> Option<ServerSlot<u32>> {
    match block_on(poll_fn(|context| waiter.poll(context, 0))) {
        WaiterAnswer::Granted(grant) => Some(grant.slot),
        WaiterAnswer::NoServer => None,
    }
}

fn is_at_rest(server: &Server) {
    assert_eq!((server.in_progress(), server.waiting()), (0, 0));
    let stats = server.queue().stats();
    assert_eq!(stats.waiting, 0);
    assert_eq!(stats.queued, stats.granted + stats.timed_out + stats.abandoned + stats.stranded);
}

/// Runs threads to their end, this one being the last of them.
fn together(mut threads: Vec<Box<dyn FnOnce() + Send>>) {
    let own = threads.pop();
    let others: Vec<_> = threads.into_iter().map(thread::spawn).collect();
    if let Some(own) = own {
        own();
    }
    others.into_iter().for_each(|other| other.join().expect("no thread panics"));
}

fn bounded(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = ::loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(PREEMPTIONS));
    builder.check(model);
}

#[test]
fn three_that_only_try_never_exceed_two() {
    bounded(|| {
        let watched = CountedServer::new(2);
        let attempt = |watched: CountedServer| {
            move || {
                if let Some(slot) = watched.server.try_take() {
                    watched.use_slot();
                    drop(slot);
                }
            }
        };
        let each = || Box::new(attempt(watched.clone())) as Box<dyn FnOnce() + Send>;
        together(vec![each(), each(), each()]);
        is_at_rest(&watched.server);
    });
}

#[test]
fn a_release_and_a_joining_never_miss_each_other() {
    ::loom::model(|| {
        let watched = CountedServer::new(1);
        let (one, two) = (watched.clone(), watched.clone());
        together(vec![Box::new(move || one.request()), Box::new(move || two.request())]);
        is_at_rest(&watched.server);
    });
}

#[test]
fn three_requests_share_one_slot() {
    bounded(|| {
        let watched = CountedServer::new(1);
        let each = || {
            let watched = watched.clone();
            Box::new(move || watched.request()) as Box<dyn FnOnce() + Send>
        };
        together(vec![each(), each(), each()]);
        is_at_rest(&watched.server);
    });
}

#[test]
fn a_grant_to_a_waiter_that_leaves_reaches_the_next() {
    bounded(|| {
        let watched = CountedServer::new(1);
        let slot = watched.server.try_take().expect("nobody has it");
        let (leaving, waiting) = (join(&[&watched.server]), join(&[&watched.server]));
        together(vec![
            Box::new(move || {
                let _ = slot.release_with(1);
            }),
            Box::new(move || drop(leaving)),
            Box::new(move || assert!(wait(waiting).is_some())),
        ]);
        is_at_rest(&watched.server);
    });
}

#[test]
fn giving_up_keeps_or_frees_a_grant_of_the_same_moment() {
    ::loom::model(|| {
        let watched = CountedServer::new(1);
        let slot = watched.server.try_take().expect("nobody has it");
        let waiter = join(&[&watched.server]);
        together(vec![Box::new(move || drop(slot)), Box::new(move || drop(waiter.give_up(0)))]);
        is_at_rest(&watched.server);
    });
}

#[test]
fn a_waiter_for_either_gets_one_of_two_released_at_once() {
    bounded(|| {
        let queue = WaitQueue::new();
        let (a, b) = (queue.slots(b"a", 1), queue.slots(b"b", 1));
        let (of_a, of_b) = (a.try_take(), b.try_take());
        let either = join(&[&a, &b]);
        together(vec![
            Box::new(move || drop(of_a)),
            Box::new(move || drop(of_b)),
            Box::new(move || assert!(wait(either).is_some())),
        ]);
        is_at_rest(&a);
        is_at_rest(&b);
    });
}

#[test]
fn a_raised_maximum_serves_waiters() {
    ::loom::model(|| {
        let watched = CountedServer::new(0);
        let server = Arc::clone(&watched.server);
        let waiting = Arc::clone(&watched.server);
        together(vec![
            Box::new(move || server.set_max(1)),
            Box::new(move || drop(wait(join(&[&waiting])))),
        ]);
        is_at_rest(&watched.server);
    });
}

#[test]
fn a_lowered_maximum_holds_from_then_on() {
    ::loom::model(|| {
        let watched = CountedServer::new(1);
        let (lowered, taken) = (Arc::clone(&watched.server), Arc::clone(&watched.server));
        together(vec![
            Box::new(move || {
                lowered.set_max(0);
                if lowered.in_progress() == 0 {
                    assert!(lowered.try_take().is_none());
                }
            }),
            Box::new(move || drop(taken.try_take())),
        ]);
        is_at_rest(&watched.server);
        assert!(watched.server.try_take().is_none());
    });
}

#[test]
fn a_server_withdrawn_while_released_serves_or_ends_the_wait() {
    ::loom::model(|| {
        let watched = CountedServer::new(1);
        let slot = watched.server.try_take().expect("nobody has it");
        let waiter = join(&[&watched.server]);
        let server = Arc::clone(&watched.server);
        together(vec![
            Box::new(move || drop(slot)),
            Box::new(move || server.withdraw(GROUP)),
            Box::new(move || drop(wait(waiter))),
        ]);
        is_at_rest(&watched.server);
    });
}

#[test]
fn an_admitted_server_that_is_released_serves_waiters() {
    bounded(|| {
        let queue = WaitQueue::new();
        let (a, b) = (queue.slots(b"a", 0), queue.slots(b"b", 1));
        let (slot, admitted) = (b.try_take(), Arc::clone(&b));
        let waiter = join(&[&a]);
        together(vec![
            Box::new(move || drop(slot)),
            Box::new(move || admitted.admit(GROUP)),
            Box::new(move || assert!(wait(waiter).is_some())),
        ]);
        is_at_rest(&b);
    });
}

/// Stands in for memory that processes share: loom's atomics are not plain words.
#[derive(Clone)]
pub(super) struct SharedWords {
    words: Arc<Vec<AtomicU64>>,
    locks: Arc<std::sync::Mutex<HashSet<usize>>>,
}

impl SharedWords {
    fn new() -> Self {
        let words = (0..layout::ALL).map(|_| AtomicU64::new(0)).collect::<Vec<_>>();
        Self { words: Arc::new(words), locks: Arc::default() }
    }

    pub(super) fn try_lock(&self, number: usize) -> io::Result<bool> {
        Ok(self.locks.lock().expect("nobody panics").insert(number))
    }

    pub(super) fn unlock(&self, number: usize) -> io::Result<()> {
        self.locks.lock().expect("nobody panics").remove(&number);
        Ok(())
    }
}

impl Deref for SharedWords {
    type Target = [AtomicU64];

    fn deref(&self) -> &[AtomicU64] {
        &self.words
    }
}

/// The server as a process sees it that registers now.
fn of_process(words: &SharedWords, watched: &Arc<AtomicU32>, max: u32) -> CountedServer {
    let table = SharedTable::join_words(words.clone(), || 0).expect("there is room");
    table.serve();
    let server = WaitQueue::shared(b"queue", &table).slots(b"a", max);
    CountedServer { server, in_use: watched.clone(), most: max }
}

fn two_processes(max: u32) -> [CountedServer; 2] {
    let (words, in_use) = (SharedWords::new(), Arc::default());
    [of_process(&words, &in_use, max), of_process(&words, &in_use, max)]
}

impl CountedServer {
    fn try_once(&self) -> bool {
        let slot = self.server.try_take();
        slot.is_some_and(|_slot| {
            self.use_slot();
            true
        })
    }

    /// Waits for a slot that the other process may free.
    fn wait_and_look(&self) {
        let mut waiter = join(&[&self.server]);
        loop {
            match waiter.poll(&mut Context::from_waker(Waker::noop()), 0) {
                Poll::Ready(WaiterAnswer::Granted(grant)) => {
                    self.use_slot();
                    return drop(grant);
                }
                Poll::Ready(WaiterAnswer::NoServer) => panic!("the server stays"),
                Poll::Pending => _ = self.server.queue().settle_all(),
            }
            thread::yield_now();
        }
    }
}

#[test]
fn two_processes_never_use_one_slot_both() {
    ::loom::model(|| {
        let [one, two] = two_processes(1);
        let all = [one.clone(), two.clone()];
        together(vec![Box::new(move || _ = one.try_once()), Box::new(move || _ = two.try_once())]);
        all.iter().for_each(|watched| is_at_rest(&watched.server));
        assert!(all.iter().all(CountedServer::try_once), "one after the other");
    });
}

#[test]
fn a_process_that_comes_sees_what_the_first_has() {
    ::loom::model(|| {
        let (words, in_use) = (SharedWords::new(), Arc::default());
        let one = of_process(&words, &in_use, 1);
        let second = one.clone();
        let comes = move || {
            let two = of_process(&words, &in_use, 1);
            two.try_once();
            is_at_rest(&two.server);
        };
        together(vec![Box::new(comes), Box::new(move || _ = one.try_once())]);
        assert!(second.try_once());
    });
}

#[test]
fn workers_of_two_processes_never_use_more_than_two_slots() {
    bounded(|| {
        let [one, two] = two_processes(2);
        let third = two.clone();
        let each = |watched: CountedServer| Box::new(move || _ = watched.try_once()) as Box<_>;
        together(vec![each(one.clone()), each(two), each(third)]);
        is_at_rest(&one.server);
    });
}

#[test]
fn a_waiter_gets_a_slot_that_another_process_frees() {
    bounded(|| {
        let [one, two] = two_processes(1);
        let slot = one.server.try_take().expect("nobody has it");
        let all = [one.clone(), two.clone()];
        together(vec![Box::new(move || drop(slot)), Box::new(move || two.wait_and_look())]);
        all.iter().for_each(|watched| is_at_rest(&watched.server));
    });
}

#[test]
fn a_waiter_in_each_of_two_processes_is_served() {
    bounded(|| {
        let [one, two] = two_processes(1);
        let all = [one.clone(), two.clone()];
        together(vec![
            Box::new(move || one.wait_and_look()),
            Box::new(move || two.wait_and_look()),
        ]);
        all.iter().for_each(|watched| is_at_rest(&watched.server));
    });
}
