//! Several processes that share one limit. They start with maxima of their own, serve, leave, hang
//! and are killed at any moment, while requests arrive, wait, leave and end. All of it is random
//! and repeatable by its seed. Memory and locks are those that real processes use.

use std::cell::Cell;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use net::SharedWords;

use super::super::*;
use super::SplitMix;

const SEEDS: u64 = 300;
const SEEDS_MANY: u64 = 5_000;
const STEPS: usize = 300;
const PROCESSES: usize = 5;
const SERVERS: usize = 3;
const REQUESTS_MAX: usize = 12;

thread_local! {
    static NOW_MS: Cell<u64> = const { Cell::new(0) };
}

fn clock() -> u64 {
    NOW_MS.get()
}

struct Process {
    /// Larger than that of every earlier process.
    epoch: u64,
    maxima: [u32; SERVERS],
    table: Arc<SharedTable>,
    servers: Vec<Arc<ServerSlots<()>>>,
    served: Vec<(usize, ServerSlot<()>)>,
    waiting: Vec<Waiter<()>>,
    /// Whether it is suspended, perhaps forever.
    hangs: bool,
    /// Whether it accepts no more requests.
    leaves: bool,
}

/// A killed process that is not cleared yet: its number in the table, its epoch and maxima.
struct Killed {
    number: usize,
    epoch: u64,
    maxima: [u32; SERVERS],
}

struct ProcessWorld {
    random: SplitMix,
    file: OwnedFd,
    /// The table, not registered as any process.
    words: SharedWords,
    processes: Vec<Process>,
    killed: Vec<Killed>,
    last_epoch: u64,
    /// The requests in progress before the step.
    before: [u32; SERVERS],
}

impl Process {
    fn start(file: &OwnedFd, epoch: u64, maxima: [u32; SERVERS]) -> Self {
        let table = SharedTable::join(file.as_fd(), clock).expect("there is room");
        let queue = WaitQueue::shared(b"queue", &table);
        let servers = (0..SERVERS).map(|server| queue.slots(&[server as u8], maxima[server]));
        let servers = servers.collect();
        table.serve();
        let (served, waiting) = (Vec::new(), Vec::new());
        Self { epoch, maxima, table, servers, served, waiting, hangs: false, leaves: false }
    }

    fn in_progress(&self, server: usize) -> u32 {
        self.served.iter().filter(|(of, _)| *of == server).count() as u32
    }

    fn try_take(&mut self, server: usize) -> bool {
        let slot = self.servers[server].try_take();
        let taken = slot.is_some();
        self.served.extend(slot.map(|slot| (server, slot)));
        taken
    }

    /// Waits for one server, or for all from it on.
    fn join(&mut self, first: usize, all: bool) {
        let last = if all { SERVERS } else { first + 1 };
        let servers = &self.servers[first..last];
        let backlog = Backlog::OfQueue(100);
        let request =
            JoinRequest { servers, tried: &[], group: 0, backlog, worker: None, now_ms: 0 };
        self.waiting.extend(servers[0].queue().join(request));
        self.poll();
    }

    /// Takes the slots granted to waiting requests. Returns how many.
    fn poll(&mut self) -> usize {
        let before = self.served.len();
        let (servers, served) = (&self.servers, &mut self.served);
        self.waiting.retain_mut(|waiter| {
            match waiter.poll(&mut Context::from_waker(Waker::noop()), 0) {
                Poll::Pending => true,
                Poll::Ready(WaiterAnswer::NoServer) => panic!("the servers stay"),
                Poll::Ready(WaiterAnswer::Granted(Grant { slot, .. })) => {
                    let same = |known: &Arc<ServerSlots<()>>| Arc::ptr_eq(known, slot.slots());
                    let server = servers.iter().position(same).expect("it is one of them");
                    served.push((server, slot));
                    false
                }
            }
        });
        self.served.len() - before
    }

    fn finish(&mut self, index: usize) {
        drop(self.served.swap_remove(index));
        self.poll();
    }

    fn tick(&mut self) -> usize {
        let queue = Arc::clone(self.servers[0].queue());
        self.table.tick(|| queue.settle_all());
        self.poll()
    }
}

