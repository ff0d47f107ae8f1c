//! The loop in the middle: hears what the cluster says, plans, and hands the parts of the plan to
//! those who carry them out.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use discover::{GroupKey, Report, ServerEntry, ServerList, Source, WantedGroups};
use serde_json::Value;

use crate::cluster::{Cluster, Heard};
use crate::installer::{Install, InstallOutcome, InstallReport};
use crate::latest::LatestValue;
use crate::metrics::IngressMetrics;
use crate::plan::{ServiceGroupName, owner};
use crate::refusals::Refusals;
use crate::settle::Settle;
use crate::statuses::StatusChange;
use crate::{
    Objects, Plan, PlanFaults, PlannedFiles, ResourceKey, ResourceKind, ResourceRef, Settings,
    clock, tell,
};

/// Changes are planned when it was quiet for so long, at the latest so long after the first.
const PLAN_MS: (u64, u64) = (50, 500);
/// The same for changes of endpoints alone.
const ENDPOINTS_MS: (u64, u64) = (10, 50);
/// How often metrics are renewed.
const LOOK_MS: u64 = 1000;
/// Messages that are taken before a plan that is due.
const MESSAGES_MAX: usize = 10_000;

/// The pure part: what becomes of objects.
#[derive(Clone, Copy)]
pub(crate) struct Planning {
    pub(crate) plan: fn(&Objects, &Settings) -> Plan,
    pub(crate) servers: ServersOf,
}

/// The servers of those groups whose Services are named.
type ServersOf = fn(
    &Objects,
    &BTreeSet<ServiceGroupName>,
    &BTreeSet<ResourceKey>,
) -> BTreeMap<String, Vec<String>>;

