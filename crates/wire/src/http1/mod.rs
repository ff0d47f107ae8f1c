//! HTTP/1 (RFC 9112) for servers and clients, with nginx's choices where the RFC leaves one.

pub mod chunked;
pub mod framing;
pub mod request;
pub mod response;
