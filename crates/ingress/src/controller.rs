//! The loop in the middle: hears what the cluster says, plans, and hands the parts of the plan to
//! those who carry them out.

use std::cell::Cell;
use std::collections::BTreeMap;
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
use crate::installer::Install;
use crate::latest::LatestValue;
use crate::metrics::IngressMetrics;
use crate::settle::Settle;
use crate::statuses::StatusChange;
use crate::{Objects, Plan, ResourceKey, ResourceKind, Settings, clock, tell};

/// How often metrics are renewed.
const LOOK_MS: u64 = 1000;
/// Messages that are taken before a plan that is due.
const MESSAGES_MAX: usize = 10_000;

thread_local! {
    static IS_PLANNING: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread is making a plan, whose panic is caught.
pub(crate) fn is_planning() -> bool {
    IS_PLANNING.get()
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
    heard: Receiver<Heard>,
    cluster: Cluster,
    settle: Settle,
    groups: WantedGroups,
    plan: fn(&Objects, &Settings) -> Plan,
    failing_since_ms: Option<u64>,
    start: Instant,
    pub(crate) lists: LatestValue<WantedGroups>,
    pub(crate) installs: LatestValue<Install>,
    pub(crate) statuses: LatestValue<Vec<StatusChange>>,
    pub(crate) metrics: Arc<IngressMetrics>,
}

impl Controller {
    pub(crate) fn new(
        settings: ControllerSettings,
        plan: fn(&Objects, &Settings) -> Plan,
        heard: Receiver<Heard>,
        metrics: Arc<IngressMetrics>,
    ) -> Self {
        Self {
            settings,
            heard,
            cluster: Cluster::default(),
            settle: Settle::default(),
            groups: WantedGroups::new(),
            plan,
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
    pub(crate) fn first_plan(&mut self, until: Instant) -> Option<Install> {
        while Instant::now() < until {
            self.step();
            if let Some(install) = self.installs.take(Duration::ZERO) {
                return Some(install);
            }
        }
        None
    }

    fn step(&mut self) {
        self.hear();
        self.cluster.lines().iter().for_each(|line| tell(line));
        self.show();
        let now_ms = self.now_ms();
        if self.cluster.is_complete() && self.settle.take(now_ms) {
            self.plan();
        }
    }

    fn hear(&mut self) {
        let now_ms = self.now_ms();
        let due = self.settle.due_ms().filter(|_| self.cluster.is_complete());
        let wait = due.map_or(LOOK_MS, |due| due.saturating_sub(now_ms).min(LOOK_MS));
        let first = match self.heard.recv_timeout(Duration::from_millis(wait)) {
            Ok(first) => first,
            Err(RecvTimeoutError::Timeout) => return,
            // Every watch has ended, which none does.
            Err(RecvTimeoutError::Disconnected) => {
                return std::thread::sleep(Duration::from_millis(wait));
            }
        };
        let now_ms = self.now_ms();
        let mut next = Some(first);
        for _ in 0..MESSAGES_MAX {
            let Some(heard) = next.take() else { break };
            if self.cluster.take(heard, now_ms) {
                self.settle.changed(now_ms);
            }
            next = self.heard.try_recv().ok();
        }
        if let Some(heard) = next
            && self.cluster.take(heard, now_ms)
        {
            self.settle.changed(now_ms);
        }
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
        let began = Instant::now();
        let settings = Settings {
            now: clock::time(),
            addresses: self.addresses(),
            ..self.settings.plan.clone()
        };
        let objects = &self.cluster.objects;
        // Objects are everybody's: a fault in planning one must not stop the rest for good.
        IS_PLANNING.set(true);
        let planned = catch_unwind(AssertUnwindSafe(|| (self.plan)(objects, &settings)));
        IS_PLANNING.set(false);
        let micros = began.elapsed().as_micros() as u64;
        self.metrics.plan_micros.fetch_add(micros, Ordering::Relaxed);
        IngressMetrics::count(&self.metrics.plans);
        match planned {
            Ok(planned) => self.hand_out(planned),
            Err(_) => {
                IngressMetrics::count(&self.metrics.plan_failures);
                tell("PLANNING FAILED, which is a fault of this program; the last plan stays");
            }
        }
    }

    fn hand_out(&mut self, planned: Plan) {
        let Plan { files, groups, statuses, .. } = planned;
        self.groups = wanted(&groups, &self.groups);
        // The servers of new groups are written with the files, before the server knows them.
        self.installs.put(Install { files, groups });
        self.lists.put(self.groups.clone());
        let changes = statuses.iter().filter_map(|one| StatusChange::new(one, &self.cluster));
        self.statuses.put(changes.collect());
    }

    fn addresses(&self) -> Vec<String> {
        let mut addresses = self.settings.plan.addresses.clone();
        if let Some(key) = &self.settings.publish_service {
            addresses.extend(published(&self.cluster.objects, key));
        }
        addresses
    }
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