thread_local! {
    static IS_PLANNING: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread is making a plan, whose panic is caught.
pub(crate) fn is_planning() -> bool {
    IS_PLANNING.get()
}

/// What the controller hears of.
pub(crate) enum ControllerNews {
    Cluster(Heard),
    Install(InstallReport),
}

impl From<Heard> for ControllerNews {
    fn from(heard: Heard) -> Self {
        Self::Cluster(heard)
    }
}

/// The options of the controller.
#[derive(Clone, Debug)]
pub(crate) struct ControllerSettings {
    pub(crate) plan: Settings,
    /// Whose addresses statuses have, besides those of `plan`.
    pub(crate) publish_service: Option<ResourceKey>,
}

pub(crate) struct Controller {
    settings: ControllerSettings,
    heard: Receiver<ControllerNews>,
    cluster: Cluster,
    settle: Settle,
    endpoints_settle: Settle,
    groups: WantedGroups,
    /// What the groups of the last plan are of.
    services: BTreeSet<ServiceGroupName>,
    /// The groups of the configuration that the server uses: it knows no others.
    used_groups: BTreeSet<GroupKey>,
    refusals: Refusals,
    /// Why the server does not use the last plan.
    fault: Option<String>,
    /// The last plan.
    newest: Arc<Install>,
    planning: Planning,
    failing_since_ms: Option<u64>,
    start: Instant,
    pub(crate) lists: LatestValue<WantedGroups>,
    pub(crate) installs: LatestValue<Arc<Install>>,
    pub(crate) statuses: LatestValue<Vec<StatusChange>>,
    pub(crate) metrics: Arc<IngressMetrics>,
}

impl Controller {
    pub(crate) fn new(
        settings: ControllerSettings,
        planning: Planning,
        heard: Receiver<ControllerNews>,
        metrics: Arc<IngressMetrics>,
    ) -> Self {
        Self {
            settings,
            heard,
            cluster: Cluster::default(),
            settle: Settle::new(PLAN_MS.0, PLAN_MS.1),
            endpoints_settle: Settle::new(ENDPOINTS_MS.0, ENDPOINTS_MS.1),
            groups: WantedGroups::new(),
            services: BTreeSet::new(),
            used_groups: BTreeSet::new(),
            refusals: Refusals::default(),
            fault: None,
            newest: Arc::default(),
            planning,
            failing_since_ms: None,
            start: Instant::now(),
            lists: LatestValue::default(),
            installs: LatestValue::default(),
            statuses: LatestValue::default(),
            metrics,
        }
    }

    fn now_ms(&self) -> u64 {
        self.start.elapsed().as_millis() as u64
    }

    /// Runs until the process ends.
    pub(crate) fn run(mut self) {
        loop {
            self.step();
        }
    }

    /// Waits until all kinds were told, and plans once. `None`: the time is over.
    pub(crate) fn first_plan(&mut self, until: Instant) -> Option<Arc<Install>> {
        while Instant::now() < until {
            self.step();
            if let Some(install) = self.installs.take(Duration::ZERO) {
                return Some(install);
            }
        }
        None
    }

    /// Takes why the server refuses the last plan, and plans without the objects that are at fault.
    /// `None`: that is not enough.
    pub(crate) fn next_plan(&mut self, report: InstallReport) -> Option<Arc<Install>> {
        self.installed(report);
        if self.fault.is_some() {
            return None;
        }
        self.plan();
        self.installs.take(Duration::ZERO)
    }

    fn step(&mut self) {
        self.hear();
        self.cluster.lines().iter().for_each(|line| tell(line));
        self.show();
        let now_ms = self.now_ms();
        if self.refusals.forget(&self.cluster.objects, Instant::now()) {
            self.settle.changed(now_ms);
        }
        if !self.cluster.is_complete() {
            return;
        }
        if self.settle.take(now_ms) {
            self.plan();
        } else if self.endpoints_settle.take(now_ms) {
            self.list_endpoints();
        }
    }

    fn hear(&mut self) {
        let now_ms = self.now_ms();
        let due =
            [self.settle.due_ms(), self.endpoints_settle.due_ms()].into_iter().flatten().min();
        let due = due.filter(|_| self.cluster.is_complete());
        let wait = due.map_or(LOOK_MS, |due| due.saturating_sub(now_ms).min(LOOK_MS));
        let first = match self.heard.recv_timeout(Duration::from_millis(wait)) {
            Ok(first) => first,
            Err(RecvTimeoutError::Timeout) => return,
            // Every watch has ended, which none does.
            Err(RecvTimeoutError::Disconnected) => {
                return std::thread::sleep(Duration::from_millis(wait));
            }
        };
        self.take(first);
        for _ in 1..MESSAGES_MAX {
            let Ok(news) = self.heard.try_recv() else { break };
            self.take(news);
        }
    }

    fn take(&mut self, news: ControllerNews) {
        let now_ms = self.now_ms();
        let is_slice = matches!(
            &news,
            ControllerNews::Cluster(Heard { kind: ResourceKind::EndpointSlice, .. })
        );
        let is_change = match news {
            ControllerNews::Cluster(heard) => self.cluster.take(heard, now_ms),
            ControllerNews::Install(report) => self.installed(report),
        };
        if is_change {
            self.settle.changed(now_ms);
        }
        if is_slice && self.cluster.have_endpoints_changed() {
            self.endpoints_settle.changed(now_ms);
        }
    }

    /// Takes what became of a plan. Returns whether that is a reason for another one.
    fn installed(&mut self, InstallReport { install, outcome }: InstallReport) -> bool {
        let fault = match outcome {
            InstallOutcome::Used => {
                self.used_groups = keys(install.groups.keys()).collect();
                self.send_lists();
                if self.fault.is_none() {
                    self.statuses.put(install.statuses.clone());
                }
                None
            }
            InstallOutcome::Refused(why, mut objects) => {
                let is_of_objects = !objects.is_empty();
                objects
                    .retain(|object, _| is_unchanged(object, &install.files, &self.newest.files));
                if is_of_objects && objects.is_empty() {
                    // The newest plan has them as they are now.
                    return false;
                }
                if self.refusals.add(&objects, &self.cluster.objects) {
                    for ((kind, ResourceKey { namespace, name }), why) in &objects {
                        tell(&format!("{kind:?} {namespace}/{name} IS LEFT OUT: {why}"));
                    }
                    return true;
                }
                Some(format!("the server refuses it: {why}"))
            }
            InstallOutcome::Failed(why) => Some(why),
        };
        let is_new = self.fault != fault;
        self.fault = fault;
        if let Some(fault) = self.fault.as_ref().filter(|_| is_new) {
            tell(&format!("THE CONFIGURATION IS NOT IN USE, an older one stays: {fault}"));
        }
        is_new
    }

    fn show(&mut self) {
        let now_ms = self.now_ms();
        let is_failing = self.cluster.error().is_some() || !self.cluster.is_complete();
        let since = is_failing.then(|| self.failing_since_ms.unwrap_or(now_ms));
        self.failing_since_ms = since;
        let age = since.map_or(0, |since| now_ms - since);
        self.metrics.age_ms.store(age, Ordering::Relaxed);
        let counts = self.cluster.counts();
        *self.metrics.kinds.lock().unwrap_or_else(PoisonError::into_inner) = counts;
    }

    fn plan(&mut self) {
        let refused = self.refusals.all();
        self.metrics.left_out.store(refused.len() as u64, Ordering::Relaxed);
        let began = Instant::now();
        let settings = Settings {
            now: clock::time(),
            addresses: self.addresses(),
            faults: PlanFaults { refused, last: self.fault.clone() },
            ..self.settings.plan.clone()
        };
        let (planning, objects) = (self.planning, &self.cluster.objects);
        let planned = self.guarded(|| (planning.plan)(objects, &settings));
        let micros = began.elapsed().as_micros() as u64;
        self.metrics.plan_micros.fetch_add(micros, Ordering::Relaxed);
        IngressMetrics::count(&self.metrics.plans);
        if let Some(planned) = planned {
            self.cluster.take_endpoints_changed();
            self.hand_out(planned);
        }
    }

    /// Objects are everybody's: a fault in planning one must not stop the rest for good.
    fn guarded<T>(&self, make: impl FnOnce() -> T) -> Option<T> {
        IS_PLANNING.set(true);
        let made = catch_unwind(AssertUnwindSafe(make));
        IS_PLANNING.set(false);
        if made.is_err() {
            IngressMetrics::count(&self.metrics.plan_failures);
            tell("PLANNING FAILED, which is a fault of this program; the last plan stays");
        }
        made.ok()
    }

    /// Renews the lists of Services whose endpoints have changed, on which nothing else depends.
    fn list_endpoints(&mut self) {
        let changed = self.cluster.take_endpoints_changed();
        if changed.is_empty() {
            return;
        }
        let (planning, objects) = (self.planning, &self.cluster.objects);
        let servers = self.guarded(|| (planning.servers)(objects, &self.services, &changed));
        let Some(servers) = servers else { return };
        let lists = wanted(&servers, &self.groups);
        if lists.keys().any(|key| !self.used_groups.contains(key)) {
            // What a new group begins with is a part of the plan.
            self.settle.changed(self.now_ms());
        }
        self.groups.extend(lists);
        self.send_lists();
    }

    fn hand_out(&mut self, planned: Plan) {
        let Plan { files, groups, services, statuses, listens } = planned;
        self.services = services;
        let mut wanted = wanted(&groups, &self.groups);
        // The server uses them until it has read what is planned.
        let left = std::mem::take(&mut self.groups).into_iter();
        let left = left.filter(|(key, _)| self.used_groups.contains(key));
        left.for_each(|(key, list)| _ = wanted.entry(key).or_insert(list));
        self.groups = wanted;
        let change = |one| StatusChange::new(one, &self.cluster);
        if self.fault.is_some() {
            // Nothing else has become true.
            let gateways = statuses.iter().filter(|one| one.kind == ResourceKind::Gateway);
            self.statuses.put(gateways.filter_map(change).collect());
        }
        let statuses = statuses.iter().filter_map(change).collect();
        // The servers of new groups are written with the files, before the server knows them.
        self.newest = Arc::new(Install { files, groups, listens, statuses });
        self.installs.put(self.newest.clone());
        self.send_lists();
    }

    /// The groups of the configuration that the server has begun with.
    pub(crate) fn set_used_groups(&mut self, names: impl Iterator<Item = String>) {
        let names: Vec<_> = names.collect();
        self.used_groups = keys(names.iter()).collect();
    }

    fn send_lists(&self) {
        let used = self.groups.iter().filter(|(key, _)| self.used_groups.contains(key));
        self.lists.put(used.map(|(key, list)| (key.clone(), list.clone())).collect());
    }

    fn addresses(&self) -> Vec<String> {
        let mut addresses = self.settings.plan.addresses.clone();
        if let Some(key) = &self.settings.publish_service {
            addresses.extend(published(&self.cluster.objects, key));
        }
        addresses
    }
}

/// Whether an object becomes the same in two plans.
fn is_unchanged(object: &ResourceRef, one: &PlannedFiles, other: &PlannedFiles) -> bool {
    let is_own = |file: &&String| owner(file).as_ref() == Some(object);
    let own = one.keys().chain(other.keys()).filter(is_own);
    own.into_iter().all(|file| one.get(file) == other.get(file))
}

fn keys<'n>(names: impl Iterator<Item = &'n String>) -> impl Iterator<Item = GroupKey> {
    names.filter_map(|name| GroupKey::parse(name).ok())
}

