//! Handshakes that end before rustls sees them.

use std::io::IoSlice;
use std::task::{Context, Waker};

use crate::Stream;

/// Why there is no handshake: the alert that the client is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum RefusedHandshake {
    /// The client began with something else.
    UnexpectedMessage = 10,
    /// A record is longer than one may be.
    RecordOverflow = 22,
    /// A message is longer than any that is read.
    IllegalParameter = 47,
    /// Something is wrong here.
    InternalError = 80,
    /// There is no server with that name.
    UnrecognizedName = 112,
}

/// Sends a fatal alert on a connection without a session, if the socket takes it at once.
pub fn refuse(stream: &mut Stream, reason: RefusedHandshake) {
    const ALERT: u8 = 21;
    const FATAL: u8 = 2;
    let record = [ALERT, 3, 1, 0, 2, FATAL, reason as u8];
    let mut cx = Context::from_waker(Waker::noop());
    // Nobody is told where it cannot be.
    let _ = stream.poll_write(&mut cx, &[IoSlice::new(&record)]);
}
