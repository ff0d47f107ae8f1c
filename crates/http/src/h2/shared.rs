//! State that a connection and its streams share.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use wire::http2::Http2Endpoint;

use super::ready::StreamWaker;

/// Bytes of bodies that a connection may hold unread before windows stay closed.
pub(super) const UNREAD_BYTES_MAX: usize = 16 * 1024 * 1024;

/// State that a connection and its streams share.
pub(super) struct Http2Shared {
    pub(super) endpoint: RefCell<Http2Endpoint>,
    /// Bytes of bodies that were received and not read, on all streams.
    unread: Cell<usize>,
    /// Streams whose windows stay closed until `unread` is smaller.
    held: RefCell<Vec<Arc<StreamWaker>>>,
    /// Streams that wait for room in the output.
    waiting: RefCell<Vec<Arc<StreamWaker>>>,
}

/// Whether a stream's window stays closed.
pub(super) enum WindowHold {
    None,
    /// It is closed from now on.
    New,
    /// It was closed before.
    Lasting,
}

impl Http2Shared {
    pub(super) fn new(endpoint: Http2Endpoint) -> Self {
        Self {
            endpoint: RefCell::new(endpoint),
            unread: Cell::new(0),
            held: RefCell::default(),
            waiting: RefCell::default(),
        }
    }

    pub(super) fn into_endpoint(self) -> Http2Endpoint {
        self.endpoint.into_inner()
    }

    /// Records that `count` bytes of a body were received.
    pub(super) fn note_unread(&self, count: usize) {
        self.unread.set(self.unread.get() + count);
    }

    /// Records that `count` bytes of a body were read or dropped.
    pub(super) fn note_read(&self, count: usize) {
        if count == 0 {
            return;
        }
        self.unread.set(self.unread.get() - count);
        if self.unread.get() <= UNREAD_BYTES_MAX {
            self.held.borrow_mut().drain(..).for_each(|waker| waker.make_ready());
        }
    }

    /// Whether a stream's window has to stay closed because too much is unread. The stream is made
    /// ready once enough was read.
    pub(super) fn wait_until_read(&self, waker: &Arc<StreamWaker>) -> WindowHold {
        if self.unread.get() <= UNREAD_BYTES_MAX {
            return WindowHold::None;
        }
        let mut held = self.held.borrow_mut();
        if held.iter().any(|held| Arc::ptr_eq(held, waker)) {
            return WindowHold::Lasting;
        }
        held.push(waker.clone());
        WindowHold::New
    }

    /// A stream waits for room in the output.
    pub(super) fn wait_for_room(&self, waker: &Arc<StreamWaker>) {
        self.waiting.borrow_mut().push(waker.clone());
    }

    /// Makes all streams ready that wait for room in the output.
    pub(super) fn give_room(&self) {
        self.waiting.borrow_mut().drain(..).for_each(|waker| waker.make_ready());
    }
}