/// The lists of all groups. A list that is wrong leaves the last one in use.
fn wanted(groups: &BTreeMap<String, Vec<String>>, last: &WantedGroups) -> WantedGroups {
    let mut wanted = WantedGroups::new();
    for (name, servers) in groups {
        let key = match GroupKey::parse(name) {
            Ok(key) => key,
            Err(why) => {
                tell(&why);
                continue;
            }
        };
        let entries: Result<Vec<_>, _> = servers
            .iter()
            .map(|words| ServerEntry::from_words(&words.split_whitespace().collect::<Vec<_>>()))
            .collect();
        match entries.and_then(ServerList::new) {
            Ok(list) => _ = wanted.insert(key, list),
            Err(why) => {
                tell(&format!("{name}: {why}; the last servers stay"));
                if let Some(list) = last.get(&key) {
                    wanted.insert(key, list.clone());
                }
            }
        }
    }
    wanted
}

/// The addresses at which a Service is reached from outside, or else within the cluster.
fn published(objects: &Objects, key: &ResourceKey) -> Vec<String> {
    let Some(service) = objects.get(ResourceKind::Service, key) else { return Vec::new() };
    let texts = |values: &Value| -> Vec<String> {
        let texts = values.as_array().into_iter().flatten().filter_map(Value::as_str);
        texts.filter(|text| *text != "None").map(str::to_owned).collect()
    };
    let balanced = service["status"]["loadBalancer"]["ingress"].as_array().into_iter().flatten();
    let balanced = balanced.filter_map(|one| one["ip"].as_str().or(one["hostname"].as_str()));
    let balanced: Vec<String> = balanced.map(str::to_owned).collect();
    let spec = &service["spec"];
    let all = [balanced, texts(&spec["externalIPs"]), texts(&spec["clusterIPs"])];
    all.into_iter().find(|addresses| !addresses.is_empty()).unwrap_or_default()
}

