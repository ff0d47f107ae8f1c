//! Admits a few tasks per turn of the event loop, strictly in the order in which they came.
//!
//! Work that takes long, such as a handshake, is spread over turns, in which other tasks run. A
//! task that comes while others wait has to wait behind them, or some would wait for ever.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use crate::{at_turn_end, spawn, yield_now};

/// One worker's queue.
pub(crate) struct TurnOrder {
    per_turn: usize,
    /// How many more may be admitted in this turn; 0 while tasks wait.
    left: Cell<usize>,
    waiting: RefCell<VecDeque<Waker>>,
    /// The number of tasks that had to wait, and how many of them were admitted.
    came: Cell<u64>,
    admitted: Cell<u64>,
    /// Whether a task admits those that wait.
    is_admitting: Cell<bool>,
}

impl TurnOrder {
    pub(crate) fn new(per_turn: usize) -> Rc<Self> {
        let queue = Rc::new(Self {
            per_turn,
            left: Cell::new(per_turn),
            waiting: RefCell::default(),
            came: Cell::default(),
            admitted: Cell::default(),
            is_admitting: Cell::default(),
        });
        let weak = Rc::downgrade(&queue);
        // Nobody waits then.
        at_turn_end(move || weak.upgrade().iter().for_each(|queue| queue.left.set(queue.per_turn)));
        queue
    }

    /// Ready when the task is admitted. `place` is `None` at first, and kept by the task.
    pub(crate) fn poll_admitted(
        self: &Rc<Self>,
        place: &mut Option<u64>,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        match *place {
            None if self.left.get() > 0 => {
                self.left.set(self.left.get() - 1);
                Poll::Ready(())
            }
            None => {
                *place = Some(self.came.get());
                self.came.set(self.came.get() + 1);
                self.waiting.borrow_mut().push_back(cx.waker().clone());
                if !self.is_admitting.replace(true) {
                    spawn(self.clone().admit_each_turn());
                }
                Poll::Pending
            }
            Some(place) if place < self.admitted.get() => Poll::Ready(()),
            Some(_) => Poll::Pending,
        }
    }

    /// Admits the next tasks once per turn, as long as some wait. One that has given up takes its
    /// turn all the same.
    async fn admit_each_turn(self: Rc<Self>) {
        while !self.waiting.borrow().is_empty() {
            // Resumes after the tasks that the sockets have woken.
            yield_now().await;
            let mut waiting = self.waiting.borrow_mut();
            let count = waiting.len().min(self.per_turn);
            self.admitted.set(self.admitted.get() + count as u64);
            self.left.set(self.per_turn - count);
            waiting.drain(..count).for_each(Waker::wake);
        }
        self.is_admitting.set(false);
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    type Order = Rc<RefCell<Vec<u32>>>;

    async fn pass(queue: Rc<TurnOrder>, order: Order, number: u32) {
        let mut place = None;
        poll_fn(|cx| queue.poll_admitted(&mut place, cx)).await;
        order.borrow_mut().push(number);
    }

    #[test]
    fn each_turn_admits_a_few_in_order() {
        crate::run(async {
            let (queue, order) = (TurnOrder::new(2), Order::default());
            for number in 0..7 {
                spawn(pass(queue.clone(), order.clone(), number));
            }
            let mut seen = Vec::new();
            while seen.last() != Some(&7) {
                yield_now().await;
                seen.push(order.borrow().len());
            }
            assert_eq!(seen.first(), Some(&2));
            assert!(seen.windows(2).all(|turn| turn[1] - turn[0] <= 2), "{seen:?}");
            assert!(order.borrow().is_sorted());
        })
        .unwrap();
    }

    /// More come in each turn than are admitted, and the first are first all the same.
    #[test]
    fn nobody_overtakes_those_who_wait() {
        crate::run(async {
            let (queue, order) = (TurnOrder::new(1), Order::default());
            for turn in 0..50 {
                spawn(pass(queue.clone(), order.clone(), 2 * turn));
                spawn(pass(queue.clone(), order.clone(), 2 * turn + 1));
                yield_now().await;
            }
            while order.borrow().len() < 100 {
                yield_now().await;
            }
            assert!(order.borrow().is_sorted(), "{:?}", order.borrow());
        })
        .unwrap();
    }

    #[test]
    fn a_task_that_gave_up_blocks_nobody() {
        crate::run(async {
            let (queue, order) = (TurnOrder::new(1), Order::default());
            let mut tasks: Vec<_> =
                (0..5).map(|number| spawn(pass(queue.clone(), order.clone(), number))).collect();
            tasks[1].stop();
            while order.borrow().len() < 4 {
                yield_now().await;
            }
            assert_eq!(*order.borrow(), [0, 2, 3, 4]);
            tasks.clear();
        })
        .unwrap();
    }
}
