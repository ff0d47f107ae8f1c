//! Protocol machines: bytes and a time in; events, bytes and a deadline out.
//!
//! Deliberately absent: sockets, clocks, threads, configuration, and the standard library itself.
#![no_std]
extern crate alloc;

pub mod accept_encoding;
pub mod acme;
pub mod base64;
pub mod cgi;
pub mod client_hello;
pub mod date;
pub mod der;
pub mod der_writer;
pub mod dns;
pub mod encrypted_key;
pub mod fastcgi;
mod field_line;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzz;
pub mod grpc;
pub mod host;
pub mod hpack;
pub mod http1;
pub mod http2;
pub mod json;
mod known;
pub mod memcached;
mod method;
mod name_table;
pub mod ocsp;
pub mod pem;
pub mod protobuf;
pub mod proxy_protocol;
pub mod range;
pub mod reply;
pub mod request;
pub mod resp;
pub mod scgi;
pub mod signer;
mod slice;
mod status;
pub mod tls;
pub mod trace_context;
pub mod uri;
pub mod uwsgi;
mod version;
mod words;
pub mod x509;
pub mod xds;

pub use known::Known;
pub use method::Method;
pub use slice::Slice;
pub use status::status_text;
pub use version::Version;
