//! A pool of workers that serve one request each, like the threads of an application server, and a
//! first-come, first-served queue.
//!
//! As in Tomcat (`maxThreads`), requests wait without limit. If the queue has a limit
//! (`maxQueueSize` of its executor) and is full, the connection is closed without a reply.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use net::MailboxSender;

/// The workers of one address.
pub(super) struct WorkerPool {
    size: u64,
    line_max: usize,
    state: Mutex<PoolState>,
}

#[derive(Default)]
struct PoolState {
    used: u64,
    /// Waiting requests, each of which receives the number of requests being served.
    line: VecDeque<MailboxSender<u64>>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct PoolFull;

impl WorkerPool {
    /// A pool of `size` workers, with a queue of at most `line_max` requests.
    pub(super) fn new(size: u64, line_max: usize) -> Self {
        Self { size, line_max, state: Mutex::default() }
    }

    /// Waits for a worker. Returns the number of busy workers, including this one. The caller has
    /// to give it back. Dropping the future while it waits would lose a worker.
    pub(super) async fn take(&self) -> Result<u64, PoolFull> {
        let mut waiting = {
            let mut state = self.lock();
            if state.used < self.size {
                state.used += 1;
                return Ok(state.used);
            }
            if state.line.len() >= self.line_max {
                return Err(PoolFull);
            }
            let (sender, mailbox) = net::mailbox();
            state.line.push_back(sender);
            mailbox
        };
        waiting.next().await.ok_or(PoolFull)
    }

    /// Releases a worker, or hands it to the request that has waited longest.
    pub(super) fn give_back(&self) {
        let mut state = self.lock();
        match state.line.pop_front() {
            Some(next) => next.send(state.used),
            None => state.used -= 1,
        }
    }

    fn lock(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::*;

    #[test]
    fn waiting_requests_are_served_in_order() {
        net::run(async {
            let pool = Rc::new(WorkerPool::new(2, 3));
            let served = Rc::new(RefCell::new(Vec::new()));
            assert_eq!((pool.take().await, pool.take().await), (Ok(1), Ok(2)));
            for number in 0..3 {
                let (pool, served) = (pool.clone(), served.clone());
                net::spawn(async move {
                    assert_eq!(pool.take().await, Ok(2));
                    served.borrow_mut().push(number);
                });
            }
            net::yield_now().await;
            assert_eq!(pool.take().await, Err(PoolFull));
            for served_now in 1..=3 {
                pool.give_back();
                net::yield_now().await;
                net::yield_now().await;
                assert_eq!(*served.borrow(), (0..served_now).collect::<Vec<_>>());
            }
            pool.give_back();
            pool.give_back();
            assert_eq!(pool.take().await, Ok(1));
        })
        .unwrap();
    }
}
