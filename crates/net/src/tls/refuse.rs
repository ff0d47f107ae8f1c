//! Handshakes that are refused before rustls sees them.

use std::io::IoSlice;
use std::task::{Context, Waker};

use crate::Stream;

/// The alert for a refused handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum RefusedHandshake {
    /// The client has begun with another message.
    UnexpectedMessage = 10,
    /// A record is too long.
    RecordOverflow = 22,
    /// A message is too long.
    IllegalParameter = 47,
    /// The server has failed.
    InternalError = 80,
    /// There is no server of that name.
    UnrecognizedName = 112,
}

/// Sends a fatal alert on a connection without a session, if the socket takes it at once.
pub fn refuse(stream: &mut Stream, reason: RefusedHandshake) {
    const ALERT: u8 = 21;
    const FATAL: u8 = 2;
    let record = [ALERT, 3, 1, 0, 2, FATAL, reason as u8];
    let mut cx = Context::from_waker(Waker::noop());
    // Errors are ignored.
    let _ = stream.poll_write(&mut cx, &[IoSlice::new(&record)]);
}