impl ProcessWorld {
    fn new(seed: u64) -> Self {
        NOW_MS.set(1_000_000);
        let file = SharedTable::create().expect("memory");
        let words = SharedWords::map(file.as_fd(), layout::ALL).expect("the table");
        let (processes, killed) = (Vec::new(), Vec::new());
        let random = SplitMix(seed);
        Self { random, file, words, processes, killed, last_epoch: 0, before: [0; SERVERS] }
    }

    fn step(&mut self) {
        self.before = self.in_progress();
        match self.random.below(100) {
            0..40 => self.arrive(),
            40..70 => self.finish(),
            70..74 => self.cancel(),
            74..90 => self.pass_time(),
            90..92 => self.change_a_maximum(),
            92..95 => self.start(),
            95..97 => self.hang_or_go_on(),
            97..98 => self.leave(),
            _ => self.kill(),
        }
        self.end_those_that_leave();
    }

    fn pick(&mut self) -> Option<&mut Process> {
        let all = self.processes.iter_mut().filter(|process| !process.hangs);
        let mut all: Vec<_> = all.collect();
        (!all.is_empty()).then(|| all.swap_remove(self.random.index(all.len())))
    }

    fn start(&mut self) {
        if self.processes.len() < PROCESSES {
            let maxima = [0; SERVERS].map(|_: u32| self.random.within(1..5));
            self.last_epoch += 1;
            self.processes.push(Process::start(&self.file, self.last_epoch, maxima));
            self.forget_cleared();
        }
    }

    fn arrive(&mut self) {
        let (server, joins) = (self.random.index(SERVERS), self.random.once_in(2));
        let all = self.random.once_in(4);
        let Some(process) = self.pick() else { return };
        let is_full = process.served.len() + process.waiting.len() >= REQUESTS_MAX;
        if !process.leaves && !is_full && !process.try_take(server) && joins {
            process.join(server, all);
        }
    }

    fn finish(&mut self) {
        let chance = self.random.below(1000) as usize;
        let Some(process) = self.pick() else { return };
        let Some(length) = Some(process.served.len()).filter(|length| *length > 0) else { return };
        let index = chance % length;
        let server = process.served[index].0;
        process.finish(index);
        // A slot that is released while there are too many is not granted again.
        self.before[server] -= 1;
    }

    /// A client that waits leaves.
    fn cancel(&mut self) {
        let chance = self.random.below(1000) as usize;
        let Some(process) = self.pick() else { return };
        if !process.waiting.is_empty() {
            let index = chance % process.waiting.len();
            drop(process.waiting.swap_remove(index));
        }
    }

    /// Every process that does not hang serves its waiting requests.
    fn pass_time(&mut self) {
        NOW_MS.set(NOW_MS.get() + TICK_MS * (1 + self.random.below(4)));
        let running = self.processes.iter_mut().filter(|process| !process.hangs);
        running.for_each(|process| _ = process.tick());
        self.forget_cleared();
    }

    fn change_a_maximum(&mut self) {
        let (server, max) = (self.random.index(SERVERS), self.random.within(1..5));
        if let Some(process) = self.pick() {
            process.servers[server].set_max(max);
            process.maxima[server] = max;
            process.poll();
        }
    }

    fn hang_or_go_on(&mut self) {
        let index = self.random.index(PROCESSES);
        if let Some(process) = self.processes.get_mut(index) {
            process.hangs = !process.hangs;
        }
    }

    fn leave(&mut self) {
        if let Some(process) = self.pick() {
            process.leaves = true;
        }
    }

    fn end_those_that_leave(&mut self) {
        self.processes.retain(|process| {
            let goes_on = !process.served.is_empty() || !process.waiting.is_empty();
            process.hangs || !process.leaves || goes_on
        });
    }

    /// Ends a process abruptly. Its words stay, perhaps with a request that it had counted and was
    /// not allowed.
    fn kill(&mut self) {
        let index = self.random.index(PROCESSES);
        if index < self.processes.len() {
            self.kill_one(index);
        }
    }

