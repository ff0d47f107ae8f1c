//! Limits how many tasks start per turn of the event loop; the others start in later turns.
//!
//! A started task should find its data still in the processor's cache when it resumes. With
//! hundreds of tasks at once, started work is therefore finished before more is started.
//! Concurrency is not limited: while the sockets are quiet, the budget is refilled at once.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use crate::{at_turn_end, spawn, yield_now};

/// One worker's budget.
pub struct TurnBudget {
    per_turn: usize,
    /// The rest of the budget in this turn.
    left: Cell<usize>,
    waiting: RefCell<VecDeque<Waker>>,
    /// Whether a task is refilling the budget.
    is_refilling: Cell<bool>,
}

impl TurnBudget {
    /// A budget of `per_turn` in each turn of the event loop.
    pub fn new(per_turn: usize) -> Rc<Self> {
        let budget = Rc::new(Self {
            per_turn,
            left: Cell::new(per_turn),
            waiting: RefCell::default(),
            is_refilling: Cell::new(false),
        });
        let weak = Rc::downgrade(&budget);
        at_turn_end(move || weak.upgrade().iter().for_each(|budget| budget.refill()));
        budget
    }

    /// Ready while budget is left; while pending, the task is woken in its order.
    pub fn poll_available(self: &Rc<Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.left.get() > 0 {
            return Poll::Ready(());
        }
        self.waiting.borrow_mut().push_back(cx.waker().clone());
        if !self.is_refilling.replace(true) {
            spawn(self.clone().refill_each_turn());
        }
        Poll::Pending
    }

    /// Spends one unit. A task that finished without waiting need not spend any.
    pub fn spend(&self) {
        self.left.set(self.left.get().saturating_sub(1));
    }

    fn refill(&self) {
        self.left.set(self.per_turn);
    }

    /// Refills the budget once per turn, as long as tasks wait.
    async fn refill_each_turn(self: Rc<Self>) {
        loop {
            // Resumes after the tasks that the sockets have woken.
            yield_now().await;
            self.refill();
            let mut waiting = self.waiting.borrow_mut();
            if waiting.is_empty() {
                break;
            }
            let count = waiting.len().min(self.per_turn);
            waiting.drain(..count).for_each(Waker::wake);
        }
        self.is_refilling.set(false);
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    async fn spend_one(budget: Rc<TurnBudget>, through: Rc<RefCell<Vec<u32>>>, number: u32) {
        poll_fn(|cx| budget.poll_available(cx)).await;
        budget.spend();
        through.borrow_mut().push(number);
    }

    #[test]
    fn each_turn_starts_a_few_tasks_in_order() {
        crate::run(async {
            let (budget, through) = (TurnBudget::new(2), Rc::new(RefCell::new(Vec::new())));
            for number in 0..7 {
                spawn(spend_one(budget.clone(), through.clone(), number));
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
    fn a_task_that_is_always_ready_does_not_stop_the_refill() {
        crate::run(async {
            let (budget, through) = (TurnBudget::new(1), Rc::new(RefCell::new(Vec::new())));
            spawn(poll_fn(|cx| {
                cx.waker().wake_by_ref();
                Poll::<()>::Pending
            }));
            for number in 0..3 {
                spawn(spend_one(budget.clone(), through.clone(), number));
            }
            while through.borrow().len() < 3 {
                yield_now().await;
            }
        })
        .unwrap();
    }
}
