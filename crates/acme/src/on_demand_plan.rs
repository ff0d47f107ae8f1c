//! Names that clients tell, as a configuration wants them.

use std::sync::Arc;

use conf::Load;
use net::NewKey;
use zones::{TwoProcesses, ZoneState, Zones};

use crate::issuer::AcmeIssuer;
use crate::on_demand::OnDemandNames;
use crate::on_demand_rules::OnDemandRules;
use crate::state_folder::StateFolder;

/// Names that clients tell, as a configuration has them.
#[derive(Clone)]
pub(crate) struct OnDemandPlan {
    pub(crate) names: Arc<OnDemandNames>,
    pub(crate) rules: OnDemandRules,
    pub(crate) issuers: Vec<Arc<AcmeIssuer>>,
    pub(crate) key: NewKey,
}

/// Those of a subsystem's configuration.
#[derive(Default)]
pub(crate) struct OnDemandPlans(pub(crate) Vec<OnDemandPlan>);

impl ZoneState for OnDemandPlans {
    const DIRECTIVES: &'static [&'static str] = &["acme_certificate"];
    const TWO_PROCESSES: TwoProcesses = TwoProcesses::Private;
}

/// They while the configuration is read.
#[derive(Default)]
pub(crate) struct OnDemandBook(OnDemandPlans);

impl OnDemandBook {
    /// Adds names, unless they are there.
    pub(crate) fn add(plan: OnDemandPlan, load: &mut Load<'_>) {
        let OnDemandPlans(known) = &mut load.own.of::<Self>().0;
        if !known.iter().any(|known| Arc::ptr_eq(&known.names, &plan.names)) {
            known.push(plan);
        }
    }

    /// Completes the plans. Returns whether there are any.
    pub(crate) fn finish(load: &mut Load<'_>) -> bool {
        let plans = Arc::new(std::mem::take(&mut load.own.of::<Self>().0));
        let has_any = !plans.0.is_empty();
        if has_any {
            Zones::of(load).keep(b"", |_| plans);
        }
        has_any
    }
}

impl OnDemandPlan {
    /// Whether the other one does the same.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let issuers = |one: &Self| -> Vec<_> {
            one.issuers.iter().map(|issuer| (issuer.name.clone(), issuer.text.clone())).collect()
        };
        Arc::ptr_eq(&self.names, &other.names)
            && self.rules == other.rules
            && issuers(self) == issuers(other)
    }

    pub(crate) fn folder(&self) -> &Arc<StateFolder> {
        &self.issuers[0].folder
    }
}
