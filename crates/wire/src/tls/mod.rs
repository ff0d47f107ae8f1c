//! TLS settings in OpenSSL's notation: cipher suites and groups.
//!
//! Deliberately absent: the protocol itself and all cryptography; `net::tls` has them. Only the
//! suites and groups that it implements have names here: AEAD ciphers with ephemeral keys. TLS 1.0
//! and 1.1, CBC, RSA key exchange and finite-field Diffie-Hellman do not exist.

mod ciphers;
mod groups;
mod suite;

pub use ciphers::{CipherList, CipherListError, parse_tls13_suites};
pub use groups::{GroupList, GroupListError, TlsGroup};
pub use suite::TlsSuite;

#[cfg(test)]
mod tests;
