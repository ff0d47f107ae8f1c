//! Notices clients that panic, because the run would wait for their replies for ever.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// Whether a client of a thread has panicked.
#[derive(Default)]
pub(super) struct ClientPanics {
    has_any: Cell<bool>,
    watcher: RefCell<Option<Waker>>,
}

/// Records a panic if it is dropped while unwinding.
struct PanicGuard(Rc<ClientPanics>);

impl ClientPanics {
    /// Runs a client, and notes if it panics.
    pub(super) async fn watch(self: Rc<Self>, client: impl Future<Output = ()>) {
        let _guard = PanicGuard(self);
        client.await;
    }

    /// Ready once a client has panicked.
    pub(super) fn poll_any(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.has_any.get() {
            return Poll::Ready(());
        }
        let mut watcher = self.watcher.borrow_mut();
        if !watcher.as_ref().is_some_and(|watcher| watcher.will_wake(cx.waker())) {
            *watcher = Some(cx.waker().clone());
        }
        Poll::Pending
    }
}

impl Drop for PanicGuard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.has_any.set(true);
            if let Some(watcher) = self.0.watcher.take() {
                watcher.wake();
            }
        }
    }
}
