//! A place for a certificate that changes while it is served: `$acme_certificate`.
//!
//! A configuration has the slot, not the certificate, so a new certificate needs no reload and
//! reaches all workers at once. Deliberately absent: where certificates come from.

use std::fmt;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use net::tls::Credential;

use super::on_demand::OnDemandCertificates;

/// Makes the certificate that is shown while there is no other.
pub type MakeStandIn = Box<dyn Fn() -> Option<Credential> + Send + Sync>;

pub struct CertificateSlot {
    current: RwLock<Option<Arc<SlotCertificate>>>,
    stand_in: OnceLock<Option<Credential>>,
    make_stand_in: MakeStandIn,
    /// Certificates that are shown instead to clients that name one of their names.
    on_demand: Option<Arc<dyn OnDemandCertificates>>,
}

/// A certificate with its texts.
#[derive(Debug)]
pub struct SlotCertificate {
    pub credential: Credential,
    /// The chain, in PEM.
    pub chain: Vec<u8>,
    /// The private key, in PEM.
    pub key: Vec<u8>,
}

impl CertificateSlot {
    pub fn new(make_stand_in: MakeStandIn) -> Self {
        let (current, stand_in) = (RwLock::default(), OnceLock::new());
        Self { current, stand_in, make_stand_in, on_demand: None }
    }

    /// The same for a server whose clients name hosts that the configuration does not have.
    pub fn with_on_demand(
        make_stand_in: MakeStandIn,
        on_demand: Arc<dyn OnDemandCertificates>,
    ) -> Self {
        Self { on_demand: Some(on_demand), ..Self::new(make_stand_in) }
    }

    /// The certificates for names that clients tell.
    pub fn on_demand(&self) -> Option<&Arc<dyn OnDemandCertificates>> {
        self.on_demand.as_ref()
    }

    /// Shows this certificate from the next handshake on.
    pub fn put(&self, certificate: SlotCertificate) {
        let certificate = Some(Arc::new(certificate));
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = certificate;
    }

    /// Shows the stand-in from the next handshake on.
    pub fn clear(&self) {
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// The certificate; `None`: there is none yet.
    pub fn current(&self) -> Option<Arc<SlotCertificate>> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What a handshake shows: the certificate, or its stand-in, which is made when it is needed.
    /// `None`: it cannot be made.
    pub fn credential(&self) -> Option<Credential> {
        match self.current() {
            Some(certificate) => Some(certificate.credential.clone()),
            None => self.stand_in.get_or_init(&self.make_stand_in).clone(),
        }
    }
}

impl fmt::Debug for CertificateSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CertificateSlot").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

    use net::testing::tls::{ECDSA_CERTIFICATE, ECDSA_KEY, RSA_CERTIFICATE, RSA_KEY};

    use super::*;

    fn credential(chain: &str, key: &str) -> Credential {
        Credential::read(chain.as_bytes(), key.as_bytes(), &[]).unwrap()
    }

    #[test]
    fn a_stand_in_is_made_once_and_only_when_it_is_needed() {
        let made = Arc::new(AtomicU32::new(0));
        let count = made.clone();
        let slot = CertificateSlot::new(Box::new(move || {
            count.fetch_add(1, Relaxed);
            Some(credential(RSA_CERTIFICATE, RSA_KEY))
        }));
        assert_eq!(made.load(Relaxed), 0);
        assert!(slot.credential().is_some() && slot.credential().is_some());
        assert_eq!(made.load(Relaxed), 1);
        assert!(slot.current().is_none());
    }

    #[test]
    fn a_certificate_replaces_the_one_before() {
        let slot = CertificateSlot::new(Box::new(|| None));
        assert!(slot.credential().is_none());
        for (chain, key) in [(RSA_CERTIFICATE, RSA_KEY), (ECDSA_CERTIFICATE, ECDSA_KEY)] {
            let put = credential(chain, key);
            let expected: Vec<_> = put.chain().map(<[u8]>::to_vec).collect();
            slot.put(SlotCertificate { credential: put, chain: chain.into(), key: key.into() });
            let shown: Vec<_> = slot.credential().unwrap().chain().map(<[u8]>::to_vec).collect();
            assert_eq!(shown, expected);
        }
    }
}
