//! Certificates for names that only clients tell.
//!
//! Deliberately absent: which names may have one, and where it comes from.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use net::tls::Credential;

/// The certificate of a name, once there is one.
pub type DemandedCredential = Pin<Box<dyn Future<Output = Option<Credential>>>>;

/// Certificates by name, of which there may be more at any time.
pub trait OnDemandCertificates: fmt::Debug + Send + Sync {
    /// The certificate of a name that is known.
    fn known(&self, server_name: &[u8]) -> Option<Credential>;

    /// Asks for the certificate of a name, and waits a while for it. `None`: the handshake shows
    /// another one.
    fn demand(self: Arc<Self>, server_name: Box<[u8]>) -> DemandedCredential;
}
