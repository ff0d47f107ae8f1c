//! What an exchange may ask of its client, whatever its protocol: statuses and fields, no text.

use std::io;
use std::path::PathBuf;
use std::task::{Context, Poll};

use net::memory::OutOfMemory;

use super::Fields;

/// The connection of an exchange, or its stream.
pub trait Downstream {
    /// Appends the next bytes of the request's body, at most as many as `out` has room for. 0 is
    /// the end, or that there is no room.
    fn poll_body(
        &self,
        cx: &mut Context<'_>,
        out: &mut Vec<u8>,
        rules: BodyRules,
    ) -> Poll<Result<usize, RequestBodyError>>;

    /// How many bytes the request's body has at most, if all of it is there.
    fn whole_body(&self) -> Option<u64>;

    /// Throws away what has arrived of a body that nobody will read, and what will. Whether all of
    /// it has.
    fn discard_body(&self) -> Result<bool, RequestBodyError>;

    /// Whether the client understands interim replies.
    fn takes_interim(&self) -> bool;

    /// Sends an interim reply, ahead of whatever follows; how many bytes went out at once.
    fn send_interim(&self, status: u16, fields: &Fields) -> usize;

    /// How many bytes of the request have been read, framing included: `$request_length`.
    fn request_length(&self) -> u64;
}

/// How the location in force takes bodies.
#[derive(Clone, Copy, Debug)]
pub struct BodyRules {
    /// Largest body; 0: any.
    pub size_max: u64,
    /// Time between two reads; `None`: whoever reads keeps it.
    pub timeout_ms: Option<u64>,
}

/// Why a body could not be read.
#[derive(Debug)]
pub enum RequestBodyError {
    /// It is not chunked as it should be.
    Invalid,
    /// It is not what its head says: what the client did.
    Malformed(&'static str),
    /// The next chunk makes it longer than `client_max_body_size`.
    TooLarge {
        /// Bytes before the chunk.
        received: u64,
        /// Bytes of the chunk, as far as it is known.
        chunk: u64,
    },
    /// `client_body_timeout` has passed without a byte.
    TimedOut,
    /// The client closed the connection.
    Closed,
    /// The connection failed.
    Connection(io::Error),
    /// The temporary file could not be made or written.
    File(&'static str, PathBuf, io::Error),
    /// There is no memory for it.
    NoMemory(OutOfMemory),
}
