//! An issuer as its block describes it.

use std::sync::Arc;

use net::NewKey;
use upstream::ResolverPolicy;
use wire::acme::{AcmeProfile, ChallengeKind, ExternalAccount};

use crate::dns01::{DnsContext, DnsSettings};
use crate::on_demand_rules::OnDemandRules;
use crate::state_folder::StateFolder;

#[derive(Clone)]
pub(crate) struct AcmeIssuer {
    pub(crate) name: String,
    /// The URL of the directory.
    pub(crate) uri: String,
    /// The URL of the directory where a failed order is tried first.
    pub(crate) staging_uri: Option<String>,
    pub(crate) account_key: AccountKey,
    /// What can be answered, the best first.
    pub(crate) challenges: Vec<ChallengeKind>,
    /// Set if dns-01 is among them.
    pub(crate) dns: Option<DnsSettings>,
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

#[derive(Clone)]
pub(crate) enum AccountKey {
    /// Made when it is needed, and stored.
    Made(NewKey),
    /// The text of a file.
    File(Vec<u8>),
}

/// Who signs the certificate of the ACME server.
#[derive(Clone)]
pub(crate) enum IssuerTrust {
    /// It is not verified.
    Any,
    /// The text of a file with certificates.
    Authorities(Arc<[u8]>),
}

impl AcmeIssuer {
    /// The same issuer at its directory for trials, with the same account key.
    pub(crate) fn staging(&self) -> Option<Self> {
        let uri = self.staging_uri.clone()?;
        Some(Self { uri, staging_uri: None, ..self.clone() })
    }

    /// How its records of DNS are changed.
    pub(crate) fn dns(&self) -> Option<DnsContext<'_>> {
        self.dns.as_ref().map(|settings| DnsContext { settings, names: &self.names })
    }
}
