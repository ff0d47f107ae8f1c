//! State of a feature in a worker.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use ::session::WorkerSlot;

use testing::Folder;

use super::load;
use crate::StreamWorker;
use crate::site::StreamGeneration;

thread_local! {
    static CALLS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

#[derive(Default)]
struct NotingSlot;

impl WorkerSlot<StreamGeneration> for NotingSlot {
    fn worker_started(&self, generation: &Rc<StreamGeneration>) {
        CALLS.with_borrow_mut(|calls| calls.push(format!("started {}", generation.number)));
    }

    fn worker_left(&self, generation: &StreamGeneration) {
        CALLS.with_borrow_mut(|calls| calls.push(format!("left {}", generation.number)));
    }
}

#[test]
fn a_slot_is_notified_when_its_worker_starts_and_leaves_a_generation() {
    let folder = Folder::new();
    let mut site = load("server { listen 127.0.0.1:1; return x; }", &folder, false).unwrap();
    site.worker_slots.declare::<NotingSlot>();
    let site = Arc::new(site);
    net::run(async {
        let worker = StreamWorker::new(StreamGeneration::new(site.clone(), 1));
        worker.replace(StreamGeneration::new(site.clone(), 2));
    })
    .unwrap();
    assert_eq!(CALLS.take().join(", "), "started 1, started 2, left 1, left 2");
}
