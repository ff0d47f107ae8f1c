//! Writes the statuses of objects, if this replica leads.
//!
//! An object that has changed since the plan refuses its status (409). Its change is then on its
//! way here, and the next plan has another status for it, so nothing is tried again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use discover::{ApiServer, ApiServerPlace};
use serde_json::{Map, Value, json};

use crate::cluster::Cluster;
use crate::latest::LatestValue;
use crate::metrics::IngressMetrics;
use crate::{StatusUpdate, tell};

/// How often to look whether this replica leads.
const LOOK: Duration = Duration::from_secs(1);
/// How long a status that was written is not written again, should the API server keep another.
const SAME_AGAIN: Duration = Duration::from_secs(60);
/// How long the writer waits after a failure.
const FAILED_AGAIN: Duration = Duration::from_secs(5);

/// A status on its way to the API server.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StatusChange {
    path: String,
    patch: Value,
}

impl StatusChange {
    /// `None`: the object has gone.
    pub(crate) fn new(update: &StatusUpdate, cluster: &Cluster) -> Option<Self> {
        let object = cluster.objects.get(update.kind, &update.key)?;
        let path = cluster.status_path(update.kind, &update.key)?;
        let mut status = update.status.clone();
        if let (Some(new), Some(old)) = (status.as_object_mut(), object["status"].as_object()) {
            remove_others(new, old);
        }
        let version = &object["metadata"]["resourceVersion"];
        let patch = json!({"metadata": {"resourceVersion": version}, "status": status});
        Some(Self { path, patch })
    }
}

/// In a merge patch, null removes a field.
fn remove_others(new: &mut Map<String, Value>, old: &Map<String, Value>) {
    for name in old.keys() {
        new.entry(name.clone()).or_insert(Value::Null);
    }
}

pub(crate) struct StatusWriter {
    pub(crate) changes: LatestValue<Vec<StatusChange>>,
    pub(crate) is_leader: Arc<AtomicBool>,
    pub(crate) metrics: Arc<IngressMetrics>,
    api: ApiServer,
    /// What is to be written.
    waiting: Vec<StatusChange>,
    /// What was written last, and when.
    written: BTreeMap<String, (Value, Instant)>,
    not_before: Instant,
}

impl StatusWriter {
    pub(crate) fn new(
        place: ApiServerPlace,
        is_leader: Arc<AtomicBool>,
        metrics: Arc<IngressMetrics>,
    ) -> Self {
        Self {
            changes: LatestValue::default(),
            is_leader,
            metrics,
            api: ApiServer::new(place),
            waiting: Vec::new(),
            written: BTreeMap::new(),
            not_before: Instant::now(),
        }
    }

    /// Runs until the process ends.
    pub(crate) fn run(mut self) {
        loop {
            self.step(LOOK);
        }
    }

    fn step(&mut self, most: Duration) {
        if let Some(newer) = self.changes.take(most) {
            self.waiting = newer;
        }
        if self.is_leader.load(Ordering::SeqCst) && Instant::now() >= self.not_before {
            self.write_all();
        }
    }

    fn write_all(&mut self) {
        self.written.retain(|_, (_, at)| at.elapsed() < SAME_AGAIN);
        while let Some(change) = self.waiting.pop() {
            let is_same = self
                .written
                .get(&change.path)
                .is_some_and(|(status, _)| *status == change.patch["status"]);
            if is_same {
                continue;
            }
            if let Err(why) = self.write(&change) {
                tell(&format!("status {}: {why}", change.path));
                IngressMetrics::count(&self.metrics.status_failures);
                self.waiting.push(change);
                self.not_before = Instant::now() + FAILED_AGAIN;
                return;
            }
            if let Some(newer) = self.changes.take(Duration::ZERO) {
                self.waiting = newer;
            }
        }
    }

