//! TLS: rustls for handshakes, our own records once the keys are known.
//!
//! A [`ServerTls`] is made when the configuration is loaded, and makes a session for each
//! connection. Only this module names rustls. Deliberately absent: the choice of a connection's
//! server, and all directives.

mod certificate_compression;
mod chain;
mod client;
mod client_trust;
mod details;
mod established;
mod handshake_fault;
mod input;
mod ocsp;
mod output;
mod private_key;
pub(crate) mod record;
mod refuse;
mod server;
mod server_credentials;
mod server_trust;
mod session;
mod session_cache;
mod side;
mod tickets;
mod warm_up;

pub use chain::{ChainFault, ChainPurpose, ChainRules, RevocationLists, TrustedCertificates};
pub use client::{ClientTls, ClientTlsPlan, ClientTransport};
pub use client_trust::{ClientCertificate, ClientCertificateFault, ClientTrust};
pub use details::{OfferedByClient, SessionId, TlsDetails};
pub use handshake_fault::HandshakeFault;
pub use ocsp::{OcspFault, OcspQuestion, OcspRefusal, OcspSigners, OcspStatus, OcspVerdict};
#[cfg(any(test, feature = "testing"))]
pub(crate) use private_key::read_certificates;
pub use private_key::{
    CertificateChain, Credential, CredentialError, CredentialTexts, KeyError, PASSWORD_LENGTH_MAX,
    PrivateKey, StapleSource, read_passwords,
};
pub use refuse::{RefusedHandshake, refuse};
pub use server::{H2, ResumptionPlan, ServerTls, ServerTlsPlan};
#[cfg(any(test, feature = "testing"))]
pub(crate) use server_trust::ServerVerifier;
pub use server_trust::{CertificateFault, ServerTrust, TlsServerName, TrustedRoots};
pub use session_cache::TlsSessionCache;
pub use tickets::{RotatingTicketKeys, TicketKey, TicketKeys};
pub use warm_up::warm_up;

#[cfg(test)]
mod tests;
