//! The objects of the cluster; each kind is watched by a thread of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::SyncSender;
use std::thread;
use std::time::Duration;

use discover::{ApiServerPlace, Backoff, Collection, CollectionChange, WatchEnd, seed};
use serde_json::Value;

use crate::collections::KINDS;
use crate::plan::service_of;
use crate::{Objects, ResourceKey, ResourceKind};

/// The first and the longest wait after a watch failed.
const BACKOFF_MS: (u64, u64) = (200, 10_000);
/// When the API server is asked again for a kind that it does not have.
const ABSENT_AGAIN: Duration = Duration::from_secs(15);
/// How long a kind must be absent that was there: an API server that starts may not know all kinds
/// at once.
const ABSENT_MS: u64 = 60_000;

/// News from the watch of a kind.
pub(crate) struct Heard {
    pub(crate) kind: ResourceKind,
    pub(crate) told: Told,
}

pub(crate) enum Told {
    /// In this version of the kind.
    Change(&'static str, CollectionChange),
    Absent,
    Failed(String),
}

/// Starts to watch all kinds.
pub(crate) fn watch<N>(place: &ApiServerPlace, heard: &SyncSender<N>)
where
    N: From<Heard> + Send + 'static,
{
    for kind in KINDS {
        let (place, heard) = (place.clone(), heard.clone());
        thread::spawn(move || watch_kind(kind, &place, &heard));
    }
}

/// Runs until nobody listens.
fn watch_kind<N>(kind: ResourceKind, place: &ApiServerPlace, heard: &SyncSender<N>)
where
    N: From<Heard>,
{
    let (first, most) = BACKOFF_MS;
    let mut backoff = Backoff::new(first, most, seed());
    let known = kind.place();
    let mut collections: Vec<_> = known
        .versions
        .iter()
        .map(|version| (*version, Collection::new(place.clone(), known.list_path(version))))
        .collect();
    let tell = |told| heard.send(Heard { kind, told }.into()).is_ok();
    loop {
        let mut end = WatchEnd::Absent;
        for (version, collection) in &mut collections {
            let watched = collection.watch(&mut |change| {
                backoff.succeeded();
                let is_heard = tell(Told::Change(version, change));
                is_heard.then_some(()).ok_or_else(|| "nobody listens".to_owned())
            });
            let Err(why) = watched;
            if why != WatchEnd::Absent {
                end = why;
                break;
            }
        }
        let (told, wait) = match end {
            WatchEnd::Absent => (Told::Absent, ABSENT_AGAIN),
            WatchEnd::Failed(why) => (Told::Failed(why), Duration::from_millis(backoff.failed())),
        };
        if !tell(told) {
            return;
        }
        thread::sleep(wait);
    }
}

/// A kind as far as the API server has told.
#[derive(Debug, Default)]
struct KindState {
    /// The version in which it was told; `None`: not yet, or it is absent.
    version: Option<&'static str>,
    /// Whether the API server has told all objects, or that there is no such kind.
    is_known: bool,
    absent_since_ms: Option<u64>,
    error: Option<String>,
}

/// All that was told.
#[derive(Default)]
pub(crate) struct Cluster {
    pub(crate) objects: Objects,
    kinds: BTreeMap<ResourceKind, KindState>,
    /// The Services whose endpoints have changed since the last call.
    endpoints_changed: BTreeSet<ResourceKey>,
    /// Lines for the log.
    told: Vec<String>,
}

impl Cluster {
    /// Returns whether the objects have changed, or have become complete. A change of a Service's
    /// endpoints is only noted.
    pub(crate) fn take(&mut self, heard: Heard, now_ms: u64) -> bool {
        let Heard { kind, told } = heard;
        match told {
            Told::Change(version, change) => self.change(kind, version, change),
            Told::Absent => self.absent(kind, now_ms),
            Told::Failed(why) => {
                self.failed(kind, why);
                false
            }
        }
    }

