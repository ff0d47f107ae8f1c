//! HTTP/2 (RFC 9113) without I/O: bytes in, events and bytes out, for servers and for clients.
//!
//! An [`Http2Endpoint`] is one end of a connection. [`Http2Endpoint::receive`] takes what arrived
//! and returns one event at a time; bytes to send accumulate in [`Http2Endpoint::output`]. The
//! endpoint keeps stream states, windows and the HPACK tables. It limits and counts what a peer
//! could abuse ([`limits`], [`counts`]). Data of DATA frames is returned as ranges of the input and
//! never copied. A client's endpoint checks heads of replies ([`reply`]); a server's driver checks
//! those of requests ([`request`]), because it answers an invalid one.
//!
//! Deliberately absent: sockets, clocks, and the bodies of messages. A driver stores data that
//! arrives, and opens a stream's window as it is read. Server push is refused on both sides.
//! Priorities (RFC 9113, section 5.3) are checked and ignored.
//!
//! Invariant: frames are encoded straight into the output in the order in which they are sent, so
//! the peer's HPACK table always agrees with ours.

pub mod counts;
mod endpoint;
mod error;
mod field_rules;
mod fields;
pub mod frame;
pub mod limits;
pub mod reply;
pub mod request;
mod settings;
mod stream;
#[cfg(test)]
mod tests;

pub use endpoint::{
    FieldWriter, Http2Endpoint, Http2Event, PartialBlock, Received, RestingEndpoint,
};
pub use error::{Http2Code, Http2Error};
pub use fields::FieldBlock;
pub use settings::{Http2Config, Http2Role, PeerSettings};
pub use stream::StreamKey;

/// The bytes with which a client begins a connection (RFC 9113, section 3.4).
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The largest flow-control window.
pub const WINDOW_MAX: u32 = (1 << 31) - 1;

/// The size of a window without SETTINGS_INITIAL_WINDOW_SIZE.
pub const WINDOW_DEFAULT: u32 = 65_535;
