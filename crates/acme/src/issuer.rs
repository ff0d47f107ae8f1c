//! An issuer as its block describes it.

use std::sync::Arc;

use net::NewKey;
use upstream::ResolverPolicy;
use wire::acme::{AcmeProfile, ChallengeKind, ExternalAccount};

use crate::on_demand_rules::OnDemandRules;
use crate::state_folder::StateFolder;

pub(crate) struct AcmeIssuer {
    pub(crate) name: String,
    /// The URL of the directory.
    pub(crate) uri: String,
    pub(crate) account_key: AccountKey,
    /// What can be answered, the best first.
    pub(crate) challenges: Vec<ChallengeKind>,
    pub(crate) has_common_name: bool,
    pub(crate) contact: Vec<String>,
    pub(crate) accepts_terms: bool,
    pub(crate) external: Option<ExternalAccount>,
    pub(crate) profile: Option<AcmeProfile>,
    pub(crate) preferred_chain: Option<String>,
    pub(crate) trust: IssuerTrust,
    pub(crate) folder: Arc<StateFolder>,
    /// How certificates are obtained for names that clients tell; `None`: they are not.
    pub(crate) on_demand: Option<OnDemandRules>,
    /// The resolver's settings; without name servers, the system's resolver is used.
    pub(crate) names: ResolverPolicy,
    /// The text of the block: another text is another issuer.
    pub(crate) text: Vec<u8>,
}

pub(crate) enum AccountKey {
    /// Made when it is needed, and stored.
    Made(NewKey),
    /// The text of a file.
    File(Vec<u8>),
}

/// Who signs the certificate of the ACME server.
pub(crate) enum IssuerTrust {
    /// It is not verified.
    Any,
    /// The text of a file with certificates.
    Authorities(Arc<[u8]>),
}
