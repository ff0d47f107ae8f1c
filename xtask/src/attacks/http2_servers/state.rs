//! What the connections of a hostile server share, and what they are told.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Mutex, PoisonError};

/// What the connections of a server share.
#[derive(Default)]
pub(super) struct HostileState {
    pub(super) is_over: AtomicBool,
    /// Replies that wait for their second half.
    pub(super) held: AtomicUsize,
    /// Large replies whose clients do not read.
    pub(super) stalled: AtomicUsize,
    pub(super) senders: Mutex<Vec<Sender<ServerEvent>>>,
}

/// What a connection reads from its client, or is told.
pub(super) enum ServerEvent {
    /// A request, with the first bytes of its header block.
    Request(u32, Vec<u8>),
    WindowUpdate(u32, u32),
    Ping(Vec<u8>),
    Closed,
    Release,
    Over,
}

impl HostileState {
    pub(super) fn tell(&self, event: impl Fn() -> ServerEvent) {
        let senders = self.senders.lock().unwrap_or_else(PoisonError::into_inner);
        senders.iter().for_each(|sender| drop(sender.send(event())));
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }
}
