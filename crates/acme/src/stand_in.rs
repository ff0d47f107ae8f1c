//! Certificates that sign themselves: shown until there is another one, and as the answer to the
//! challenge tls-alpn-01.

use net::tls::Credential;
use net::{KeyPair, NewKey, clock, system};
use observe::Level;
use wire::pem;
use wire::x509::{SelfSigned, SubjectName, ValidityPeriod};

/// How long a stand-in is valid, from a day ago.
const VALIDITY_S: i64 = 90 * DAY_S;
const DAY_S: i64 = 24 * 60 * 60;

/// The certificate that is shown while there is no other. That is logged.
pub(crate) fn make(names: &[SubjectName]) -> Option<Credential> {
    let first = names.first().map(ToString::to_string).unwrap_or_default();
    let made = self_signed(&first, names, None);
    match made {
        Some(_) => {
            let text = format_args!(
                "acme: no certificate for \"{first}\" yet: one that signs itself is shown"
            );
            observe::log(Level::Warn, text);
        }
        None => {
            observe::log(Level::Error, format_args!("acme: no certificate for \"{first}\" yet"));
        }
    }
    made
}

/// The answer to tls-alpn-01 (RFC 8737).
pub(crate) fn answer(name: SubjectName, digest: &[u8; 32]) -> Option<Credential> {
    self_signed("", &[name], Some(digest))
}

fn self_signed(
    common_name: &str,
    names: &[SubjectName],
    acme_digest: Option<&[u8; 32]>,
) -> Option<Credential> {
    let now_s = i64::try_from(clock::unix_ms() / 1000).unwrap_or(i64::MAX / 2);
    let key = KeyPair::generate(NewKey::EcdsaP256).ok()?;
    let validity = ValidityPeriod { not_before_s: now_s - DAY_S, not_after_s: now_s + VALIDITY_S };
    let certificate =
        SelfSigned { common_name, names, serial: system::random(), validity, acme_digest };
    let mut chain = Vec::new();
    pem::encode("CERTIFICATE", &certificate.write(&key).ok()?, &mut chain);
    Credential::read(&chain, &key.pem(), &[]).ok()
}

#[cfg(test)]
mod tests {
    use wire::x509::X509;

    use super::*;

    #[test]
    fn a_stand_in_has_all_names() {
        let names = ["a.test", "*.b.test", "::1"].map(SubjectName::of);
        let credential = make(&names).unwrap();
        let leaf = X509::parse(credential.chain().next().unwrap()).unwrap();
        assert!(names.iter().all(|name| leaf.has_subject_name(name)));
        assert!(leaf.is_self_issued());
    }
}
