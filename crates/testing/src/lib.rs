//! What tests share: temporary folders, free addresses, scripted peers, a store for several
//! machines, spans as a collector gets them, and the program in a folder of its own.
//!
//! Only tests use this crate. It is made of the standard library alone, so that every crate can use
//! it. Whatever goes wrong here fails the test: it panics.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod addresses;
mod folder;
mod peer;
mod program;
mod server;
mod spans;
mod store;

pub use addresses::{connect, connected_pair, free_address};
pub use folder::Folder;
pub use peer::{Peer, PeerConnection, field};
pub use program::{TestProcess as Running, complaint, is_root, kill, output};
pub use server::TestServer as Server;
pub use spans::{ReceivedSpan, ReceivedSpans};
pub use store::{FakeStore, take_store_command};

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// How long anything may take; a slow machine shared by others is not a failure.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// The time between two looks at a condition.
const LOOK: Duration = Duration::from_millis(5);

/// Waits until `look` returns a value.
pub fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(Instant::now() < end, "still no {what}");
        thread::sleep(LOOK);
    }
}

/// The result of work that may block.
pub fn in_time<T: Send + 'static>(what: &str, work: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, done) = mpsc::channel();
    thread::spawn(move || sender.send(work()));
    done.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("still no {what}"))
}

/// The body of an HTTP/1 reply.
pub fn body(reply: &str) -> &str {
    reply.split_once("\r\n\r\n").map_or("", |(_, body)| body)
}