    fn kill_one(&mut self, index: usize) {
        let counted_in_vain = self.random.below(2);
        let process = self.processes.swap_remove(index);
        let Process { epoch, maxima, table, .. } = &process;
        let (number, epoch, maxima) = (table.own(), *epoch, *maxima);
        let left: Vec<(usize, u64)> = self.words_of(number);
        drop(process);
        let is_word = |at: usize| at >= layout::FIRST_ROW;
        for (at, word) in left {
            let more = if is_word(at) && word_state::WordState::of(word).is_present() {
                counted_in_vain
            } else {
                0
            };
            self.words[at].store(word + more, std::sync::atomic::Ordering::SeqCst);
        }
        self.words[layout::REGISTERED].fetch_or(1 << number, std::sync::atomic::Ordering::SeqCst);
        self.killed.push(Killed { number, epoch, maxima });
    }

    fn words_of(&self, number: usize) -> Vec<(usize, u64)> {
        let rows = (0..layout::ROWS_MAX).filter(|row| self.read(layout::KEYS + row) != 0);
        let first = rows.map(|row| layout::FIRST_ROW + row * layout::ROW_WORDS);
        let all = first.flat_map(|at| [at + layout::WORDS, at + layout::LAST_GIVEN]);
        let all = all.chain([layout::EPOCHS, layout::BEATS]).map(|at| at + number);
        all.map(|at| (at, self.read(at))).collect()
    }

    fn read(&self, at: usize) -> u64 {
        self.words[at].load(std::sync::atomic::Ordering::SeqCst)
    }

    /// Removes killed processes that another process has cleared.
    fn forget_cleared(&mut self) {
        let epochs: Vec<u64> =
            (0..layout::PROCESSES_MAX).map(|number| self.read(layout::EPOCHS + number)).collect();
        self.killed.retain(|killed| epochs[killed.number] == killed.epoch);
    }

    fn in_progress(&self) -> [u32; SERVERS] {
        std::array::from_fn(|server| self.processes.iter().map(|p| p.in_progress(server)).sum())
    }

    /// The maximum of the newest process, until others see that it is gone.
    fn max(&self, server: usize) -> u32 {
        let killed = self.killed.iter().map(|killed| (killed.epoch, killed.maxima[server]));
        let alive = self.processes.iter().map(|process| (process.epoch, process.maxima[server]));
        killed.chain(alive).max().map_or(0, |(_, max)| max)
    }

    fn check(&mut self) {
        // A killed process may have been cleared in the middle of the step.
        let with_killed: [u32; SERVERS] = std::array::from_fn(|server| self.max(server));
        self.forget_cleared();
        let now = self.in_progress();
        for server in 0..SERVERS {
            let allowed = self.max(server).max(with_killed[server]).max(self.before[server]);
            assert!(now[server] <= allowed, "{} of {allowed} at {server}", now[server]);
        }
        for process in &self.processes {
            for (server, slots) in process.servers.iter().enumerate() {
                assert_eq!(slots.in_progress(), process.in_progress(server));
                assert_eq!(slots.max(), process.maxima[server]);
            }
        }
    }

    /// No more requests arrive. Processes that hang continue or are killed, requests end one by
    /// one, and all waiting requests must be served within a number of turns.
    fn end(mut self) -> ProcessCounts {
        for index in (0..self.processes.len()).rev() {
            match self.processes[index].hangs && self.random.once_in(2) {
                true => self.kill_one(index),
                false => self.processes[index].hangs = false,
            }
        }
        let mut waiting: usize = self.processes.iter().map(|p| p.waiting.len()).sum();
        let seen =
            ProcessCounts { waited_at_the_end: waiting as u64, killed: self.killed.len() as u64 };
        while waiting > 0 {
            // The maxima are those of the newest process, perhaps of one that is gone.
            self.before = self.in_progress();
            for process in &mut self.processes {
                if !process.served.is_empty() {
                    let (server, _) = process.served[0];
                    process.finish(0);
                    self.before[server] = u32::MAX;
                }
            }
            // The longest time that others leave a slot to a process that hangs.
            NOW_MS.set(NOW_MS.get() + 201);
            self.processes.iter_mut().for_each(|process| _ = process.tick());
            self.processes.iter_mut().for_each(|process| _ = process.tick());
            let now: usize = self.processes.iter().map(|p| p.waiting.len()).sum();
            let served: usize = self.processes.iter().map(|p| p.served.len()).sum();
            assert!(now < waiting || served > 0, "all asleep");
            waiting = now;
        }
        self.processes.clear();
        NOW_MS.set(NOW_MS.get() + 1000);
        self.all_comes_back();
        seen
    }

