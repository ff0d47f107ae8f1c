//! The client's connection as an exchange uses it, in any protocol: statuses and fields, no text.

use std::io;
use std::path::PathBuf;
use std::rc::Rc;
use std::task::{Context, Poll};

use net::memory::OutOfMemory;

use super::Fields;

/// The connection of an exchange, or its stream.
pub trait Downstream {
    /// Appends the next bytes of the request's body, up to the capacity of `out`. 0 is the end, or
    /// a full `out`.
    fn poll_body(
        &self,
        cx: &mut Context<'_>,
        out: &mut Vec<u8>,
        rules: BodyRules,
    ) -> Poll<Result<usize, RequestBodyError>>;

    /// The fields that followed the request's body and may be passed on, once it has ended.
    fn trailers(&self) -> Option<Rc<Fields>> {
        None
    }

    /// The largest possible size of the request's body, if all of it has arrived.
    fn whole_body(&self) -> Option<u64>;

    /// Discards the body, including the part that has not arrived. Whether all of it has arrived.
    fn discard_body(&self) -> Result<bool, RequestBodyError>;

    /// Whether the client understands interim replies.
    fn takes_interim(&self) -> bool;

    /// Sends an interim reply. Returns the number of bytes sent at once.
    fn send_interim(&self, status: u16, fields: &Fields) -> usize;

    /// The number of bytes read of the request, framing included: `$request_length`.
    fn request_length(&self) -> u64;
}

/// The current location's limits for bodies.
#[derive(Clone, Copy, Debug)]
pub struct BodyRules {
    /// Largest body; 0: any.
    pub size_max: u64,
    /// Time between two reads; `None`: the reader limits it.
    pub timeout_ms: Option<u64>,
}

/// Why a body could not be read.
#[derive(Debug)]
pub enum RequestBodyError {
    /// Its chunks are invalid.
    Invalid,
    /// It does not match its head: the client's mistake.
    Malformed(&'static str),
    /// The next chunk makes it longer than `client_max_body_size`.
    TooLarge {
        /// Bytes before the chunk.
        received: u64,
        /// Known bytes of the chunk.
        chunk: u64,
    },
    /// `client_body_timeout` has passed without a byte.
    TimedOut,
    Closed,
    Connection(io::Error),
    /// The temporary file could not be created or written.
    File(&'static str, PathBuf, io::Error),
    /// There is not enough memory for it.
    NoMemory(OutOfMemory),
}
