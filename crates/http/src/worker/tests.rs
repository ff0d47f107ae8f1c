use std::cell::{Cell, RefCell};
use std::pin::pin;
use std::ptr;
use std::rc::Rc;
use std::task::{Context, Waker};

use ::session::WorkerSlot;

use super::Worker;
use crate::exchange::BackgroundTasks;
use crate::site::Generation;
use crate::testing::{site, site_with};

thread_local! {
    static CALLS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

fn note(what: &str, generation: &Generation) {
    CALLS.with_borrow_mut(|calls| calls.push(format!("{what} {}", generation.number)));
}

/// The calls since the last call of this function.
fn calls() -> String {
    CALLS.take().join(", ")
}

/// A slot that notes its calls.
#[derive(Default)]
struct FirstSlot(u8);
#[derive(Default)]
struct SecondSlot;

impl WorkerSlot<Generation> for FirstSlot {
    fn worker_started(&self, generation: &Rc<Generation>) {
        note("first started", generation);
    }

    fn worker_left(&self, generation: &Generation) {
        note("first left", generation);
    }
}

impl WorkerSlot<Generation> for SecondSlot {
    fn worker_started(&self, generation: &Rc<Generation>) {
        assert_eq!(generation.worker.of::<FirstSlot>().0, 0, "it is there already");
        note("second started", generation);
    }

    fn worker_left(&self, generation: &Generation) {
        note("second left", generation);
    }
}

#[test]
fn slots_are_notified_once_when_a_worker_starts_and_leaves_a_generation() {
    let test_site = site_with("server { location / { return 200; } }", |site| {
        site.worker_slots.declare::<FirstSlot>();
        site.worker_slots.declare::<SecondSlot>();
        site.worker_slots.declare::<FirstSlot>();
    });
    let site = test_site.generation.configuration();
    net::run(async {
        let worker = Worker::new(Generation::new(site.clone(), 1));
        assert_eq!(calls(), "first started 1, second started 1");
        let other_worker = Worker::new(Generation::new(site.clone(), 1));
        assert_eq!(calls(), "first started 1, second started 1");
        let of = |worker: &Worker| worker.context.generation();
        let slots = [&worker, &other_worker].map(|worker| of(worker));
        let [one, other] = slots.each_ref().map(|slots| slots.worker.of::<FirstSlot>());
        assert!(!ptr::eq(one, other), "each worker has its own");
        drop(slots);

        // An active exchange holds the generation.
        let held = of(&worker);
        worker.replace(Generation::new(site.clone(), 2));
        assert_eq!(calls(), "first started 2, second started 2");
        drop(held);
        assert_eq!(calls(), "second left 1, first left 1");
        drop(other_worker);
        assert_eq!(calls(), "second left 1, first left 1");
        drop(worker);
        assert_eq!(calls(), "second left 2, first left 2");
    })
    .unwrap();
    // The generation of health checks and of certificates with variables serves nothing.
    drop(Generation::new(site.clone(), 3));
    assert_eq!(calls(), "");
}

#[test]
fn a_worker_that_leaves_waits_for_background_tasks_or_cuts_them() {
    let test_site = site("server { location / { return 200; } }");
    let site = test_site.generation.configuration();
    for is_cut in [false, true] {
        net::run(async {
            let generation = Generation::new(site.clone(), 1);
            let worker = Worker::new(generation.clone());
            let [may_end, has_ended] = [(); 2].map(|()| Rc::new(Cell::new(false)));
            let (wait, end) = (may_end.clone(), has_ended.clone());
            let task = async move {
                while !wait.get() {
                    net::yield_now().await;
                }
                end.set(true);
            };
            BackgroundTasks::start(&generation, task).unwrap();
            let mut leaving = pin!(worker.leave());
            for _ in 0..3 {
                net::yield_now().await;
                let mut cx = Context::from_waker(Waker::noop());
                assert!(leaving.as_mut().poll(&mut cx).is_pending());
            }
            match is_cut {
                true => worker.cut_before(u64::MAX),
                false => may_end.set(true),
            }
            leaving.await;
            assert_eq!(has_ended.get(), !is_cut);
        })
        .unwrap();
    }
}
