//! Limits of what one account does at once: few orders, and no burst of new ones. Who waits longest
//! is next.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::Duration;

use net::clock;

/// Orders under way at once.
const ORDERS_MAX: usize = 4;
/// Orders that begin in each [`WINDOW_MS`].
const STARTS_MAX: usize = 10;
const WINDOW_MS: u64 = 10_000;

/// The orders of one account.
pub(crate) struct AccountOrders {
    free: Cell<usize>,
    /// Those who wait, by the numbers of their turns.
    waiting: RefCell<BTreeMap<u64, Option<Waker>>>,
    last_turn: Cell<u64>,
    /// When the last ones began.
    starts_ms: RefCell<VecDeque<u64>>,
}

/// An order may be under way as long as this lives.
pub(crate) struct OrderPermit(Rc<AccountOrders>);

impl AccountOrders {
    pub(crate) fn new() -> Rc<Self> {
        Rc::new(Self {
            free: Cell::new(ORDERS_MAX),
            waiting: RefCell::default(),
            last_turn: Cell::new(0),
            starts_ms: RefCell::default(),
        })
    }

    /// Waits until another order may begin.
    pub(crate) async fn permit(self: &Rc<Self>) -> OrderPermit {
        let turn = OrderTurn::new(self);
        poll_fn(|cx| match self.free.get() {
            free @ 1.. if turn.is_next() => {
                self.free.set(free - 1);
                Poll::Ready(())
            }
            _ => {
                self.waiting.borrow_mut().insert(turn.number, Some(cx.waker().clone()));
                Poll::Pending
            }
        })
        .await;
        let permit = OrderPermit(self.clone());
        drop(turn);
        while let Some(delay_ms) = self.delay_ms() {
            net::sleep(Duration::from_millis(delay_ms)).await;
        }
        permit
    }

    /// Wakes the one who waits longest, if it can go on.
    fn wake_next(&self) {
        if self.free.get() > 0 {
            let mut waiting = self.waiting.borrow_mut();
            let waker = waiting.first_entry().and_then(|mut first| first.get_mut().take());
            drop(waiting);
            waker.into_iter().for_each(Waker::wake);
        }
    }

    /// How long the next order has to wait; `None`: it begins now.
    fn delay_ms(&self) -> Option<u64> {
        let (now_ms, mut starts) = (clock::now_ms(), self.starts_ms.borrow_mut());
        while starts.front().is_some_and(|start| start + WINDOW_MS <= now_ms) {
            starts.pop_front();
        }
        if starts.len() >= STARTS_MAX {
            return starts.front().map(|start| start + WINDOW_MS - now_ms);
        }
        starts.push_back(now_ms);
        None
    }
}

impl Drop for OrderPermit {
    fn drop(&mut self) {
        self.0.free.set(self.0.free.get() + 1);
        self.0.wake_next();
    }
}

/// The place of one who waits. Its drop lets the next one go on.
struct OrderTurn<'a> {
    orders: &'a AccountOrders,
    number: u64,
}

impl<'a> OrderTurn<'a> {
    fn new(orders: &'a AccountOrders) -> Self {
        let number = orders.last_turn.get() + 1;
        orders.last_turn.set(number);
        orders.waiting.borrow_mut().insert(number, None);
        Self { orders, number }
    }

    fn is_next(&self) -> bool {
        self.orders
            .waiting
            .borrow()
            .first_key_value()
            .is_some_and(|(first, _)| *first == self.number)
    }
}

impl Drop for OrderTurn<'_> {
    fn drop(&mut self) {
        self.orders.waiting.borrow_mut().remove(&self.number);
        self.orders.wake_next();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_longest_is_next_and_who_gives_up_blocks_nobody() {
        net::run(async {
            net::testing::stop_clock();
            let orders = AccountOrders::new();
            let mut held = Vec::new();
            for _ in 0..ORDERS_MAX {
                held.push(orders.permit().await);
            }
            let begun = Rc::new(RefCell::new(Vec::new()));
            let mut tasks = Vec::new();
            for number in 0..4 {
                let (orders, begun) = (orders.clone(), begun.clone());
                tasks.push(net::spawn(async move {
                    let _permit = orders.permit().await;
                    begun.borrow_mut().push(number);
                }));
                net::testing::settle().await;
            }
            tasks.remove(0).stop();
            tasks.remove(1).stop();
            drop(held.pop());
            net::testing::settle().await;
            assert_eq!(*begun.borrow(), [1, 3]);
            assert_eq!((orders.free.get(), orders.waiting.borrow().len()), (1, 0));
        })
        .unwrap();
    }

    #[test]
    fn many_orders_begin_one_after_the_other() {
        net::run(async {
            net::testing::stop_clock();
            let orders = AccountOrders::new();
            let (running, begun) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
            for _ in 0..100 {
                let (orders, running, begun) = (orders.clone(), running.clone(), begun.clone());
                net::spawn(async move {
                    let _permit = orders.permit().await;
                    running.set(running.get() + 1);
                    assert!(running.get() <= ORDERS_MAX);
                    begun.set(begun.get() + 1);
                    net::sleep(Duration::from_millis(100)).await;
                    running.set(running.get() - 1);
                });
            }
            net::testing::advance(WINDOW_MS - 1).await;
            assert_eq!(begun.get(), STARTS_MAX);
            net::testing::advance(10 * WINDOW_MS).await;
            assert_eq!((begun.get(), running.get()), (100, 0));
        })
        .unwrap();
    }
}
