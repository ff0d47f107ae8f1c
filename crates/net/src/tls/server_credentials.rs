//! The certificates of a server, and the choice for a client.

use std::sync::Arc;

use rustls::SignatureScheme;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use super::Credential;

/// The certificates of a server, or of one session.
#[derive(Debug)]
pub(super) struct ServerCredentials(Vec<Credential>);

impl ServerCredentials {
    pub(super) fn new(credentials: Vec<Credential>) -> Self {
        let mut kept: Vec<Credential> = Vec::new();
        for credential in credentials {
            let kind = credential.key.key.algorithm();
            match kept.iter_mut().find(|other| other.key.key.algorithm() == kind) {
                Some(replaced) => *replaced = credential,
                None => kept.push(credential),
            }
        }
        Self(kept)
    }

    #[cfg(test)]
    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<CertifiedKey>> {
        self.0.iter().map(|credential| &credential.key)
    }

    /// The first credential that fits the client's most preferred scheme.
    fn choose(&self, schemes: &[SignatureScheme]) -> Option<&Credential> {
        if let [only] = &*self.0 {
            return Some(only);
        }
        let fits = |scheme| {
            let signs = |one: &&Credential| one.key.key.choose_scheme(&[scheme]).is_some();
            self.0.iter().find(signs)
        };
        schemes.iter().find_map(|scheme| fits(*scheme))
    }

    /// The scheme of the handshake signature, if the client has offered these schemes.
    pub(super) fn signed_with(&self, schemes: &[SignatureScheme]) -> Option<SignatureScheme> {
        Some(self.choose(schemes)?.key.key.choose_scheme(schemes)?.scheme())
    }
}

impl ResolvesServerCert for ServerCredentials {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let credential = self.choose(hello.signature_schemes())?;
        let key = &credential.key;
        Some(match credential.staple.as_ref().and_then(|source| source.staple()) {
            None => key.clone(),
            // A copy of some kilobytes is cheap compared with a handshake.
            Some(staple) => {
                Arc::new(CertifiedKey { ocsp: Some(staple.to_vec()), ..CertifiedKey::clone(key) })
            }
        })
    }
}
