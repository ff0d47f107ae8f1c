//! An HTTP client for the requests that Weir itself has: to OCSP responders, certificate
//! authorities, registries of servers, collectors.
//!
//! [`Fetcher::send`] sends one request of HTTP/1.1 over TCP, TLS or a Unix socket and reads the
//! reply into memory. Every wait and every size has a limit ([`FetchLimits`]), so no peer can hold
//! a caller for longer or make it keep more than the caller wants. Dropping the future closes the
//! connection. A fetcher keeps a few idle connections for further requests to the same origins.
//! [`GrpcCaller::call`] makes a unary call of gRPC in the same way, over HTTP/2.
//!
//! Deliberately absent: groups of servers and balancing, redirects, cookies, proxies, content
//! codings, bodies that do not fit in memory. Names are looked up by the caller's resolver, never
//! by the system, which would block the worker.

mod error;
mod exchange;
mod fetcher;
mod grpc;
mod kept;
mod limits;
mod opening;
mod progress;
mod reply;
mod request;
mod response;
#[cfg(test)]
mod tests;
mod tls;

pub use error::{FetchError, FetchFault, FetchStep};
pub use fetcher::{FetchSettings, Fetcher};
pub use grpc::{GrpcCaller, GrpcReply};
pub use limits::FetchLimits;
pub use request::{FetchOrigin, FetchRequest};
pub use response::FetchResponse;
pub use tls::{
    SYSTEM_AUTHORITIES, bare_tls_transport, grpc_tls_transport, tls_transport, trust_in,
};
