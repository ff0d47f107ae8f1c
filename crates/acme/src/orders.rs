//! Limits of what one account does at once: few orders, and no burst of new ones.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
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
    waiting: RefCell<VecDeque<Waker>>,
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
            starts_ms: RefCell::default(),
        })
    }

    /// Waits until another order may begin.
    pub(crate) async fn permit(self: &Rc<Self>) -> OrderPermit {
        poll_fn(|cx| match self.free.get() {
            0 => {
                self.waiting.borrow_mut().push_back(cx.waker().clone());
                Poll::Pending
            }
            free => {
                self.free.set(free - 1);
                Poll::Ready(())
            }
        })
        .await;
        let permit = OrderPermit(self.clone());
        while let Some(delay_ms) = self.delay_ms() {
            net::sleep(Duration::from_millis(delay_ms)).await;
        }
        permit
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
        // One that has given up is woken for nothing, so all are.
        self.0.waiting.take().into_iter().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
