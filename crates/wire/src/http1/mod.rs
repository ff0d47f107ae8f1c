//! HTTP/1 as a server reads it, and as a client does (RFC 9112), with nginx's choices where the RFC
//! leaves one.

pub mod chunked;
pub mod framing;
pub mod request;
pub mod response;
