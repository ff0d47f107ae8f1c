//! What to obtain, from whom, and as whom.

use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;

use super::challenge::ChallengeKind;
use super::jws::{AcmeCrypto, ExternalAccount};
use crate::signer::Signer;
use crate::x509::SubjectName;

/// An order to be made, or the one under way.
#[derive(Clone, Debug)]
pub struct OrderPlan {
    pub directory_url: String,
    pub account: AcmeAccount,
    /// The names of the certificate; at least one.
    pub names: Vec<SubjectName>,
    /// The key of the certificate. It must be the same when an order is resumed.
    pub key: Rc<dyn Signer>,
    /// Whether the request for the certificate has a common name.
    pub has_common_name: bool,
    /// The kinds of challenges that can be answered, the best first.
    pub challenges: Vec<ChallengeKind>,
    pub profile: Option<AcmeProfile>,
    /// The [`renewal_id`](super::renewal_id) of the certificate that the new one replaces.
    pub replaces: Option<String>,
    /// The chain to choose: the common name of the issuer of its last certificate.
    pub preferred_chain: Option<String>,
    /// The URL of the order under way, if there is one.
    pub stored_order: Option<String>,
    pub crypto: Rc<dyn AcmeCrypto>,
}

/// The account at the certificate authority.
#[derive(Clone, Debug)]
pub struct AcmeAccount {
    pub key: Rc<dyn Signer>,
    /// Its URL, if it is known. Otherwise the server is asked, and creates an account.
    pub url: Option<String>,
    /// URLs such as `mailto:admin@example.com`.
    pub contact: Vec<String>,
    /// Whether the user accepts the terms of service.
    pub accepts_terms: bool,
    pub external: Option<ExternalAccount>,
    /// Whether an account is only looked up, never created.
    pub only_existing: bool,
}

/// The kind of certificate, by a name of the server's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcmeProfile {
    pub name: String,
    /// Whether to fail if the server does not offer it; otherwise its default is used.
    pub is_required: bool,
}
