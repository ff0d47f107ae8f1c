//! What a connection and its streams share.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use wire::http2::Http2Endpoint;

use super::ready::StreamWaker;

/// What a connection and its streams share.
pub(super) struct Http2Shared {
    pub(super) endpoint: RefCell<Http2Endpoint>,
    /// Bytes of bodies that have come and were not read, on all streams.
    pub(super) unread: Cell<usize>,
    /// Streams that wait for room in the output.
    waiting: RefCell<Vec<Arc<StreamWaker>>>,
}

impl Http2Shared {
    pub(super) fn new(endpoint: Http2Endpoint) -> Self {
        let (unread, waiting) = (Cell::new(0), RefCell::default());
        Self { endpoint: RefCell::new(endpoint), unread, waiting }
    }

    pub(super) fn into_endpoint(self) -> Http2Endpoint {
        self.endpoint.into_inner()
    }

    /// A stream waits for room in the output.
    pub(super) fn wait_for_room(&self, waker: &Arc<StreamWaker>) {
        self.waiting.borrow_mut().push(waker.clone());
    }

    /// There is room: streams that wait for it run.
    pub(super) fn give_room(&self) {
        self.waiting.borrow_mut().drain(..).for_each(|waker| waker.make_ready());
    }
}
