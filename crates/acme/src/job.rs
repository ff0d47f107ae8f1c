//! The job of the control thread: keepers of all certificates of the newest configuration.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use net::Task;
use session::ControlJob;
use session::steering::SteeringCall;
use wire::acme::ChallengeKind;
use zones::Zones;

use crate::account::IssuerInUse;
use crate::certificate::CertificateKeeper;
use crate::challenges::PublishedChallenges;
use crate::desk::RequestDesk;
use crate::issuer::AcmeIssuer;
use crate::leftovers;
use crate::on_demand_keeper::OnDemandKeeper;
use crate::on_demand_plan::{OnDemandPlan, OnDemandPlans};
use crate::plan::{AcmeCertificate, AcmePlan};
use crate::shown;
use crate::state_folder::StateFolder;

/// How often folders are looked at for what other processes have changed.
const WATCH_INTERVAL: Duration = Duration::from_secs(10);

/// Obtains and renews the certificates of the program.
#[derive(Default)]
pub struct AcmeJob {
    keepers: Vec<(Rc<CertificateKeeper>, Task)>,
    issuers: Vec<Rc<IssuerInUse>>,
    on_demand: Vec<Rc<OnDemandKeeper>>,
    watches: Vec<Task>,
    desk: RequestDesk,
}

impl<S> ControlJob<S> for AcmeJob {
    /// Shows the stored certificates and starts the tasks that keep them, without waiting for an
    /// authority.
    fn adopt(&mut self, _: &S, zones: &Zones) {
        let plans = zones.all::<AcmePlan>();
        let wanted = plans.iter().flat_map(|plan| &plan.certificates);
        let before = std::mem::take(&mut self.keepers);
        let issuers_before = std::mem::take(&mut self.issuers);
        let mut before: HashMap<_, _> =
            before.into_iter().map(|kept| (kept.0.certificate.place(), kept)).collect();
        for certificate in wanted {
            let issuers = self.issuers_of(&certificate.issuers, &issuers_before);
            let kept = match before.remove(&certificate.place()) {
                Some((keeper, task)) if keeper.certificate.is_same(certificate) => {
                    // The stored state may have changed.
                    keeper.urge();
                    (keeper, task)
                }
                other => {
                    other.iter().for_each(|(_, task)| task.stop());
                    start(certificate, issuers)
                }
            };
            self.keepers.push(kept);
        }
        before.into_values().for_each(|(_, task)| task.stop());
        let demanded = zones.all::<OnDemandPlans>();
        let demanded = demanded.iter().flat_map(|plans| &plans.0).collect();
        self.adopt_on_demand(demanded, &issuers_before);
        let all = self.keepers.iter().map(|(keeper, _)| keeper.certificate.clone());
        let names = self.on_demand.iter().map(|keeper| keeper.plan().names.clone());
        shown::set(all.collect(), names.collect());
        self.watch();
    }

    fn called(&mut self, call: SteeringCall) -> Option<SteeringCall> {
        let keepers = self.keepers.iter().map(|(keeper, _)| keeper.clone());
        let demanded = self.on_demand.iter().flat_map(|one| one.keepers());
        self.desk.called(call, keepers.chain(demanded).collect(), self.on_demand.clone())
    }

    /// Another process may serve already, and keep the same certificates.
    fn leave(&mut self) {
        self.keepers.drain(..).for_each(|(_, task)| task.stop());
        self.on_demand.drain(..).for_each(|keeper| keeper.stop());
        self.watches.drain(..).for_each(|task| task.stop());
    }
}

fn start(
    certificate: &AcmeCertificate,
    issuers: Vec<Rc<IssuerInUse>>,
) -> (Rc<CertificateKeeper>, Task) {
    let keeper = CertificateKeeper::new(certificate.clone(), issuers);
    keeper.show_stored();
    let task = net::spawn(keeper.clone().run());
    (keeper, task)
}