    /// An error means that it is to be tried again.
    fn write(&mut self, change: &StatusChange) -> Result<(), String> {
        let kind = "application/merge-patch+json";
        let reply = self.api.change("PATCH", &change.path, kind, &change.patch)?;
        match reply.status {
            200 | 201 => {
                IngressMetrics::count(&self.metrics.status_writes);
                let written = (change.patch["status"].clone(), Instant::now());
                self.written.insert(change.path.clone(), written);
                Ok(())
            }
            // The object has gone.
            404 => Ok(()),
            409 => {
                IngressMetrics::count(&self.metrics.status_conflicts);
                Ok(())
            }
            // The same text would be refused again; others may be taken.
            400 | 403 | 422 => {
                tell(&format!("status {}: {}", change.path, reply.unexpected()));
                IngressMetrics::count(&self.metrics.status_failures);
                let refused = (change.patch["status"].clone(), Instant::now());
                self.written.insert(change.path.clone(), refused);
                Ok(())
            }
            _ => Err(reply.unexpected()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use discover::{CollectionChange, HttpPlace};
    use testing::Peer;

    use super::*;
    use crate::cluster::{Heard, Told};
    use crate::{ResourceKey, ResourceKind};

    fn cluster() -> Cluster {
        let mut cluster = Cluster::default();
        let gateway = json!({"metadata": {"namespace": "a", "name": "b", "resourceVersion": "7"},
            "status": {"addresses": [], "old": 1}});
        let told = Told::Change("v1", CollectionChange::Listed(vec![gateway]));
        cluster.take(Heard { kind: ResourceKind::Gateway, told }, 0);
        cluster
    }

    fn change(status: Value) -> StatusChange {
        let key = ResourceKey { namespace: "a".to_owned(), name: "b".to_owned() };
        let update = StatusUpdate { kind: ResourceKind::Gateway, key, status };
        StatusChange::new(&update, &cluster()).unwrap()
    }

    fn writer(peer: &Peer, is_leader: bool) -> StatusWriter {
        let place = HttpPlace::parse(&format!("http://{}", peer.address), Path::new("")).unwrap();
        let place = ApiServerPlace::new(place, None);
        StatusWriter::new(place, Arc::new(is_leader.into()), Arc::default())
    }

    fn replying(status: u16) -> Peer {
        Peer::replying(&format!("HTTP/1.1 {status} X\nContent-Length: 2\n\n{{}}"))
    }

    #[test]
    fn a_status_holds_for_the_version_that_was_planned_and_replaces_all_fields() {
        let patch = change(json!({"addresses": [1]})).patch;
        let status = json!({"addresses": [1], "old": null});
        assert_eq!(patch, json!({"metadata": {"resourceVersion": "7"}, "status": status}));
    }

    #[test]
    fn only_the_leader_writes_and_the_same_status_once() {
        let peer = replying(200);
        let mut follower = writer(&peer, false);
        follower.changes.put(vec![change(json!({"new": 1}))]);
        follower.step(Duration::ZERO);
        peer.expect_unasked();
        follower.is_leader.store(true, Ordering::SeqCst);
        follower.step(Duration::ZERO);
        let asked = peer.asked();
        let path = "PATCH /apis/gateway.networking.k8s.io/v1/namespaces/a/gateways/b/status HTTP";
        assert!(asked.starts_with(path), "{asked}");
        assert!(asked.contains("\nContent-Type: application/merge-patch+json\n"), "{asked}");
        follower.changes.put(vec![change(json!({"new": 1}))]);
        follower.step(Duration::ZERO);
        peer.expect_unasked();
        follower.changes.put(vec![change(json!({"new": 2}))]);
        follower.step(Duration::ZERO);
        peer.asked();
    }

    #[test]
    fn a_conflict_is_left_to_the_next_plan_and_a_failure_is_tried_again() {
        let peer = replying(409);
        let mut leader = writer(&peer, true);
        leader.changes.put(vec![change(json!({"new": 1}))]);
        leader.step(Duration::ZERO);
        peer.asked();
        assert!(leader.waiting.is_empty());
        leader.changes.put(vec![change(json!({"new": 1}))]);
        leader.step(Duration::ZERO);
        peer.asked();
        assert_eq!(leader.metrics.status_conflicts.load(Ordering::Relaxed), 2);

        let peer = replying(500);
        let mut leader = writer(&peer, true);
        leader.changes.put(vec![change(json!({"new": 1}))]);
        leader.step(Duration::ZERO);
        peer.asked();
        leader.step(Duration::ZERO);
        peer.expect_unasked();
        leader.not_before = Instant::now();
        leader.step(Duration::ZERO);
        peer.asked();
    }
}