    fn all_comes_back(&self) {
        let mut last = Process::start(&self.file, self.last_epoch + 1, [4; SERVERS]);
        for server in 0..SERVERS {
            let taken = (0..6).filter(|_| last.try_take(server)).count();
            assert_eq!(taken, 4, "all slots have come back");
        }
        let rows = (0..layout::ROWS_MAX).filter(|row| self.read(layout::KEYS + row) != 0);
        assert_eq!(rows.count(), SERVERS, "no row is lost");
    }
}

#[derive(Default)]
struct ProcessCounts {
    waited_at_the_end: u64,
    killed: u64,
}

fn run(seed: u64) -> ProcessCounts {
    let mut world = ProcessWorld::new(seed);
    world.start();
    for _ in 0..STEPS {
        world.step();
        world.check();
    }
    world.end()
}

fn simulate(seeds: u64) {
    let all: Vec<ProcessCounts> = (0..seeds).map(run).collect();
    assert!(all.iter().map(|seen| seen.waited_at_the_end).sum::<u64>() > seeds);
    assert!(all.iter().map(|seen| seen.killed).sum::<u64>() > seeds / 10);
}

#[test]
fn processes_keep_to_one_limit() {
    simulate(SEEDS);
}

#[test]
#[ignore = "takes a minute; cargo xtask check runs it"]
fn processes_keep_to_one_limit_for_many_seeds() {
    simulate(SEEDS_MANY);
}

/// Processes with many requests that wait for one server.
fn crowd(file: &OwnedFd, max: u32, processes: usize, each: usize) -> Vec<Process> {
    NOW_MS.set(1_000_000);
    let mut all: Vec<_> =
        (0..processes).map(|epoch| Process::start(file, epoch as u64, [max; SERVERS])).collect();
    for process in &mut all {
        (0..each).for_each(|_| process.join(0, false));
    }
    all
}

/// In each turn every request in progress ends. Returns the processes that were given slots, in
/// order.
fn turns(all: &mut [Process], turns: usize) -> Vec<usize> {
    let mut given = Vec::new();
    for _ in 0..turns {
        NOW_MS.set(NOW_MS.get() + TICK_MS);
        for (number, process) in all.iter_mut().enumerate().filter(|(_, process)| !process.hangs) {
            let waited = process.waiting.len();
            (0..process.served.len()).for_each(|_| process.finish(0));
            process.tick();
            given.extend(vec![number; waited - process.waiting.len()]);
        }
    }
    given
}

#[test]
fn processes_take_turns_even_at_a_single_slot() {
    for max in [1, 2, 3, 5] {
        let file = SharedTable::create().expect("memory");
        // The first process has all slots when the others start.
        let mut all = crowd(&file, max, 3, 20);
        let given = turns(&mut all, 100);
        assert_eq!(given.len(), 60 - max as usize, "{max}: all are served");
        for (so_far, _) in given.iter().enumerate().take(30) {
            let count = |of: usize| given[..so_far].iter().filter(|number| **number == of).count();
            let counts = [count(0), count(1), count(2)];
            let ahead =
                counts.iter().max().zip(counts.iter().min()).map(|(most, least)| most - least);
            assert!(ahead <= Some(2 * max as usize), "{max}: {counts:?}");
        }
    }
}

#[test]
fn a_process_that_hangs_keeps_what_it_has_and_no_more() {
    for max in [1, 2, 3] {
        let file = SharedTable::create().expect("memory");
        let mut all = crowd(&file, max, 2, 12);
        turns(&mut all, 3);
        while all[0].served.len() == max as usize {
            turns(&mut all, 1);
        }
        all[0].hangs = true;
        let held = all[0].served.len() as u32;
        // Until its last tick is old enough, one slot is left to it.
        turns(&mut all, 300 / TICK_MS as usize);
        assert_eq!((all[0].served.len() as u32, all[1].waiting.len()), (held, 0), "{held} held");
        let taken = (0..4).filter(|_| all[1].try_take(0)).count() as u32;
        assert_eq!(taken, max - held, "{max}: all that it does not hold");
    }
}

