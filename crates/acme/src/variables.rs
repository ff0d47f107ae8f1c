//! `$acme_certificate` and its key: the texts of the certificate that the server shows.

use std::marker::PhantomData;

use session::Session;
use session::variables::BuiltIn;
use tls::{CertificateSlot, SlotCertificate};

/// A session whose server may have a slot.
pub trait HasCertificateSlot: Session {
    fn certificate_slot(&self) -> Option<&CertificateSlot>;
}

/// The variables of both subsystems.
pub struct AcmeVariables<X>(PhantomData<X>);

impl<X: HasCertificateSlot> AcmeVariables<X> {
    pub const TABLE: &[BuiltIn<X>] = &[
        BuiltIn::fresh(
            "acme_certificate",
            "The certificate that `acme_certificate` has obtained, for `ssl_certificate`.",
            |x, out| write(x, out, |certificate| &certificate.chain),
        ),
        BuiltIn::fresh(
            "acme_certificate_key",
            "The key of `$acme_certificate`, for `ssl_certificate_key`.",
            |x, out| write(x, out, |certificate| &certificate.key),
        ),
    ];
}

/// As in nginx-acme, with the scheme that `ssl_certificate` has for texts.
fn write<X: HasCertificateSlot>(
    x: &X,
    out: &mut Vec<u8>,
    text: impl FnOnce(&SlotCertificate) -> &Vec<u8>,
) -> bool {
    let Some(certificate) = x.certificate_slot().and_then(CertificateSlot::current) else {
        return false;
    };
    out.extend_from_slice(b"data:");
    out.extend_from_slice(text(&certificate));
    true
}
