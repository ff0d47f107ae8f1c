//! Requests that arrive, wait, are served, fail, retry, time out and leave, on several workers,
//! while maxima change and servers come and go, all random, and repeatable by a seed.
//!
//! Every step is done to the limit and to [`Model`], and the results must agree. To run many seeds:
//! `cargo test -p upstream --lib limit::simulation -- --ignored`.

mod model;
mod processes;

use std::cell::Cell;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::task::{Context, Poll, Wake, Waker};

use super::*;
use model::{ExpectedEnd, Model};

const SEEDS: u64 = 300;
const SEEDS_MANY: u64 = 10_000;
const STEPS: usize = 400;
const GROUPS: usize = 2;
const REQUESTS_MAX: usize = 40;

#[test]
fn the_limit_behaves_like_the_model() {
    simulate(SEEDS);
}

#[test]
#[ignore = "takes ten seconds; cargo xtask check runs it"]
fn the_limit_does_what_the_model_does_for_many_seeds() {
    simulate(SEEDS_MANY);
}

fn simulate(seeds: u64) {
    let mut all = PathCounts::default();
    for seed in 0..seeds {
        let seen = run(seed);
        all.iter_mut().zip(seen).for_each(|(all, seen)| *all += seen);
    }
    assert!(all.iter().all(|times| *times > seeds), "hardly ever: {all:?}");
}

/// How often each way through the limit was taken: granted, timed out, abandoned, stranded,
/// rejected, and handoffs got.
type PathCounts = [u64; 6];

fn run(seed: u64) -> PathCounts {
    let mut world = World::new(seed);
    for _ in 0..STEPS {
        world.step();
        world.check();
    }
    world.end()
}

/// splitmix64.
struct SplitMix(u64);

impl SplitMix {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % bound
    }

    fn index(&mut self, length: usize) -> usize {
        self.below(length as u64) as usize
    }

    fn within(&mut self, range: Range<u32>) -> u32 {
        range.start + self.below(u64::from(range.end - range.start)) as u32
    }

    /// True once in `times` on average.
    fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }
}

/// A connection to that server. None may be lost, or reach a request on another server.
struct SimulatedHandoff {
    server: usize,
    alive: Rc<Cell<u32>>,
}

impl Drop for SimulatedHandoff {
    fn drop(&mut self) {
        self.alive.set(self.alive.get() - 1);
    }
}

#[derive(Default)]
struct Bell(AtomicBool);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        assert!(!self.0.swap(true, SeqCst), "woken twice");
    }
}

struct SimulatedRequest {
    id: u64,
    worker: usize,
    group: u64,
    tried: Vec<usize>,
    stage: RequestStage,
}

enum RequestStage {
    Waits {
        waiter: Waiter<SimulatedHandoff>,
        bell: Arc<Bell>,
        polled: bool,
        joined_ms: u64,
        until_ms: u64,
    },
    Has {
        slot: ServerSlot<SimulatedHandoff>,
        server: usize,
    },
}

