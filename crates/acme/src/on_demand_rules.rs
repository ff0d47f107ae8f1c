//! `on_demand` of an issuer, as it was read.

/// `on_demand` of an issuer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OnDemandRules {
    /// Whom to ask whether a name may have a certificate.
    pub(crate) ask: String,
    pub(crate) names_max: usize,
    pub(crate) new_per_hour_max: u32,
    /// How long a handshake waits.
    pub(crate) wait_ms: u64,
    /// How long an unused name is kept up.
    pub(crate) unused_s: i64,
}
