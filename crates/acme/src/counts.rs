//! Counters of orders, shared by the processes of a master.

use metrics::{Metric, Tally};

metrics::counts! {
    /// The orders at one issuer.
    pub(crate) struct AcmeOrderCounters of AcmeOrders = 27 {
        /// Certificates that were obtained.
        obtained: Tally,
        failed: Tally,
    }
}

impl AcmeOrders {
    pub(crate) fn of(issuer: &str) -> Metric<Self> {
        Metric::named(issuer.as_bytes())
    }
}