impl AcmeJob {
    /// Goes on with the names that clients tell. Two keepers never have the same names.
    fn adopt_on_demand(&mut self, wanted: Vec<&OnDemandPlan>, issuers: &[Rc<IssuerInUse>]) {
        let (kept, gone): (Vec<_>, Vec<_>) = std::mem::take(&mut self.on_demand)
            .into_iter()
            .partition(|keeper| wanted.iter().any(|plan| plan.is_same(keeper.plan())));
        gone.into_iter().for_each(|keeper| keeper.stop());
        for plan in wanted {
            let issuers = self.issuers_of(&plan.issuers, issuers);
            let same = kept.iter().find(|keeper| plan.is_same(keeper.plan())).cloned();
            let keeper = same.unwrap_or_else(|| OnDemandKeeper::start(plan.clone(), issuers));
            self.on_demand.push(keeper);
        }
    }

    /// The issuers of a certificate, which it shares with others.
    fn issuers_of(
        &mut self,
        wanted: &[Arc<AcmeIssuer>],
        before: &[Rc<IssuerInUse>],
    ) -> Vec<Rc<IssuerInUse>> {
        let find = |list: &[Rc<IssuerInUse>], issuer: &AcmeIssuer| {
            let is_same = |one: &&Rc<IssuerInUse>| {
                one.issuer.name == issuer.name && one.issuer.text == issuer.text
            };
            list.iter().find(is_same).cloned()
        };
        let mut issuers = Vec::new();
        for issuer in wanted {
            let in_use = find(&self.issuers, issuer).unwrap_or_else(|| {
                let in_use = find(before, issuer);
                let in_use = in_use.unwrap_or_else(|| IssuerInUse::new(issuer.clone()));
                self.issuers.push(in_use.clone());
                in_use
            });
            issuers.push(in_use);
        }
        issuers
    }

    /// Watches the folders.
    fn watch(&mut self) {
        self.watches.drain(..).for_each(|task| task.stop());
        let mut folders: BTreeMap<String, (Arc<StateFolder>, Keepers)> = BTreeMap::new();
        for (keeper, _) in &self.keepers {
            let folder = keeper.certificate.folder();
            let (_, keepers) = folders
                .entry(folder.shown())
                .or_insert_with(|| (folder.clone(), Keepers::default()));
            keepers.insert(keeper.certificate.stem.clone(), keeper.clone());
        }
        for keeper in &self.on_demand {
            let folder = keeper.plan().folder();
            let empty = || (folder.clone(), Keepers::default());
            folders.entry(folder.shown()).or_insert_with(empty);
        }
        let all: Vec<_> = folders.values().map(|(folder, _)| folder.clone()).collect();
        let answers_tls =
            |one: &Rc<IssuerInUse>| one.issuer.challenges.contains(&ChallengeKind::TlsAlpn01);
        PublishedChallenges::of_process()
            .look_in(all.clone(), self.issuers.iter().any(answers_tls));
        if !all.is_empty() {
            let withdrawing = leftovers::withdraw_all(all, self.issuers.clone());
            self.watches.push(net::spawn(withdrawing));
        }
        for (folder, keepers) in folders.into_values() {
            if let StateFolder::Disk(_) = *folder {
                let demanded = self.on_demand.clone();
                self.watches.push(net::spawn(watch(folder, keepers, demanded)));
            }
        }
    }
}

/// By stem.
type Keepers = HashMap<String, Rc<CertificateKeeper>>;

/// Tells keepers that another process has changed their certificate.
async fn watch(folder: Arc<StateFolder>, keepers: Keepers, demanded: Vec<Rc<OnDemandKeeper>>) {
    let mut seen_folder = None;
    let mut seen: HashMap<String, SystemTime> = HashMap::new();
    loop {
        net::sleep(WATCH_INTERVAL).await;
        let state = folder.clone();
        let before = seen_folder;
        let read = net::offload(move || {
            let changed = state.changed();
            (changed != before).then(|| (changed, state.manifests().unwrap_or_default()))
        });
        let Some((changed, manifests)) = read.await else { continue };
        seen_folder = changed;
        for (stem, time) in manifests {
            let known = keepers.get(&stem).cloned();
            let known = known.or_else(|| demanded.iter().find_map(|one| one.keeper_of(&stem)));
            if let Some(keeper) = known
                && seen.insert(stem, time).is_none_or(|before| before != time)
            {
                keeper.urge();
            }
        }
    }
}
