//! The events of one lookup, from its sockets.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::task::{Poll, Waker};

use wire::dns::Response;

#[derive(Debug)]
pub(super) enum InboxEvent {
    Response {
        /// The position of the question in the lookup.
        question: usize,
        /// The position of the name server in the list.
        server: usize,
        response: Response,
    },
    /// A name server that cannot be reached.
    Lost {
        /// The position of the name server in the list.
        server: usize,
    },
}

#[derive(Default)]
pub(super) struct Inbox {
    events: RefCell<VecDeque<InboxEvent>>,
    waker: RefCell<Option<Waker>>,
}

impl Inbox {
    pub(super) fn put(&self, event: InboxEvent) {
        self.events.borrow_mut().push_back(event);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    pub(super) async fn next(&self) -> InboxEvent {
        poll_fn(|cx| match self.events.borrow_mut().pop_front() {
            Some(event) => Poll::Ready(event),
            None => {
                self.waker.replace(Some(cx.waker().clone()));
                Poll::Pending
            }
        })
        .await
    }
}