struct World {
    random: SplitMix,
    queue: Arc<WaitQueue<SimulatedHandoff>>,
    servers: Vec<Arc<ServerSlots<SimulatedHandoff>>>,
    /// Which servers each group can use now.
    usable: [Vec<bool>; GROUPS],
    backlog: Backlog,
    /// By how much each worker's clock is ahead of `now_ms`.
    clocks: Vec<u64>,
    now_ms: u64,
    requests: Vec<SimulatedRequest>,
    next_id: u64,
    handoffs: Rc<Cell<u32>>,
    gifts_got: u64,
    model: Model,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut random = SplitMix(seed);
        let queue = WaitQueue::new();
        let mut model = Model::default();
        let count = random.within(1..6);
        let servers: Vec<_> = (0..count)
            .map(|index| {
                let max = random.within(0..4);
                model.add_server(max);
                queue.slots(&[index as u8], max)
            })
            .collect();
        let backlog = match random.below(2) {
            0 => Backlog::OfServer(random.within(0..6)),
            _ => Backlog::OfQueue(random.within(0..12)),
        };
        let clocks = (0..=random.below(4)).map(|worker| worker * 1000).collect();
        let usable = std::array::from_fn(|_| servers.iter().map(|_| !random.once_in(4)).collect());
        Self {
            random,
            queue,
            servers,
            usable,
            backlog,
            clocks,
            now_ms: 0,
            requests: Vec::new(),
            next_id: 0,
            handoffs: Rc::default(),
            gifts_got: 0,
            model,
        }
    }

    fn step(&mut self) {
        match self.random.below(100) {
            0..35 => self.arrive(),
            35..55 => self.finish(),
            55..60 => self.fail_and_retry(),
            60..66 => self.leave(),
            66..84 => self.turn_of_a_worker(),
            84..92 => self.pass_time(),
            92..95 => self.change_a_maximum(),
            _ => self.change_a_group(),
        }
    }

    fn arrive(&mut self) {
        if self.requests.len() < REQUESTS_MAX {
            let group = self.random.below(GROUPS as u64);
            let worker = self.random.index(self.clocks.len());
            self.begin(group, worker, Vec::new());
        }
    }

    fn begin(&mut self, group: u64, worker: usize, tried: Vec<usize>) {
        let servers = self.choose(group, &tried);
        if servers.is_empty() {
            return;
        }
        let id = self.next_id;
        self.next_id += 1;
        // Sometimes no slot is tried first, as when a slot becomes free just before joining.
        let tries = !self.random.once_in(4);
        let stage = match self.try_each(&servers[..if tries { servers.len() } else { 0 }]) {
            Some(stage) => Some(stage),
            None => self.join(id, worker, group, &servers, &tried),
        };
        if let Some(stage) = stage {
            self.requests.push(SimulatedRequest { id, worker, group, tried, stage });
        }
    }

    /// A balancer's candidates: in random order, some left out.
    fn choose(&mut self, group: u64, tried: &[usize]) -> Vec<usize> {
        let usable = &self.usable[group as usize];
        let mut servers: Vec<usize> =
            (0..usable.len()).filter(|server| usable[*server] && !tried.contains(server)).collect();
        if !servers.is_empty() {
            let turn = self.random.index(servers.len());
            servers.rotate_left(turn);
            let left = 1 + self.random.index(servers.len());
            servers.truncate(left);
        }
        servers
    }

    fn try_each(&mut self, servers: &[usize]) -> Option<RequestStage> {
        for &server in servers {
            let slot = self.servers[server].try_take();
            assert_eq!(slot.is_some(), self.model.take(server), "taking a free slot");
            if let Some(slot) = slot {
                return Some(RequestStage::Has { slot, server });
            }
        }
        None
    }

    fn join(
        &mut self,
        id: u64,
        worker: usize,
        group: u64,
        servers: &[usize],
        tried: &[usize],
    ) -> Option<RequestStage> {
        let handles = |indices: &[usize]| -> Vec<_> {
            indices.iter().map(|index| Arc::clone(&self.servers[*index])).collect()
        };
        let (chosen, refused) = (handles(servers), handles(tried));
        let (backlog, now_ms) = (self.backlog, self.clock(worker));
        let expected = self.has_room(servers);
        let request =
            JoinRequest { servers: &chosen, tried: &refused, group, backlog, worker: None, now_ms };
        let joined = self.queue.join(request);
        assert_eq!(joined.is_ok(), expected, "room in the backlog");
        let waiter = joined.ok()?;
        self.model.join(id, servers, tried, group);
        let until_ms = self.now_ms + self.random.below(60);
        let bell = Arc::default();
        Some(RequestStage::Waits { waiter, bell, polled: false, joined_ms: now_ms, until_ms })
    }

    fn has_room(&self, servers: &[usize]) -> bool {
        let room = |server: &usize| match self.backlog {
            Backlog::OfServer(max) => self.servers[*server].stats().waiting < u64::from(max),
            Backlog::OfQueue(max) => self.model.waiting() < max as usize,
        };
        servers.iter().any(|server| self.model.has_free(*server)) || servers.iter().any(room)
    }

    fn finish(&mut self) {
        let Some(index) = self.pick_served() else { return };
        let RequestStage::Has { slot, server } = self.requests.swap_remove(index).stage else {
            return;
        };
        let goes_on = self.model.free(server);
        if self.random.once_in(2) {
            self.handoffs.set(self.handoffs.get() + 1);
            let handoff = SimulatedHandoff { server, alive: Rc::clone(&self.handoffs) };
            assert_eq!(
                slot.release_with(handoff).is_none(),
                goes_on,
                "the handoff goes with the slot"
            );
        } else {
            drop(slot);
        }
    }

    fn fail_and_retry(&mut self) {
        let Some(index) = self.pick_served() else { return };
        let SimulatedRequest { worker, group, mut tried, stage, .. } =
            self.requests.swap_remove(index);
        let RequestStage::Has { slot, server } = stage else { return };
        self.model.free(server);
        drop(slot);
        tried.push(server);
        self.begin(group, worker, tried);
    }

    fn pick_served(&mut self) -> Option<usize> {
        self.pick(|request| matches!(request.stage, RequestStage::Has { .. }))
    }

    fn pick(&mut self, wanted: impl Fn(&SimulatedRequest) -> bool) -> Option<usize> {
        let found: Vec<usize> =
            (0..self.requests.len()).filter(|index| wanted(&self.requests[*index])).collect();
        (!found.is_empty()).then(|| found[self.random.index(found.len())])
    }

    /// A client leaves, whether it waits, has a grant or is served.
    fn leave(&mut self) {
        let Some(index) = self.pick(|_| true) else { return };
        let request = self.requests.swap_remove(index);
        match &request.stage {
            RequestStage::Has { server, .. } => drop(self.model.free(*server)),
            RequestStage::Waits { .. } => {
                if let ExpectedEnd::Granted(server) = self.model.remove(request.id) {
                    self.model.free(server);
                }
            }
        }
    }

    /// One worker polls those of its requests that were woken, those that were never polled, and
    /// now and then one more.
    fn turn_of_a_worker(&mut self) {
        let worker = self.random.index(self.clocks.len());
        for index in (0..self.requests.len()).rev() {
            let request = &self.requests[index];
            let RequestStage::Waits { bell, polled, .. } = &request.stage else { continue };
            let due = bell.0.load(SeqCst) || !polled;
            if request.worker == worker && (due || self.random.once_in(8)) {
                self.poll(index);
            }
        }
    }

    fn poll(&mut self, index: usize) {
        let now_ms = self.clock(self.requests[index].worker);
        let SimulatedRequest { id, stage, .. } = &mut self.requests[index];
        let RequestStage::Waits { waiter, bell, polled, .. } = stage else { return };
        let waker = Waker::from(Arc::clone(bell));
        *polled = true;
        match waiter.poll(&mut Context::from_waker(&waker), now_ms) {
            Poll::Pending => assert!(self.model.waits(*id), "an answer is kept back"),
            Poll::Ready(WaiterAnswer::Granted(grant)) => self.granted(index, grant),
            Poll::Ready(WaiterAnswer::NoServer) => {
                assert_eq!(self.model.remove(*id), ExpectedEnd::Stranded);
                self.requests.swap_remove(index);
            }
        }
    }

    fn granted(&mut self, index: usize, grant: Grant<SimulatedHandoff>) {
        let now_ms = self.clock(self.requests[index].worker);
        let request = &mut self.requests[index];
        let ExpectedEnd::Granted(server) = self.model.remove(request.id) else {
            panic!("granted out of turn");
        };
        assert!(Arc::ptr_eq(grant.slot.slots(), &self.servers[server]), "another server");
        self.gifts_got += u64::from(grant.handoff.is_some());
        assert!(
            grant.handoff.is_none_or(|handoff| handoff.server == server),
            "another server's handoff"
        );
        if let RequestStage::Waits { joined_ms, .. } = request.stage {
            // 0: it never waited.
            assert!([0, now_ms - joined_ms].contains(&grant.waited_ms));
        }
        request.stage = RequestStage::Has { slot: grant.slot, server };
    }

    fn pass_time(&mut self) {
        self.now_ms += self.random.below(20);
        for index in (0..self.requests.len()).rev() {
            let RequestStage::Waits { until_ms, .. } = self.requests[index].stage else { continue };
            if until_ms <= self.now_ms {
                self.give_up(index);
            }
        }
    }

    fn give_up(&mut self, index: usize) {
        let SimulatedRequest { id, worker, group, tried, stage } = self.requests.swap_remove(index);
        let RequestStage::Waits { waiter, .. } = stage else { return };
        let grant = waiter.give_up(self.clock(worker));
        match (grant, self.model.remove(id)) {
            (Some(Grant { slot, .. }), ExpectedEnd::Granted(server)) => {
                assert!(Arc::ptr_eq(slot.slots(), &self.servers[server]), "another server");
                let stage = RequestStage::Has { slot, server };
                self.requests.push(SimulatedRequest { id, worker, group, tried, stage });
            }
            (None, ExpectedEnd::Waits { .. } | ExpectedEnd::Stranded) => {}
            (grant, fate) => panic!("{} where the model has {fate:?}", grant.is_some()),
        }
    }

    fn clock(&self, worker: usize) -> u64 {
        self.now_ms + self.clocks[worker]
    }

    fn change_a_maximum(&mut self) {
        let (server, max) = (self.random.index(self.servers.len()), self.random.within(0..5));
        self.servers[server].set_max(max);
        self.model.set_max(server, max);
    }

    fn change_a_group(&mut self) {
        let (group, server) = (self.random.index(GROUPS), self.random.index(self.servers.len()));
        let usable = &mut self.usable[group][server];
        *usable = !*usable;
        if *usable {
            self.servers[server].admit(group as u64);
            self.model.admit(server, group as u64);
        } else {
            self.servers[server].withdraw(group as u64);
            self.model.withdraw(server, group as u64);
        }
    }

    /// Checks the invariants after every step.
    fn check(&self) {
        let mut waiting = 0;
        for (server, slots) in self.servers.iter().enumerate() {
            let model = &self.model.servers[server];
            assert_eq!((slots.in_progress(), slots.max()), (model.used, model.max));
            assert!(slots.in_progress() <= model.ceiling, "above what was ever allowed");
            assert_eq!(slots.waiting() as usize, self.model.waiting_for(server));
            assert!(slots.waiting() == 0 || slots.in_progress() >= slots.max(), "asleep");
            assert!(slots.stats().waiting <= slots.waiting().into());
            waiting += slots.stats().waiting;
        }
        assert_eq!(waiting as usize, self.model.waiting());
        assert_eq!(self.queue.stats().waiting, waiting);
        for request in &self.requests {
            let RequestStage::Waits { bell, polled: true, .. } = &request.stage else { continue };
            let rung = bell.0.load(SeqCst);
            assert_ne!(rung, self.model.waits(request.id), "woken: {rung}");
        }
    }

    /// Raises all maxima; all requests are served, and then nothing is left.
    fn end(mut self) -> PathCounts {
        for (server, slots) in self.servers.iter().enumerate() {
            slots.set_max(1);
            self.model.set_max(server, 1);
        }
        while !self.requests.is_empty() {
            let before = self.requests.len();
            for _ in 0..before {
                self.finish();
            }
            (0..self.requests.len()).rev().for_each(|index| self.poll(index));
            self.check();
            let served = self.requests.iter().any(|r| matches!(r.stage, RequestStage::Has { .. }));
            assert!(served || self.requests.len() < before, "all asleep");
        }
        let stats = self.queue.stats();
        assert_eq!((stats.in_progress, stats.waiting, self.handoffs.get()), (0, 0, 0));
        assert!(self.servers.iter().all(|slots| slots.waiting() == 0 && slots.in_progress() == 0));
        let ended = stats.granted + stats.timed_out + stats.abandoned + stats.stranded;
        assert_eq!(stats.queued, ended);
        self.servers.clear();
        assert!(self.queue.servers().is_empty());
        let LimitStats { granted, timed_out, abandoned, stranded, rejected, .. } = stats;
        [granted, timed_out, abandoned, stranded, rejected, self.gifts_got]
    }
}
