//! Lets a few through at a time; the others after the worker has looked at its sockets again.
//!
//! Who goes through is under way for a while, and what it needs is to stay in the processor's cache
//! until then. Where hundreds come at once, what has been begun is so finished before more is. This
//! is no limit: as long as the sockets have nothing to tell, it opens at once.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use crate::{at_turn_end, spawn, yield_now};

/// A gate, of one worker.
pub struct Gate {
    per_turn: usize,
    /// How many more may go through in this turn.
    room: Cell<usize>,
    waiting: RefCell<VecDeque<Waker>>,
    /// Whether somebody will open it again.
    is_attended: Cell<bool>,
}

impl Gate {
    /// A gate that lets so many through before it wants the sockets looked at.
    pub fn new(per_turn: usize) -> Rc<Self> {
        let gate = Rc::new(Self {
            per_turn,
            room: Cell::new(per_turn),
            waiting: RefCell::default(),
            is_attended: Cell::new(false),
        });
        let weak = Rc::downgrade(&gate);
        at_turn_end(move || weak.upgrade().iter().for_each(|gate| gate.open()));
        gate
    }

    /// Ready while there is room; else the task is woken when its turn has come.
    pub fn poll_open(self: &Rc<Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.room.get() > 0 {
            return Poll::Ready(());
        }
        self.waiting.borrow_mut().push_back(cx.waker().clone());
        if !self.is_attended.replace(true) {
            spawn(self.clone().attend());
        }
        Poll::Pending
    }

    /// Counts one that went through. Who was done at once need not be counted.
    pub fn pass(&self) {
        self.room.set(self.room.get().saturating_sub(1));
    }

    fn open(&self) {
        self.room.set(self.per_turn);
    }

    /// Opens it once a turn, as long as somebody waits.
    async fn attend(self: Rc<Self>) {
        loop {
            // Goes on after whoever the sockets have woken.
            yield_now().await;
            self.open();
            let mut waiting = self.waiting.borrow_mut();
            if waiting.is_empty() {
                break;
            }
            let count = waiting.len().min(self.per_turn);
            waiting.drain(..count).for_each(Waker::wake);
        }
        self.is_attended.set(false);
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    async fn go_through(gate: Rc<Gate>, through: Rc<RefCell<Vec<u32>>>, number: u32) {
        poll_fn(|cx| gate.poll_open(cx)).await;
        gate.pass();
        through.borrow_mut().push(number);
    }

    #[test]
    fn few_go_through_in_one_turn_and_all_in_the_end_in_their_order() {
        crate::run(async {
            let (gate, through) = (Gate::new(2), Rc::new(RefCell::new(Vec::new())));
            for number in 0..7 {
                spawn(go_through(gate.clone(), through.clone(), number));
            }
            let mut seen = Vec::new();
            while seen.last() != Some(&7) {
                yield_now().await;
                seen.push(through.borrow().len());
            }
            assert_eq!(seen.first(), Some(&2));
            assert!(seen.windows(2).all(|turn| turn[1] - turn[0] <= 2), "{seen:?}");
            assert!(through.borrow().is_sorted());
        })
        .unwrap();
    }

    #[test]
    fn one_task_that_never_rests_does_not_keep_it_shut() {
        crate::run(async {
            let (gate, through) = (Gate::new(1), Rc::new(RefCell::new(Vec::new())));
            spawn(poll_fn(|cx| {
                cx.waker().wake_by_ref();
                Poll::<()>::Pending
            }));
            for number in 0..3 {
                spawn(go_through(gate.clone(), through.clone(), number));
            }
            while through.borrow().len() < 3 {
                yield_now().await;
            }
        })
        .unwrap();
    }
}