    fn change(
        &mut self,
        kind: ResourceKind,
        version: &'static str,
        change: CollectionChange,
    ) -> bool {
        let state = self.kinds.entry(kind).or_default();
        if state.error.take().is_some() {
            self.told.push(format!("{}: the API server is back", kind.place().plural));
        }
        (state.version, state.absent_since_ms) = (Some(version), None);
        let is_list = matches!(change, CollectionChange::Listed(_));
        match change {
            CollectionChange::Listed(items) => {
                state.is_known = true;
                self.objects.clear(kind);
                for object in items {
                    self.put(kind, object);
                }
            }
            CollectionChange::Put(object) => {
                self.note_endpoints(kind, &object);
                self.put(kind, object);
            }
            CollectionChange::Deleted(object) => {
                self.note_endpoints(kind, &object);
                if let Some(key) = key(&object) {
                    self.objects.remove(kind, &key);
                }
            }
            CollectionChange::Confirmed => return false,
        }
        kind != ResourceKind::EndpointSlice || is_list
    }

    /// Notes the Services that a slice is about to be of, and was of until now.
    fn note_endpoints(&mut self, kind: ResourceKind, slice: &Value) {
        if kind == ResourceKind::EndpointSlice
            && let Some(key) = key(slice)
        {
            let slices = [Some(slice), self.objects.get(kind, &key)].into_iter().flatten();
            let services = slices.filter_map(|slice| service_of(slice, &key.namespace));
            self.endpoints_changed.extend(services);
        }
    }

    fn put(&mut self, kind: ResourceKind, mut object: Value) {
        // Nothing of it matters, and it is often the largest part.
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
        match key(&object) {
            Some(key) => self.objects.insert(kind, key, object),
            None => self.told.push(format!("{}: an object has no name", kind.place().plural)),
        }
    }

    fn absent(&mut self, kind: ResourceKind, now_ms: u64) -> bool {
        let state = self.kinds.entry(kind).or_default();
        let plural = kind.place().plural;
        state.error = None;
        if state.version.is_none() {
            let is_new = !state.is_known;
            state.is_known = true;
            if is_new {
                self.told.push(format!("{plural}: the API server has no such kind"));
            }
            return is_new;
        }
        let since = *state.absent_since_ms.get_or_insert(now_ms);
        if since == now_ms {
            self.told.push(format!("{plural} are gone; what they said is kept for now"));
        }
        if now_ms - since < ABSENT_MS {
            return false;
        }
        state.version = None;
        self.objects.clear(kind);
        true
    }

    fn failed(&mut self, kind: ResourceKind, why: String) {
        let state = self.kinds.entry(kind).or_default();
        state.absent_since_ms = None;
        if state.error.as_ref() != Some(&why) {
            let plural = kind.place().plural;
            self.told.push(format!("{plural}: {why}; what was known stays in use"));
        }
        state.error = Some(why);
    }

    /// Whether every kind was told at least once: before that, nothing may be concluded.
    pub(crate) fn is_complete(&self) -> bool {
        KINDS.iter().all(|kind| self.kinds.get(kind).is_some_and(|state| state.is_known))
    }

    /// Why the objects may be out of date.
    pub(crate) fn error(&self) -> Option<String> {
        self.kinds.iter().find_map(|(kind, state)| {
            state.error.as_ref().map(|why| format!("{}: {why}", kind.place().plural))
        })
    }

    /// The path of an object's status; `None`: the API server does not have the kind.
    pub(crate) fn status_path(&self, kind: ResourceKind, key: &ResourceKey) -> Option<String> {
        let version = self.kinds.get(&kind)?.version?;
        Some(kind.place().status_path(version, &key.namespace, &key.name))
    }

    /// Kinds, whether they are watched without failure, and how many objects they have.
    pub(crate) fn counts(&self) -> Vec<(&'static str, bool, usize)> {
        let count = |(kind, state): (&ResourceKind, &KindState)| {
            let is_up = state.error.is_none() && state.is_known;
            (kind.place().plural, is_up, self.objects.of(*kind).count())
        };
        self.kinds.iter().map(count).collect()
    }

    pub(crate) fn have_endpoints_changed(&self) -> bool {
        !self.endpoints_changed.is_empty()
    }