#[test]
fn no_slot_is_left_to_a_process_that_may_have_no_more() {
    NOW_MS.set(1_000_000);
    let file = SharedTable::create().expect("memory");
    let mut old = Process::start(&file, 1, [1; SERVERS]);
    let mut new = Process::start(&file, 2, [4; SERVERS]);
    (0..3).for_each(|_| old.join(0, false));
    assert_eq!((old.served.len(), old.waiting.len()), (1, 2));
    assert_eq!((0..4).filter(|_| new.try_take(0)).count(), 3);
}

#[test]
fn a_number_is_given_anew_without_what_was_left_there() {
    NOW_MS.set(1_000_000);
    let mut world = ProcessWorld::new(1);
    for maxima in [[1; SERVERS], [2; SERVERS]] {
        world.last_epoch += 1;
        world.processes.push(Process::start(&world.file, world.last_epoch, maxima));
    }
    assert!(world.processes[0].try_take(0) && world.processes[1].try_take(0));
    world.kill_one(0);
    // It takes the number of the killed process, and uses no server yet.
    let third = SharedTable::join(world.file.as_fd(), clock).expect("there is room");
    assert_eq!(third.own(), world.killed[0].number);
    assert!(world.processes[0].try_take(0), "the other's slot has come back");
    assert!(!world.processes[0].try_take(0));
}

#[test]
fn processes_of_a_table_know_its_id() {
    let [file, other] = [(), ()].map(|()| SharedTable::create().expect("memory"));
    let ids = [&file, &file, &other].map(|file| {
        let table = SharedTable::join(file.as_fd(), clock).expect("there is room");
        (table.id(), table.id())
    });
    let [(first, again), (second, _), (of_other, _)] = ids;
    assert_eq!((first, first), (again, second));
    assert_ne!(first, of_other);
}

#[test]
fn rows_of_servers_that_are_gone_are_used_again() {
    let file = SharedTable::create().expect("memory");
    let table = SharedTable::join(file.as_fd(), clock).expect("there is room");
    let queue: Arc<WaitQueue<()>> = WaitQueue::shared(b"queue", &table);
    let stays = queue.slots(b"stays", 1);
    let _slot = stays.try_take();
    for reload in 0..3000_u32 {
        let names = (0..3_u32).map(|server| [reload.to_le_bytes(), server.to_le_bytes()].concat());
        let servers: Vec<_> = names.map(|name| queue.slots(&name, 1)).collect();
        assert!(servers.iter().all(|slots| slots.try_take().is_some() && is_shared(slots)));
    }
    let other = SharedTable::join(file.as_fd(), clock).expect("there is room");
    let other: Arc<WaitQueue<()>> = WaitQueue::shared(b"queue", &other);
    assert!(other.slots(b"stays", 1).try_take().is_none(), "it is taken");
}

fn is_shared(slots: &ServerSlots<()>) -> bool {
    format!("{:?}", slots.word).contains("shared")
}

#[test]
fn a_server_without_a_row_is_counted_per_process() {
    let file = SharedTable::create().expect("memory");
    let table = SharedTable::join(file.as_fd(), clock).expect("there is room");
    let queue: Arc<WaitQueue<()>> = WaitQueue::shared(b"queue", &table);
    let name = |number: usize| number.to_le_bytes();
    let all: Vec<_> = (0..=layout::ROWS_MAX).map(|number| queue.slots(&name(number), 1)).collect();
    assert!(all[..layout::ROWS_MAX].iter().all(|slots| is_shared(slots)));
    let last = &all[layout::ROWS_MAX];
    assert!(!is_shared(last));
    let slot = last.try_take();
    assert!(slot.is_some() && last.try_take().is_none());
    let tables = (1..layout::PROCESSES_MAX).map(|_| SharedTable::join(file.as_fd(), clock));
    let tables: Vec<_> = tables.collect();
    assert!(tables.iter().all(Result::is_ok));
    assert!(SharedTable::join(file.as_fd(), clock).is_err());
}

#[test]
fn a_table_with_another_layout_is_refused() {
    let file = SharedTable::create().expect("memory");
    assert!(SharedTable::check(file.as_fd()).is_ok());
    let words = SharedWords::map(file.as_fd(), layout::ALL).expect("the table");
    words[0].fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    assert!(SharedTable::check(file.as_fd()).is_err());
    assert!(SharedTable::join(file.as_fd(), clock).is_err());
}