/// The planned lists, as a source of `weir discover`, which gives them to the server.
pub(crate) struct PlannedLists(pub(crate) LatestValue<WantedGroups>);

impl Source for PlannedLists {
    fn watch(&mut self, report: Report<'_>) -> Result<Infallible, String> {
        loop {
            if let Some(groups) = self.0.take(Duration::from_millis(LOOK_MS)) {
                report(groups)?;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_wrong_list_leaves_the_last_one() {
        let groups = |server: &str| BTreeMap::from([("a".to_owned(), vec![server.to_owned()])]);
        let first = wanted(&groups("10.0.0.1:80 weight=2"), &WantedGroups::new());
        let key = GroupKey::parse("a").unwrap();
        assert_eq!(&*first[&key].json, r#"[{"server":"10.0.0.1:80","weight":2}]"#);
        let second = wanted(&groups("10.0.0.1:80 wrong=2"), &first);
        assert_eq!(first, second);
        assert!(wanted(&groups(""), &WantedGroups::new()).is_empty());
    }

    #[test]
    fn a_service_has_addresses_outside_or_else_inside() {
        let key = ResourceKey { namespace: "a".to_owned(), name: "b".to_owned() };
        let of = |service: Value| {
            let mut objects = Objects::default();
            objects.insert(ResourceKind::Service, key.clone(), service);
            published(&objects, &key)
        };
        let spec = json!({"clusterIPs": ["10.0.0.1"], "externalIPs": ["192.0.2.1"]});
        let ingress = json!([{"ip": "192.0.2.2"}, {"hostname": "a.test"}]);
        let status = json!({"loadBalancer": {"ingress": ingress}});
        assert_eq!(of(json!({"spec": spec, "status": status})), ["192.0.2.2", "a.test"]);
        assert_eq!(of(json!({"spec": spec})), ["192.0.2.1"]);
        assert_eq!(of(json!({"spec": {"clusterIPs": ["10.0.0.1"]}})), ["10.0.0.1"]);
        assert_eq!(of(json!({"spec": {"clusterIPs": ["None"]}})), [""; 0]);
        assert_eq!(published(&Objects::default(), &key), [""; 0]);
    }
}
