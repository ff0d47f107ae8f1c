//! Protocol machines: bytes and a time in; events, bytes and a deadline out.
//!
//! Deliberately absent: sockets, clocks, threads, configuration, and the standard library itself.
#![no_std]
extern crate alloc;

pub mod date;
pub mod dns;
#[doc(hidden)]
pub mod fuzz;
pub mod host;
pub mod http1;
mod known;
mod method;
pub mod proxy_protocol;
mod slice;
pub mod uri;
mod version;

pub use known::Known;
pub use method::Method;
pub use slice::Slice;
pub use version::Version;