    /// The Services whose endpoints have changed since the last call.
    pub(crate) fn take_endpoints_changed(&mut self) -> BTreeSet<ResourceKey> {
        std::mem::take(&mut self.endpoints_changed)
    }

    /// Lines for the log since the last call.
    pub(crate) fn lines(&mut self) -> Vec<String> {
        std::mem::take(&mut self.told)
    }
}

fn key(object: &Value) -> Option<ResourceKey> {
    let metadata = &object["metadata"];
    let namespace = metadata["namespace"].as_str().unwrap_or_default().to_owned();
    Some(ResourceKey { namespace, name: metadata["name"].as_str()?.to_owned() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn heard(kind: ResourceKind, told: Told) -> Heard {
        Heard { kind, told }
    }

    fn listed(names: &[&str]) -> Told {
        let object = |name: &&str| {
            let metadata = json!({"name": name, "namespace": "a", "managedFields": [1]});
            json!({ "metadata": metadata })
        };
        let objects = names.iter().map(object).collect();
        Told::Change("v1", CollectionChange::Listed(objects))
    }

    #[test]
    fn nothing_is_concluded_before_every_kind_was_told() {
        let mut cluster = Cluster::default();
        for kind in KINDS {
            assert!(!cluster.is_complete());
            if kind == ResourceKind::TcpRoute {
                assert!(!cluster.take(heard(kind, Told::Failed("no".to_owned())), 1));
                assert_eq!(cluster.error().unwrap(), "tcproutes: no");
                assert!(cluster.take(heard(kind, Told::Absent), 1));
            } else {
                assert!(cluster.take(heard(kind, listed(&["x"])), 1));
            }
        }
        assert!(cluster.is_complete());
        assert_eq!(cluster.error(), None);
        let key = ResourceKey { namespace: "a".to_owned(), name: "x".to_owned() };
        assert_eq!(
            cluster.objects.get(ResourceKind::Secret, &key).unwrap()["metadata"]["name"],
            "x"
        );
        let kept = &cluster.objects.get(ResourceKind::Secret, &key).unwrap()["metadata"];
        assert!(kept.get("managedFields").is_none());
        assert_eq!(cluster.status_path(ResourceKind::TcpRoute, &key), None);
        assert!(cluster.status_path(ResourceKind::HttpRoute, &key).unwrap().ends_with("/x/status"));
    }

    #[test]
    fn a_kind_that_vanishes_is_kept_for_a_while() {
        let mut cluster = Cluster::default();
        let count = |cluster: &Cluster| cluster.objects.of(ResourceKind::HttpRoute).count();
        cluster.take(heard(ResourceKind::HttpRoute, listed(&["x"])), 0);
        assert!(!cluster.take(heard(ResourceKind::HttpRoute, Told::Absent), 1000));
        assert!(!cluster.take(heard(ResourceKind::HttpRoute, Told::Absent), 60_000));
        assert_eq!(count(&cluster), 1);
        cluster.take(heard(ResourceKind::HttpRoute, Told::Failed("no".to_owned())), 61_000);
        assert!(
            !cluster.take(heard(ResourceKind::HttpRoute, Told::Absent), 62_000),
            "it begins anew"
        );
        assert!(cluster.take(heard(ResourceKind::HttpRoute, Told::Absent), 122_000));
        assert_eq!(count(&cluster), 0);
    }

    #[test]
    fn a_list_replaces_what_was_known() {
        let mut cluster = Cluster::default();
        cluster.take(heard(ResourceKind::Service, listed(&["x", "y"])), 0);
        cluster.take(heard(ResourceKind::Service, listed(&["y", "z"])), 0);
        let names: Vec<_> =
            cluster.objects.of(ResourceKind::Service).map(|(key, _)| &*key.name).collect();
        assert_eq!(names, ["y", "z"]);
        let gone = json!({"metadata": {"name": "y", "namespace": "a"}});
        let told = |change| heard(ResourceKind::Service, Told::Change("v1", change));
        assert!(cluster.take(told(CollectionChange::Deleted(gone)), 0));
        assert_eq!(cluster.objects.of(ResourceKind::Service).count(), 1);
        assert!(!cluster.take(told(CollectionChange::Confirmed), 0));
    }
}
